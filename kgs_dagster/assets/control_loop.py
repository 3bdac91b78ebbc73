"""The control loop as assets: one rebalance run measures, assigns, prices and hands over, and records each of them.

The steps share one controller (`resources.Rebalance`). A step that is executed alone finds out anew what it needs; a
run that was killed is gone on with by the next one. What is recorded is for people: whoever decides reads the topics.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import dagster as dg

from kgs_core.errors import UnsafeError
from kgs_core.group.controller.state import Result
from kgs_core.group.invariants.assignments import check_target
from kgs_core.model import grouped
from kgs_core.packing import ALGORITHMS
from kgs_core.runtime.rebalance_results import HandedOver
from kgs_dagster.assets import control_loop_figures as figures
from kgs_dagster.assets.lake import lake_layout
from kgs_dagster.metadata import bullets
from kgs_dagster.resources import UNFINISHED, Rebalance, rebalance_key
from kgs_dagster.run_process import CONTROL_LOG, DagsterLog, failures_named, logging_to
from kgs_dagster.settings import GroupConfig

WRITE_SPEEDS, ASSIGNMENT, RSCORE, HANDOVER = "write_speeds", "consumer_assignment", "rscore", "handover"
COVERED, FITS, SAFE, OWNERS, DONE = (
    "every_partition_once",
    "within_capacity",
    "safe_orders",
    "one_owner",
    "change_is_over",
)
Events = Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]


def control_loop_assets(group: GroupConfig) -> list[dg.AssetsDefinition]:
    """The four steps, in their order."""
    return [_write_speeds(group), _consumer_assignment(group), _rscore(group), _handover(group)]


def control_loop_keys(group: GroupConfig) -> list[dg.AssetKey]:
    """Their keys."""
    return [group.key(name) for name in (WRITE_SPEEDS, ASSIGNMENT, RSCORE, HANDOVER)]


def _write_speeds(group: GroupConfig) -> dg.AssetsDefinition:
    @dg.asset(
        key=group.key(WRITE_SPEEDS),
        deps=[topic for asset in lake_layout(group) for topic in asset.topics],
        description="How fast each partition grows, by the measurement that this run packs by: the one that the sensor "
        "refers it to, or else the newest.",
        group_name=_group_name(group),
        required_resource_keys={rebalance_key(group)},
        kinds={"kafka"},
    )
    def write_speeds(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        rebalance = rebalance_of(context, group)
        with _failures_named(context):
            measured = rebalance.run.measure_for_record()
            if measured is None:
                return dg.MaterializeResult(
                    metadata={"outcome": "not looked at: the Target that stands is carried out"}
                )
            rebalance.measured_s = time.time() - measured.age_s
        return dg.MaterializeResult(metadata=figures.of_measurement(group.settings, measured))

    return write_speeds


def _consumer_assignment(group: GroupConfig) -> dg.AssetsDefinition:
    key = group.key(ASSIGNMENT)

    @dg.asset(
        key=key,
        deps=[group.key(WRITE_SPEEDS)],
        description="Which consumer shall read which partition: the newest Target. Fences every older controller, "
        "reads the group's topics, packs, and writes the Target with the first assignments of its change, unless the "
        "load sensor has done so already.",
        check_specs=[
            dg.AssetCheckSpec(COVERED, asset=key, blocking=True, description="S6: every partition has one consumer."),
            dg.AssetCheckSpec(
                FITS, asset=key, description="S6: no consumer is above the packing capacity without need."
            ),
            _safe(key),
        ],
        group_name=_group_name(group),
        required_resource_keys={rebalance_key(group)},
        kinds={"table"},
    )
    def consumer_assignment(context: dg.AssetExecutionContext) -> Events:
        rebalance = rebalance_of(context, group)
        with _failures_named(context):
            yield from _assigned(group, key, rebalance)

    return consumer_assignment


def _rscore(group: GroupConfig) -> dg.AssetsDefinition:
    @dg.asset(
        key=group.key(RSCORE),
        deps=[group.key(ASSIGNMENT)],
        description="What the change costs: write speed of the partitions that change their consumer, in capacities of "
        "a consumer.",
        group_name=_group_name(group),
        required_resource_keys={rebalance_key(group)},
        kinds={"python"},
    )
    def rscore(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        rebalance = rebalance_of(context, group)
        with _failures_named(context):
            return dg.MaterializeResult(metadata=figures.of_price(rebalance.run.price()))

    return rscore


def _handover(group: GroupConfig) -> dg.AssetsDefinition:
    key = group.key(HANDOVER)

    @dg.asset(
        key=key,
        deps=[group.key(RSCORE)],
        description="Hands over partitions (stop, confirm, start) until each consumer reads what the Target gives it.",
        check_specs=[
            _safe(key),
            dg.AssetCheckSpec(OWNERS, asset=key, description="S1: no two consumers say to own a partition."),
            dg.AssetCheckSpec(DONE, asset=key, description="Every consumer reads what the Target gives it."),
        ],
        group_name=_group_name(group),
        required_resource_keys={rebalance_key(group)},
        kinds={"kafka"},
    )
    def handover(context: dg.AssetExecutionContext) -> Events:
        rebalance = rebalance_of(context, group)
        with _failures_named(context):
            try:
                done = rebalance.run.hand_over()
            except UnsafeError:
                yield from _refused(key, rebalance)
                raise
        is_done = done.outcome.result in {Result.CONVERGED, Result.NOTHING_TO_DO}
        times = figures.of_times(_instants(context, rebalance, done)) if is_done else {}
        if times:
            context.log.info(figures.times_text(times))
        yield dg.MaterializeResult(metadata=figures.of_handover(done, rebalance.config, times))
        yield _passed(key, SAFE)
        yield checked(key, OWNERS, done.double_owners, dg.AssetCheckSeverity.ERROR)
        why = f"{done.outcome.result}: {done.outcome.reason}: the next run continues from here"
        yield checked(key, DONE, () if is_done else (why,))
        if done.outcome.result is Result.SUPERSEDED:
            # What has come since is the sensor's to ask for: no fault of this run, and none of the group
            context.log.info(f"given way to another change: {why}")
        elif not is_done:
            # Nothing went wrong, so the next run need not wait: but whoever looks at it must not take it for done
            context.instance.add_run_tags(context.run.run_id, {UNFINISHED: "true"})
            raise dg.Failure(f"the change is not carried out: {why}", allow_retries=False)

    return handover


def _instants(context: dg.AssetExecutionContext, rebalance: Rebalance, done: HandedOver) -> list[float | None]:
    """When was measured, decided, begun, written, started, taken over; seconds since 1970. None: not by this run."""
    record = context.instance.get_run_record_by_id(context.run.run_id)
    decided_s = record.create_timestamp.timestamp() if record else None
    begun_s = record.start_time if record else None
    written_s, taken_s = rebalance.written_s, None if done.taken_ms is None else done.taken_ms / 1000
    if rebalance.config.written is not None:  # by the sensor, at once
        is_it = done.target is not None and done.target.offset == rebalance.config.written
        decided_s = begun_s = written_s if is_it else None  # of another one since, that measurement says nothing
    started_s = None if written_s is None or done.started_s is None else written_s + done.started_s
    if started_s is not None and taken_s is not None:
        started_s = min(started_s, taken_s)  # by two clocks
    return [rebalance.measured_s, decided_s, begun_s, written_s, started_s, taken_s]


def _assigned(group: GroupConfig, key: dg.AssetKey, rebalance: Rebalance) -> Events:
    try:
        assigned = rebalance.run.assign(tuple(ALGORITHMS))
    except UnsafeError:
        yield from _refused(key, rebalance, COVERED)
        raise
    if assigned.is_written and assigned.target is not None:
        rebalance.written_s = assigned.target.timestamp_ms / 1000
    yield dg.MaterializeResult(metadata=figures.of_assignment(group.settings, assigned, rebalance.config))
    yield _passed(key, COVERED)
    yield _passed(key, SAFE)
    target = assigned.target.message if assigned.target else None
    bound = group.settings.packing.max_consumers
    yield checked(key, FITS, check_target(target, max_consumers=bound) if target else ())


def _refused(key: dg.AssetKey, rebalance: Rebalance, name_of_target: str = SAFE) -> Iterator[dg.AssetCheckResult]:
    """What a write would have broken, which was not made."""
    found = grouped((name_of_target if line.startswith("S6") else SAFE, line) for line in rebalance.run.problems)
    for name, lines in found.items():
        yield checked(key, name, lines, dg.AssetCheckSeverity.ERROR)


def _safe(key: dg.AssetKey) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        SAFE,
        asset=key,
        blocking=True,
        description="S1, S4, S7: no consumer is given what another may hold, or told to end while it holds something. "
        "Checked before assignments are written: unsafe ones never are.",
    )


def _passed(key: dg.AssetKey, name: str) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=True, asset_key=key, check_name=name)


def checked(
    key: dg.AssetKey,
    name: str,
    problems: Sequence[str],
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.WARN,
) -> dg.AssetCheckResult:
    """A check that fails by what is wrong, a line each."""
    return dg.AssetCheckResult(
        passed=not problems,
        asset_key=key,
        check_name=name,
        severity=severity,
        metadata={"problems": dg.MetadataValue.md(bullets(problems))} if problems else {},
    )


def _group_name(group: GroupConfig) -> str:
    return f"control_loop{group.suffix}"


def rebalance_of(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext, group: GroupConfig) -> Rebalance:
    """Resource of a group's rebalance runs, as used by this run."""
    found = getattr(context.resources, rebalance_key(group))
    if not isinstance(found, Rebalance):
        raise dg.DagsterInvariantViolationError(f"resource {rebalance_key(group)}: {type(found).__name__}")
    found.claim(context.instance, context.run.run_id)
    return found


@contextmanager
def _failures_named(context: dg.AssetExecutionContext) -> Iterator[None]:
    """What a person can mend is reported in one line, and what the controller does stands in the run's log.

    No error is worth a retry: the sensor asks for another run, with newer measurements.
    """
    with logging_to(DagsterLog(context.log), CONTROL_LOG), failures_named():
        yield
