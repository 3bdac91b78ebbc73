"""Gauges: how each is read off a look at the group. Pure; None is "not known", which gives no sample.

What a name means stands in `metrics`; how a figure is worked out, in `status`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kgs_core.group.protocol import RunState
from kgs_core.model import TopicPartition
from kgs_core.reporting.consumer_rows import ConsumerRow
from kgs_core.reporting.status import GroupStatus

Number = float | None


class Sample(NamedTuple):
    """Value of one series: the metric's name, the values of its labels without `group`, and the number."""

    metric: str
    labels: tuple[str, ...]
    value: float


@dataclass(frozen=True, slots=True)
class LakeFigures:
    """Figures of the lake beside those of `GroupStatus`.

    Attributes:
        tables: table -> its figures by their metrics; None: not known.
        positions: partition -> next offset to read, by its table.
        lag_s: partition -> age of the record there; 0.0 where nothing is left to read.
    """

    tables: Mapping[str, Mapping[str, Number]] = field(default_factory=dict)
    positions: Mapping[TopicPartition, int] = field(default_factory=dict)
    lag_s: Mapping[TopicPartition, float] = field(default_factory=dict)


def samples(found: GroupStatus, lake: LakeFigures) -> Iterator[Sample]:
    """All gauges."""
    yield from _partitions(found, lake)
    yield from _known((), {name: read(found) for name, read in _GROUP.items()})
    for name, labelled in _LABELLED.items():
        for label, value in labelled(found).items():
            yield from _known((label,), {name: value})
    # The newest incarnation of a number comes first; an older one is no series of its own
    for consumer, row in {row.consumer: row for row in reversed(found.consumers) if row.incarnation}.items():
        yield from _known((str(consumer),), {name: read(row) for name, read in _CONSUMER.items()})
    for table, figures in lake.tables.items():
        yield from _known((table,), figures)


def _partitions(found: GroupStatus, lake: LakeFigures) -> Iterator[Sample]:
    seen, states = found.facts, dict.fromkeys(found.idle_partitions, "idle") | found.partition_states
    target = found.target.assignment if found.target is not None else {}
    for tp in sorted({*target, *found.current, *seen.speeds, *seen.lags, *lake.positions}):
        labels = (tp.topic, str(tp.partition))
        figures = {
            "kgs_partition_write_bytes_per_second": seen.speeds.get(tp),
            "kgs_partition_speed_known": None if seen.measured_age_s is None else tp in seen.speeds,
            "kgs_partition_lag_records": seen.lags.get(tp),
            "kgs_partition_lag_seconds": lake.lag_s.get(tp),
            "kgs_partition_committed_offset": lake.positions.get(tp),
        }
        yield from _known(labels, figures)
        now = states.get(tp, "unread")
        for state in ("owned", "draining", "unread", "stopped", *(("idle",) if found.idle else ())):
            yield Sample("kgs_partition_state", (*labels, state), state == now)


def _known(labels: tuple[str, ...], figures: Mapping[str, Number]) -> Iterator[Sample]:
    return (Sample(name, labels, float(value)) for name, value in figures.items() if value is not None)


def _consumers(found: GroupStatus) -> dict[str, Number]:
    target, joined = found.target, [row for row in found.consumers if row.incarnation is not None]
    return {
        "wanted": None if target is None else len(target.consumers),
        "joined": len(joined),
        "spare": sum(row.state == "spare" for row in joined),
        "silent": sum(row.is_silent for row in joined),
        "quarantined": None if target is None else len(target.quarantined),
    }


def _capacities(found: GroupStatus) -> dict[str, Number]:
    packing = None if found.target is None else found.target.capacity
    capacity = found.capacity
    consumer = None if capacity.source == "unknown" else capacity.packing.consumer_capacity
    return {"packing": packing, "consumer": consumer, "learnt": capacity.consumer_bytes_per_s}


_GROUP: Mapping[str, Callable[[GroupStatus], Number]] = {
    "kgs_topics_consumed": lambda group: group.topics_consumed,
    "kgs_consumers_lower_bound": lambda group: group.least_consumers,
    "kgs_hot_partitions": lambda group: None if (hot := group.hot_partitions) is None else len(hot),
    "kgs_lag_unknown_partitions": lambda group: group.lag_unknown_partitions,
    "kgs_topics_with_bad_records": lambda group: len(group.bad_shares),
    "kgs_capacity_drift_ratio": lambda group: group.capacity.drift,
    "kgs_rscore_budget_remaining": lambda group: group.rscore_left,
    "kgs_forced_moves_only": lambda group: bool(group.quiet_until),
    "kgs_controller_up": lambda group: group.controller_is_heard,
    "kgs_controller_measurement_age_seconds": lambda group: group.facts.measured_age_s,
}
_LABELLED: Mapping[str, Callable[[GroupStatus], Mapping[str, Number]]] = {
    "kgs_consumers": _consumers,
    "kgs_consumer_capacity_bytes_per_second": _capacities,
    "kgs_consumer_flat_out_bytes_per_second": lambda group: {str(c): v for c, v in group.capacity.learnt.each.items()},
    "kgs_table_complete_until_seconds": lambda group: {
        each.table: None if each.until_ms is None else each.until_ms / 1000 for each in group.facts.complete
    },
    "kgs_newest_rows_lag_seconds": lambda group: {t: lag for t, (lag, _) in group.facts.newest_rows.items()},
    "kgs_newest_rows_max_lag_seconds": lambda group: {t: most for t, (_, most) in group.facts.newest_rows.items()},
    "kgs_state": lambda group: {str(state): state is group.run_state for state in RunState},
}
_CONSUMER: Mapping[str, Callable[[ConsumerRow], Number]] = {
    "kgs_consumer_load_bytes_per_second": lambda row: row.load,
    "kgs_consumer_read_bytes_per_second": lambda row: row.bytes_per_s,
    "kgs_consumer_report_age_seconds": lambda row: row.report_age_s,
    "kgs_consumer_batch_age_seconds": lambda row: row.batch_age_s,
    "kgs_consumer_memory_bytes": lambda row: row.work.memory_bytes if row.work is not None else None,
}
