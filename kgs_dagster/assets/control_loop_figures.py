"""Figures of the control loop: plain numbers, which Dagster draws over time, and tables. Names must stay."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import dagster as dg

from kgs_core.config import Settings
from kgs_core.group.protocol import Received, Target
from kgs_core.model import Assignment, TopicPartition, WriteSpeeds
from kgs_core.packing import rebalanced
from kgs_core.planning.load import Load
from kgs_core.planning.overload import consumer_loads
from kgs_core.planning.plan import Move, Plan
from kgs_core.reporting.plan_json import assignment_values
from kgs_dagster.metadata import table, three_digits
from kgs_dagster.resources import RebalanceConfig

if TYPE_CHECKING:
    from kgs_core.runtime.rebalance_results import Assigned, HandedOver, Priced

MOST_ROWS = 1000
"""Of a table, and partitions whose exact speeds are recorded; of a larger group the reference is all there is."""
Metadata = dict[str, Any]
Row = Mapping[str, str | int | float | bool]


def of_measurement(settings: Settings, load: Load) -> Metadata:
    """What partitions are packed by."""
    speeds = sorted(load.speeds.items(), key=lambda each: (-each[1], each[0]))
    rows = [_row(tp, bytes_per_s=round(speed, 1)) for tp, speed in speeds]  # the exact ones: `inputs`
    found: Metadata = {
        "partitions": len(load.speeds.keys() | load.unknown),
        "unknown_partitions": len(load.unknown),
        "total_load_bytes_per_s": three_digits(sum(load.speeds.values())),
        "max_partition_bytes_per_s": three_digits(max(load.speeds.values(), default=0.0)),
        "measurement_age_s": three_digits(load.age_s),
        "speeds": table(rows[:MOST_ROWS], {**_PARTITION, "bytes_per_s": "float"}),
        "inputs": dg.MetadataValue.json(_inputs(settings, load.measurement_offset, load)),
    }
    if load.measurement_offset is not None:
        found["measurement_offset"] = load.measurement_offset
    return found


def of_assignment(settings: Settings, assigned: "Assigned", config: RebalanceConfig) -> Metadata:
    """The Target that stands, and how it came to stand."""
    target = assigned.target.message if assigned.target else None
    outcome = ": ".join(filter(None, (assigned.outcome.result, assigned.outcome.reason))) if assigned.outcome else ""
    found: Metadata = {
        "outcome": outcome or ("a new Target" if assigned.is_written else "the Target that stands is carried out"),
        "is_new": assigned.is_written,
        "asked_because": config.reason,
        "attempt": str(config.attempt),  # a number would be drawn
    }
    offset = target.measurement_offset if target else None
    more: Metadata = {}  # what is read last
    if assigned.preview is not None:
        inputs = _inputs(settings, offset, assigned.preview.measured) | {
            "packing": assigned.preview.packing.model_dump(mode="json"),
            "target_before": _named(assigned.before),
            "read_before": assignment_values(assigned.preview.group.current),
            "spares": sorted(assigned.preview.group.spares),
            "quarantined": sorted(assigned.preview.group.quarantined),
        }
        more = {"alternatives": _alternatives(assigned.preview), "inputs": dg.MetadataValue.json(inputs)}
    if target is None or assigned.target is None:
        return found | more
    before = assigned.before.message.assignment if assigned.before else {}
    figures = {
        "target_offset": assigned.target.offset,
        "reason": target.reason,
        "algorithm": target.algorithm,
        "packing_capacity_bytes_per_s": three_digits(target.capacity),
        **({} if target.learnt is None else {"flat_out_bytes_per_s": three_digits(target.learnt.bytes_per_s)}),
        "spares": len(target.spares),
        # What this run changes; the Target that stands may have been dear when it was made
        "rscore": three_digits(assigned.rscore),
        "moved_partitions": len(rebalanced(before, target.assignment)) if assigned.is_written else 0,
        **_loads(target.assignment, target.speeds),
    }
    return found | figures | {"assignment": _assignment(target.assignment, before, target.speeds)} | more


def of_price(priced: "Priced") -> Metadata:
    """What a change costs."""
    found: Metadata = {"rscore": three_digits(priced.rscore), "moved_partitions": priced.moved}
    if priced.moves is not None:
        found["moved_bytes_per_s"] = three_digits(sum(move.bytes_per_s for move in priced.moves))
        found["moves"] = _moves(priced.moves)
    if priced.target is not None:
        target = priced.target.message
        found |= {"target_offset": priced.target.offset, "consumers": len(set(target.assignment.values()))}
    return found


def of_handover(done: "HandedOver", config: RebalanceConfig, times: Metadata) -> Metadata:
    """How a change ended, how long it took (`of_times`), and what was left unread while it lasted."""
    gaps = done.gaps_s
    target = done.target.message if done.target else None
    speeds = target.speeds if target else {}
    rows = [
        _row(tp, unread_s=round(gap_s, 3), consumer=int(target.assignment.get(tp, 0)) if target else 0)
        for tp, gap_s in sorted(gaps.items(), key=lambda each: (-each[1], each[0]))
    ]
    return {
        "outcome": f"{done.outcome.result}{f': {done.outcome.reason}' if done.outcome.reason else ''}",
        "asked_because": config.reason,
        **times,
        "duration_s": three_digits(done.duration_s),
        "moved_partitions": len(gaps),
        "unread_s": three_digits(sum(gaps.values())),
        "max_unread_s": three_digits(max(gaps.values(), default=0.0)),
        "unread_bytes": three_digits(sum(speeds.get(tp, 0.0) * gap_s for tp, gap_s in gaps.items())),
        "unowned_partitions": len(done.unowned),
        "consumers": len(set(target.assignment.values())) if target else 0,
        "handed_over": table(rows[:MOST_ROWS], {**_PARTITION, "unread_s": "float", "consumer": "int"}),
    }


def of_times(instants: Sequence[float | None]) -> Metadata:
    """How long a change took from its measurement on, and where that time went.

    Args:
        instants: when was measured, decided (the run was asked for), begun (it ran), written (the Target), when all
            consumers had joined that it reads by, and when the last partition was taken over; seconds since 1970.
            None: not known.

    Returns:
        Nothing unless all of it was this change: a run that carries on another one's, or that was asked for by hand
        long after its measurement, says nothing of how fast the group answers.
    """
    known = [instant for instant in instants if instant is not None]
    if len(known) < len(instants) or sorted(known) != known:
        return {}
    steps = [round(after - before, 3) for before, after in pairwise(known)]
    return {**dict(zip(_TIMES, steps, strict=True)), "reaction_s": round(known[-1] - known[0], 3)}


def times_text(times: Metadata) -> str:
    """The same in a line for the log."""
    parts = [f"{name.removesuffix('_s').replace('_', ' ')} {times[name]:.1f} s" for name in _TIMES]
    return f"measured -> handed over in {times['reaction_s']:.1f} s: {', '.join(parts)}"


_TIMES = (
    "measured_to_decided_s",
    "decided_to_begun_s",
    "begun_to_target_s",
    "target_to_started_s",
    "started_to_handed_over_s",
)
_PARTITION = {"topic": "string", "partition": "int"}
_ASSIGNMENT = {**_PARTITION, "consumer": "int", "before": "string", "bytes_per_s": "float"}
_ABOUT = {
    "consumer": "consumer that is to read it",
    "before": "previous consumer; empty: none",
    "bytes_per_s": "write speed that it was packed with",
}


def _assignment(target: Assignment, before: Assignment, speeds: WriteSpeeds) -> dg.TableMetadataValue:
    order = sorted(target, key=lambda tp: (before.get(tp) == target[tp], target[tp], tp))
    rows = [
        _row(
            tp,
            consumer=int(target[tp]),
            before=str(before[tp]) if tp in before else "",
            bytes_per_s=round(speeds.get(tp, 0.0), 1),
        )
        for tp in order[:MOST_ROWS]
    ]
    return table(rows, _ASSIGNMENT, _ABOUT)


def _moves(moves: Sequence[Move]) -> dg.TableMetadataValue:
    rows = [
        _row(move.partition, source=int(move.source), destination=int(move.destination), bytes_per_s=move.bytes_per_s)
        for move in moves[:MOST_ROWS]
    ]
    columns = {**_PARTITION, "source": "int", "destination": "int", "bytes_per_s": "float"}
    return table(rows, columns)


def _alternatives(plan: Plan) -> dg.TableMetadataValue:
    """The plan first, then the others from the one that needs the fewest consumers on."""
    others = sorted(plan.alternatives, key=lambda other: (other.consumers, other.rscore, other.algorithm))
    columns = {"algorithm": "string", "consumers": "int", "rscore": "float", "moved": "int"}
    rows = [
        {**asdict(each), "rscore": round(each.rscore, 4), "max_load_bytes_per_s": round(each.max_load_bytes_per_s, 1)}
        for each in (plan.summary(), *others)
    ]
    return table(rows, columns | {"max_load_bytes_per_s": "float"})


def _loads(assignment: Assignment, speeds: WriteSpeeds) -> Metadata:
    loads = consumer_loads({tp: c for tp, c in assignment.items() if tp in speeds}, speeds)
    return {
        "consumers": len(set(assignment.values())),
        "partitions": len(assignment),
        "total_load_bytes_per_s": three_digits(sum(loads.values())),
        "max_load_bytes_per_s": three_digits(max(loads.values(), default=0.0)),
    }


def _inputs(settings: Settings, offset: int | None, load: Load) -> Metadata:
    """Everything that a plan is made from, exactly, as far as it is not too much."""
    found: Metadata = {
        "measurement": {"topic": f"kgs.{settings.group}.monitor.writeSpeed", "partition": 0, "offset": offset},
        "packing": settings.packing.model_dump(mode="json"),
        "unknown": [str(tp) for tp in sorted(load.unknown)[:MOST_ROWS]],
    }
    if len(load.speeds) <= MOST_ROWS:
        found["speeds"] = {str(tp): speed for tp, speed in sorted(load.speeds.items())}
    return found


def _named(target: Received[Target] | None) -> Metadata | None:
    if target is None:
        return None
    assignment = target.message.assignment
    values = assignment_values(assignment) if len(assignment) <= MOST_ROWS else {}
    return {"offset": target.offset, "assignment": values, "spares": list(target.message.spares)}


def _row(tp: TopicPartition, **more: str | float | bool) -> Row:
    return {"topic": tp.topic, "partition": tp.partition, **more}
