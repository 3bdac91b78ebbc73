"""Ops of the jobs; each is made for one group."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from kgs_core.errors import KgsError
from kgs_core.fleet.pod_process import own_process
from kgs_core.group.protocol import Process
from kgs_core.model import ConsumerId
from kgs_core.system.processes import RUN_ID
from kgs_core.system.shutdown import StopFlag, stop_on_signals
from kgs_dagster.consumer_log import ReadingLog
from kgs_dagster.launch import ATTEMPT, CONSUME_OP, INCARNATION, WHY, DagsterFleet, attempt_of, consumer_tags
from kgs_dagster.run_process import ENDED, claim_run, first_line, logging_to
from kgs_dagster.settings import GroupConfig

if TYPE_CHECKING:
    from kgs_core.runtime.group_consumer import GroupConsumer

_ENDINGS = {
    "ASKED": "asked to end",
    "RETIRED": "retired by the controller",
    "SUPERSEDED": "a newer process has its number",
    "FAILED": "by an error of its own",
}
_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class ConsumeConfig(dg.Config):
    """Which consumer a run is."""

    consumer: int = Field(ge=1, description="Its number; the group's Target says which are wanted.")
    consumer_class: str = Field("", description="Its class, of packing.classes; empty: the first one.")


def spark_key(group: GroupConfig) -> str:
    """Name of the resource that gives a consumer its Spark session: `.spark_session` of it is asked for once."""
    return f"kgs_pyspark{group.suffix}"


def consume_op(group: GroupConfig) -> dg.OpDefinition:
    """Reads as a member of the group until it is told to end: by an assignment, or by the end of its run.

    It makes no event per batch: they would fill the database, and a run that lasts for weeks keeps them in memory.
    """
    spark = spark_key(group)

    @dg.op(name=f"{CONSUME_OP}{group.suffix}", required_resource_keys={spark}, tags={"kind": "pyspark"})
    def consume(context: dg.OpExecutionContext, config: ConsumeConfig) -> None:
        consumer = ConsumerId(config.consumer)
        # A flag and no exception: thrown into a call to Spark's JVM it would break the connection, and the batch
        with _failures_named(), own_log(), stop_on_signals() as stop:
            claim_run(context.instance, context.run_id, _own_tags(context, group, consumer))
            process = own_process({**os.environ, RUN_ID: context.run_id})
            member = _member(context, group, config, process, getattr(context.resources, spark))
            context.log.info(f"consumer {member.member} joins group {group.name}")
            _run(context, member, stop)

    return consume


def _own_tags(context: dg.OpExecutionContext, group: GroupConfig, consumer: ConsumerId) -> dict[str, str]:
    """What the sensor would have written; a run that was started by hand says it itself, its attempt among it.

    Without an attempt the next request would begin at 1 again, which Dagster has made already and makes no second time.
    """
    attempt = attempt_of(context.run.tags) or str(DagsterFleet(context.instance, group).next_attempt(consumer))
    return {**consumer_tags(group, consumer), ATTEMPT: attempt}


def _member(
    context: dg.OpExecutionContext, group: GroupConfig, config: ConsumeConfig, process: Process, spark: Any
) -> "GroupConsumer":
    from kgs_core.runtime.group_consumer import GroupConsumer, Hosting
    from kgs_core.system.transform_folder import use_folder_of

    def fail_run(why: str) -> None:
        run = context.instance.get_run_by_id(context.run_id)
        if run is not None and run.status not in ENDED:
            context.instance.report_run_failed(run, f"consumer {config.consumer} has ended its process: {why}")

    use_folder_of(group.path, group.settings)
    hosting = Hosting(process, lambda: spark.spark_session, fail_run, config.consumer_class)
    member = GroupConsumer(group.settings, ConsumerId(config.consumer), hosting=hosting)
    context.instance.add_run_tags(context.run_id, {INCARNATION: member.member.incarnation})
    return member


def _run(context: dg.OpExecutionContext, member: "GroupConsumer", stop: StopFlag) -> None:
    """Until it has ended, and then the reason in words.

    Raises:
        Failure: it was told to end before it had joined: nothing was read, so this was no good run. Dagster calls it
            canceled where somebody asked Dagster for the end, and failed otherwise.
        KgsError: it ended by itself.
    """
    try:
        with ReadingLog(lambda: member.membership.now if member.membership else None, context.log.info):
            member.run(stop)
    except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):  # Spark's own handler, for part of its start
        stop.set()
    except Exception as e:
        if not stop.is_set or member.membership is not None:
            raise
        context.log.info(f"what was under way when it was told to end: {first_line(e)}")
    by = f" ({_asked_by(context)})" if stop.is_set else ""
    if stop.is_set and member.membership is None:
        raise dg.Failure(f"consumer {member.member} ended before it had joined: asked to end{by}", allow_retries=False)
    ended = _ENDINGS[member.ending.name] if member.ending else "asked to end"
    context.log.info(f"consumer {member.member} ended: {ended}{by}")


def _asked_by(context: dg.OpExecutionContext) -> str:
    """Who wants the end, as far as the run says."""
    run = context.instance.get_run_by_id(context.run_id)
    if run is not None and WHY in run.tags:
        return run.tags[WHY]
    if run is not None and run.status in (dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED):
        return "its run was terminated in Dagster"
    return "by a signal from outside Dagster: its machine or pod goes down, or a person sent it"


@contextmanager
def _failures_named() -> Iterator[None]:
    """What a person can mend or has asked for is reported in one line; anything else keeps its traceback."""
    try:
        yield
    except KgsError as e:
        sys.tracebacklimit = 0  # Dagster makes the event when we are gone, in a process that ends then
        raise dg.Failure(str(e), allow_retries=False) from None
    except dg.Failure:
        sys.tracebacklimit = 0
        raise


@contextmanager
def own_log() -> Iterator[None]:
    """The core's log goes to the run's stderr while the block runs, and not into Dagster's event log."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_LOG_FORMAT))
    with logging_to(handler, "kgs_core"):
        yield
