"""The sensor that measures the load, and asks for rebalance runs and consumers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager

import dagster as dg

from kgs_core.errors import KgsError, TransientError
from kgs_core.runtime.controller_loop import controller_options
from kgs_dagster.checks.bad_records import changed_evaluations
from kgs_dagster.checks.group_alerts import LastingAlerts
from kgs_dagster.jobs.consumer import consumer_job
from kgs_dagster.jobs.rebalance import RebalanceRuns, rebalance_job
from kgs_dagster.jobs.shape import Job
from kgs_dagster.launch import DagsterFleet
from kgs_dagster.run_process import CONTROL_LOG, DagsterLog, logging_to
from kgs_dagster.sensors.long_poll import Found, LongPoll, SensorPorts, Timing
from kgs_dagster.settings import GroupConfig
from kgs_dagster.turn import Turn

READ_TIMEOUT_S = 15.0
"""A tick must not take a minute; the next one tries again."""
Connect = Callable[[GroupConfig, dg.DagsterInstance], AbstractContextManager[SensorPorts]]


@contextmanager
def connect(group: GroupConfig, instance: dg.DagsterInstance) -> Iterator[SensorPorts]:
    """Kafka and Dagster's runs, for one tick: a tick leaves nothing behind that could be broken in the next."""
    from kgs_core.group.topics.connections import GroupConnections
    from kgs_core.monitor.kafka.source import MonitorSource

    with (
        GroupConnections(group.settings, READ_TIMEOUT_S) as topics,
        closing(MonitorSource(group.settings)) as measurements,
    ):
        fleet, runs = DagsterFleet(instance, group), RebalanceRuns(instance, group)
        yield SensorPorts(measurements, topics, fleet, runs)


def partition_load_sensor(
    group: GroupConfig, jobs: Sequence[Job] | None = None, connect: Connect = connect, timing: Timing | None = None
) -> dg.SensorDefinition:
    """The sensor of one group's control loop; `jobs` None: new ones of rebalance and consumer."""
    steady = (timing or Timing()).steady
    turn, alerts = Turn(steady), LastingAlerts(group, steady)

    @dg.sensor(
        name=f"partition_load_sensor{group.suffix}",
        jobs=list(jobs) if jobs is not None else [rebalance_job(group), consumer_job(group)],
        minimum_interval_seconds=1,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Measures how fast partitions grow, publishes it, and asks for a rebalance run when one is due and "
        "for a run of every consumer that is missing. What cannot wait for a run it carries out itself, and the run "
        "records it. A tick lasts for most of a minute; its cursor is the offset of the last measurement.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        with turn.taken() as why:
            if why:
                return dg.SensorResult(skip_reason=why, cursor=context.cursor)
            if hung := turn.hung:
                context.log.error(f"{hung}: this one goes past it")
            try:
                with connect(group, context.instance) as ports, logging_to(DagsterLog(context.log), CONTROL_LOG):
                    found = LongPoll(group, controller_options(group.settings), ports, timing or Timing()).run()
                events = _check_news(context, group, alerts, found)
            except KgsError as e:
                return dg.SensorResult(skip_reason=str(e), cursor=context.cursor)
        cursor = context.cursor if found.measurement_offset is None else str(found.measurement_offset)
        if not found.requests:
            return dg.SensorResult(skip_reason=found.summary, cursor=cursor, asset_events=events)
        context.log.info(f"asked for {', '.join(str(each.run_key) for each in found.requests)}; {found.summary}")
        return dg.SensorResult(run_requests=list(found.requests), cursor=cursor, asset_events=events)

    return sensor


def _check_news(
    context: dg.SensorEvaluationContext, group: GroupConfig, alerts: LastingAlerts, found: Found
) -> Sequence[dg.AssetCheckEvaluation]:
    """What has changed of the checks; runs are asked for even where that cannot be told."""
    try:
        bad_records = changed_evaluations(group, context.instance, found.judged)
        return [*bad_records, *alerts.changed(context.instance, found.alerts)]
    except TransientError as e:
        context.log.warning(str(e))
        return ()
