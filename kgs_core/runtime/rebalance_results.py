"""Results of the parts of a rebalance run."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kgs_core.group.controller.state import ControllerOutcome
from kgs_core.group.protocol import Received, Target
from kgs_core.group.view.group_view import GroupView
from kgs_core.model import TopicPartition
from kgs_core.planning.plan import Move, Plan


@dataclass(frozen=True, slots=True)
class Assigned:
    """Result of assigning the group.

    Attributes:
        is_written: whether a new Target was written.
        preview: the plan at that moment, with alternatives.
        outcome: None: a hand-over is to follow.
    """

    before: Received[Target] | None
    target: Received[Target] | None
    is_written: bool
    preview: Plan | None
    outcome: ControllerOutcome | None

    @property
    def rscore(self) -> float:
        """Of all that was written since `before`: a Target may be overtaken before a run records it."""
        if not self.is_written or self.target is None:
            return 0.0
        target = self.target.message
        times = [change.time_ms for change in target.history]
        if self.before is None or self.before.message.time_ms not in times:
            return target.rscore
        return math.fsum(change.rscore for change in target.history[times.index(self.before.message.time_ms) + 1 :])


@dataclass(frozen=True, slots=True)
class Priced:
    """Price of a change.

    Attributes:
        moves: moved partitions, the fastest first; None: not known any more.
    """

    target: Received[Target] | None
    rscore: float = 0.0
    moved: int = 0
    moves: tuple[Move, ...] | None = ()


@dataclass(frozen=True, slots=True)
class HandedOver:
    """End of a change.

    Attributes:
        gaps_s: partition that has another owner -> seconds for which it had none.
        taken_ms: when the last partition found another consumer, ms since 1970; None where none has. The
            end may come much later: it waits for a new spare, too.
        started_s: from the Target until all consumers had joined that it reads by; None: it was not written by this
            run or for it, or they have not.
    """

    outcome: ControllerOutcome
    target: Received[Target] | None
    duration_s: float
    gaps_s: Mapping[TopicPartition, float]
    unowned: frozenset[TopicPartition]
    double_owners: tuple[str, ...] = ()
    taken_ms: int | None = None
    started_s: float | None = None


def started_s(view: GroupView) -> float | None:
    """From the newest Target until all consumers had joined that it reads by; None: they have not."""
    target, newest = view.target, view.newest()
    if target is None:
        return None
    readers = [newest.get(consumer) for consumer in set(target.message.assignment.values())]
    heard_ms = [reader.first_heard_ms for reader in readers if reader and reader.first_heard_ms is not None]
    if len(heard_ms) < len(readers):
        return None
    return max(0, max(heard_ms, default=0) - target.timestamp_ms) / 1000
