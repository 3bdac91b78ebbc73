"""The job of which every consumer is a run."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from kgs_dagster.launch import CONSUMER_JOB, CONSUMER_ROLE, GROUP, POD, ROLE
from kgs_dagster.ops import consume_op, spark_key
from kgs_dagster.pods import pod_template
from kgs_dagster.settings import GroupConfig, runs_are_pods


def consumer_job(group: GroupConfig, resources: Mapping[str, Any] | None = None) -> dg.JobDefinition:
    """One consumer, for as long as it is wanted; in one process: the batch loop must be the one that is told to end.

    A sensor that asks for a job without its `resources` is copied by Dagster, which then warns of itself.
    """
    spark = spark_key(group)
    pod = {POD: pod_template(group)} if runs_are_pods(group) else {}

    @dg.job(
        name=f"{CONSUMER_JOB}{group.suffix}",
        description=f"One PySpark consumer of group {group.name}, until it is retired or its run is terminated; it "
        "first finishes or drops its batch. Requested by the load sensor; by hand, it gets no partition unless "
        "the group's Target wants its number.",
        executor_def=dg.in_process_executor,
        resource_defs={spark: resources[spark]} if resources and spark in resources else None,
        tags={GROUP: group.name, ROLE: CONSUMER_ROLE, **pod},
    )
    def job() -> None:
        consume_op(group)()

    return job


def spark_resources(group: GroupConfig) -> dict[str, Any]:
    """Spark as kgs.yaml configures it, by dagster-pyspark; started when the consumer first needs it."""

    @dg.resource(description="dagster-pyspark's LazyPySparkResource with the section `spark` of kgs.yaml")
    def pyspark() -> object:
        from dagster_pyspark import LazyPySparkResource

        from kgs_core.spark.session import prepare_spark

        return LazyPySparkResource(spark_config=prepare_spark(group.settings.spark, f"kgs-{group.name}"))

    return {spark_key(group): pyspark}
