"""What the runs of jobs do; each op is made for one group."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
from pydantic import Field

from kgs_core.errors import KgsError
from kgs_core.model import ConsumerId
from kgs_core.protocol import Process
from kgs_dagster.launch import ATTEMPT, CONSUME_OP, ENDED, INCARNATION, DagsterFleet, claim_run, consumer_tags
from kgs_dagster.settings import GroupConfig

_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class ConsumeConfig(dg.Config):
    """Which consumer a run is."""

    consumer: int = Field(ge=1, description="Its number; the group's Target says which are wanted.")


def spark_key(group: GroupConfig) -> str:
    """Name of the resource that gives a consumer its Spark session: `.spark_session` of it is asked for once."""
    return f"kgs_pyspark{group.suffix}"


def consume_op(group: GroupConfig) -> dg.OpDefinition:
    """Reads as a member of the group until it is told to end: by an order, or by the end of its run.

    It makes no event per batch: they would fill the database, and a run that lasts for weeks keeps them in memory.
    """
    spark = spark_key(group)

    @dg.op(name=f"{CONSUME_OP}{group.suffix}", required_resource_keys={spark}, tags={"kind": "pyspark"})
    def consume(context: dg.OpExecutionContext, config: ConsumeConfig) -> None:
        consumer = ConsumerId(config.consumer)
        with _failures_told(), own_log():
            process = claim_run(context.instance, context.run_id, _own_tags(context, group, consumer))
            _consume(context, group, consumer, process, getattr(context.resources, spark))

    return consume


def _own_tags(context: dg.OpExecutionContext, group: GroupConfig, consumer: ConsumerId) -> dict[str, str]:
    """What the sensor would have written; a run that was started by hand says it itself, its attempt among it.

    Without an attempt the next request would begin at 1 again, which Dagster has made already and makes no second time.
    """
    attempt = context.run.tags.get(ATTEMPT) or str(DagsterFleet(context.instance, group).next_attempt(consumer))
    return {**consumer_tags(group, consumer), ATTEMPT: attempt}


def _consume(
    context: dg.OpExecutionContext, group: GroupConfig, consumer: ConsumerId, process: Process, spark: Any
) -> None:
    from kgs_core.adapters.group_consumer import GroupConsumer, Hosting
    from kgs_core.adapters.stop_flag import stop_on_signals

    def fail_run(why: str) -> None:
        run = context.instance.get_run_by_id(context.run_id)
        if run is not None and run.status not in ENDED:
            context.instance.report_run_failed(run, f"consumer {consumer} has ended its process: {why}")

    hosting = Hosting(process, lambda: spark.spark_session, fail_run)
    member = GroupConsumer(group.settings, consumer, hosting=hosting)
    context.instance.add_run_tags(context.run_id, {INCARNATION: member.member.incarnation})
    # A flag and no exception: thrown into a call to Spark's JVM it would break the connection, and the batch with it
    with stop_on_signals() as stop:
        context.log.info(f"consumer {member.member} joins group {group.name}")
        member.run(stop)
    context.log.info(f"consumer {member.member} has drained and ended: {member.ending or 'asked to end'}")


@contextmanager
def _failures_told() -> Iterator[None]:
    """What a person can mend is told in one line; anything else keeps its traceback."""
    try:
        yield
    except KgsError as e:
        raise dg.Failure(str(e), allow_retries=False) from e


@contextmanager
def own_log() -> Iterator[None]:
    """The core's log goes to the run's stderr while the block runs, and not into Dagster's event log."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_LOG_FORMAT))
    logger = logging.getLogger("kgs_core")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
