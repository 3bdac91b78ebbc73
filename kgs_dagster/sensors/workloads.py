"""Makes partitions of the published loads, so that the UI offers them without any preparation."""

import dagster as dg

from kgs_dagster.experiment_resource import POOL
from kgs_dagster.partitions import WORKLOADS, published_keys, unregistered

_EVERY_S = 60


def workloads_sensor() -> dg.SensorDefinition:
    """Looks once a minute: Dagster's database may be a new one."""

    @dg.sensor(
        name="workloads_sensor",
        minimum_interval_seconds=_EVERY_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Makes partitions of the published loads, so that experiments can be launched at once. Other "
        "generated ones are added where partitions are chosen, recorded ones by register_workload_job.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        new = unregistered(context.instance, published_keys())
        if not new:
            return dg.SkipReason("all published loads are there")
        # a pool that has never been used has no limit until its first runs have been launched, all at once
        context.instance.event_log_storage.initialize_concurrency_limit_to_default(POOL)
        return dg.SensorResult(dynamic_partitions_requests=[WORKLOADS.build_add_request(new)])

    return sensor
