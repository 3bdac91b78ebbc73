"""Work, a fault, rest, and whether the tables become the database's: again and again, with the lag meanwhile."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bench.debezium.follower import Follower

_SAMPLE_S = 1.0
_POLL_S = 0.5


def _restart_broker(follower: Follower) -> None:
    (node,) = follower.kafka.nodes
    node.kill()
    follower.kafka.restart(node)


FAULTS: dict[str, Callable[[Follower], None]] = {
    "none": lambda _: None,
    "consumer": lambda follower: follower.kill_consumer(),
    "control": lambda follower: follower.restart("control"),
    "debezium": lambda follower: follower.restart("debezium"),
    "postgres": lambda follower: follower.restart("postgres"),
    "broker": _restart_broker,
    "column": lambda follower: follower.workload.add_column(),
    "snapshot": lambda follower: follower.workload.snapshot(),
    "truncate": lambda follower: follower.workload.truncate(),
}
"""What can happen while the workload writes: SIGKILL and a new start, or something that a person does."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Figures of one round.

    Attributes:
        fault: of `FAULTS`.
        changes: rows changed in it.
        per_s: of them, while the workload wrote.
        rows: of both tables in the database.
        lag_s: longest and median age of the youngest change that the table showed, while the workload wrote; None:
            it showed none.
        settle_s: from the last change until tables and database were equal; None: they never were.
        differences: what differed in the end.
    """

    fault: str
    changes: int
    per_s: float
    rows: int
    lag_s: tuple[float, float] | None
    settle_s: float | None
    differences: Sequence[str]


def run_rounds(
    follower: Follower, faults: Sequence[str], work_s: float, limit_s: float, show: Callable[[Settled], None]
) -> list[Settled]:
    """One round for each fault, which comes in the middle of `work_s`; then up to `limit_s` for tables to be equal."""
    found = []
    for fault in faults:
        before, began = follower.workload.changes, time.monotonic()
        follower.workload.write()
        lags = _watched(follower, work_s / 2)
        FAULTS[fault](follower)
        lags += _watched(follower, work_s / 2)
        follower.workload.rest()
        changes, rested = follower.workload.changes - before, time.monotonic()
        while (differences := follower.differences()) and time.monotonic() - rested < limit_s:
            time.sleep(_POLL_S)
        settle_s = None if differences else time.monotonic() - rested
        lag_s = (max(lags), sorted(lags)[len(lags) // 2]) if lags else None
        rows = follower.workload.count()
        found.append(Settled(fault, changes, changes / (rested - began), rows, lag_s, settle_s, differences))
        show(found[-1])
        if differences:
            break
    return found


def _watched(follower: Follower, seconds: float) -> list[float]:
    """Age of the youngest change that the table shows, again and again."""
    found, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(_SAMPLE_S)
        if (newest := follower.newest_change()) is not None:
            found.append((datetime.now(UTC) - newest).total_seconds())
    return found
