"""Samples of the metrics that tell how the group is now. Pure; what is not known gives no sample."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kgs_core.config import Settings
from kgs_core.model import TopicPartition
from kgs_core.planning.learnt_capacity import Capacity
from kgs_core.planning.rebalance_budget import moved_within_an_hour
from kgs_core.protocol import RunState
from kgs_core.reporting.status import ConsumerRow, GroupStatus

PARTITION_STATES = ("owned", "draining", "unread", "stopped")


class Sample(NamedTuple):
    """Value of one series: the metric's name, the values of its labels without `group`, and the number."""

    metric: str
    labels: tuple[str, ...]
    value: float


@dataclass(frozen=True, slots=True)
class TableFigures:
    """Figures of one table; None: not known."""

    table: str
    rows: int | None
    files: int | None
    size_bytes: int | None
    dead_letters: int | None
    last_moved_s: float | None = None


@dataclass(frozen=True, slots=True)
class LakeFigures:
    """Figures of the lake beside those of `GroupStatus`.

    Attributes:
        positions: partition -> next offset to read, by its table.
        lag_s: partition -> age of the record there; 0.0 where nothing is left to read.
    """

    tables: tuple[TableFigures, ...] = ()
    positions: Mapping[TopicPartition, int] = field(default_factory=dict)
    lag_s: Mapping[TopicPartition, float] = field(default_factory=dict)


def samples(found: GroupStatus, lake: LakeFigures, settings: Settings, now_ms: int) -> Iterator[Sample]:
    """All gauges.

    Args:
        found: the group.
        lake: its tables.
        settings: capacity and budget.
        now_ms: wall clock, ms since 1970.
    """
    yield from _partitions(found, lake)
    yield from _consumers(found)
    yield from _packing(found, settings, now_ms)
    yield from _controller(found)
    for table in lake.tables:
        figures = {
            "kgs_table_rows": table.rows,
            "kgs_table_files": table.files,
            "kgs_table_bytes": table.size_bytes,
            "kgs_table_dead_letters_total": table.dead_letters,
            "kgs_table_last_commit_timestamp_seconds": table.last_moved_s,
        }
        yield from (Sample(name, (table.table,), value) for name, value in figures.items() if value is not None)


def _partitions(found: GroupStatus, lake: LakeFigures) -> Iterator[Sample]:
    seen = found.facts
    target = found.target.assignment if found.target is not None else {}
    every = sorted({*target, *found.current, *seen.speeds, *seen.lags, *lake.positions})
    states = _states(found)
    for tp in every:
        labels = (tp.topic, str(tp.partition))
        speed, lag = seen.speeds.get(tp), seen.lags.get(tp)
        if speed is not None:
            yield Sample("kgs_partition_write_bytes_per_second", labels, speed)
        if seen.measured_age_s is not None:
            yield Sample("kgs_partition_speed_known", labels, float(speed is not None))
        if lag is not None:
            yield Sample("kgs_partition_lag_records", labels, lag)
        if tp in lake.lag_s:
            yield Sample("kgs_partition_lag_seconds", labels, lake.lag_s[tp])
        if tp in lake.positions:
            yield Sample("kgs_partition_committed_offset", labels, lake.positions[tp])
        now = states.get(tp, "unread")
        for state in PARTITION_STATES:
            yield Sample("kgs_partition_state", (*labels, state), float(state == now))


def _states(found: GroupStatus) -> dict[TopicPartition, str]:
    """State of each partition that somebody owns."""
    states: dict[TopicPartition, str] = {}
    for row in found.consumers:
        if row.state == "silent":  # what it said last is not known to be so now, and another may read its partitions
            continue
        lets_go = row.state in ("draining", "retiring")
        states |= dict.fromkeys(row.partitions, "draining" if lets_go else "owned")
        states |= dict.fromkeys(row.stopped, "stopped")
    return states


def _consumers(found: GroupStatus) -> Iterator[Sample]:
    target = found.target
    joined = [row for row in found.consumers if row.incarnation is not None]
    counts = {
        "joined": len(joined),
        "spare": sum(row.state == "spare" for row in joined),
        "silent": sum(row.state == "silent" for row in joined),
    }
    if target is not None:
        counts |= {"wanted": len(target.consumers), "quarantined": len(target.quarantined)}
    yield from (Sample("kgs_consumers", (state,), count) for state, count in counts.items())
    yield Sample("kgs_topics_consumed", (), found.topics_consumed)
    shown: dict[int, ConsumerRow] = {}
    for row in joined:  # the newest incarnation of a number comes first; an older one is no series of its own
        shown.setdefault(row.consumer, row)
    for consumer, row in shown.items():
        figures = {
            "kgs_consumer_load_bytes_per_second": row.load,
            "kgs_consumer_read_bytes_per_second": row.bytes_per_s,
            "kgs_consumer_report_age_seconds": row.report_age_s,
            "kgs_consumer_batch_age_seconds": row.batch_age_s,
            "kgs_consumer_memory_bytes": row.work.memory_bytes if row.work is not None else None,
        }
        yield from (Sample(name, (str(consumer),), value) for name, value in figures.items() if value is not None)


def _packing(found: GroupStatus, settings: Settings, now_ms: int) -> Iterator[Sample]:
    yield Sample("kgs_forced_moves_only", (), float(bool(found.quiet_until)))
    speeds, target, packing = found.facts.speeds, found.target, settings.packing
    limit = packing.consumer_capacity_bytes_per_s
    yield Sample("kgs_consumer_capacity_bytes_per_second", ("consumer",), limit)
    if found.capacity is not None:
        limit = found.capacity.packing.consumer_capacity_bytes_per_s
        yield from _learnt(found.capacity)
    if target is not None:
        yield Sample("kgs_consumer_capacity_bytes_per_second", ("packing",), target.capacity)
        if target.assignment.keys() <= speeds.keys():
            total = math.fsum(speeds[tp] for tp in target.assignment)
            yield Sample("kgs_consumers_lower_bound", (), math.ceil(total / target.capacity))
        if packing.max_rscore_per_hour is not None:
            left = packing.max_rscore_per_hour - moved_within_an_hour(target.history, now_ms)
            yield Sample("kgs_rscore_budget_remaining", (), max(0.0, left))
    if found.facts.measured_age_s is not None:
        yield Sample("kgs_hot_partitions", (), sum(speed > limit for speed in speeds.values()))


def _learnt(capacity: Capacity) -> Iterator[Sample]:
    learnt, drift = capacity.consumer_bytes_per_s, capacity.drift
    if learnt is not None and drift is not None:
        yield Sample("kgs_consumer_capacity_bytes_per_second", ("learnt",), learnt)
        yield Sample("kgs_capacity_drift_ratio", (), drift)
    for consumer, speed in sorted(capacity.learnt.each.items()):
        yield Sample("kgs_consumer_flat_out_bytes_per_second", (str(consumer),), speed)


def _controller(found: GroupStatus) -> Iterator[Sample]:
    age_s = found.facts.measured_age_s
    yield Sample("kgs_controller_up", (), float(found.controller_is_heard))
    if age_s is not None:
        yield Sample("kgs_controller_measurement_age_seconds", (), age_s)
    yield Sample("kgs_lag_unknown_partitions", (), found.lag_unknown_partitions)
    yield Sample("kgs_topics_with_bad_records", (), len(found.bad_shares))
    wanted = found.desired_state.state if found.desired_state is not None else RunState.RUNNING
    yield from (Sample("kgs_state", (str(state),), float(state is wanted)) for state in RunState)
