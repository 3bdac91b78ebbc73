"""Budget of an hour for changes that nothing forces, and what of it is spent.

What was moved stands in the Target itself, in its list of changes: so it is as durable as the Target, and whoever
controls the group next counts the same.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kgs_core.group.protocol import Change

HOUR_MS = 3_600_000
MAX_HISTORY = 10
"""Changes that a Target remembers for people."""
MAX_COUNTED = 100
"""Changes that a Target remembers at all: a record must stay small."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A change that waits, because it would move more than may be moved.

    Attributes:
        moved: Rscore of the changes within the last hour, those that were forced among them.
        most: what both together may be.
    """

    rscore: float
    moved: float
    most: float

    def __str__(self) -> str:
        """`held back: 1.2 of at most 1.0 Rscore an hour (0.7 moved, 0.5 to move)`."""
        both, most = _number(self.moved + self.rscore), _number(self.most)
        moved, rscore = _number(self.moved), _number(self.rscore)
        return f"held back: {both} of at most {most} Rscore an hour ({moved} moved, {rscore} to move)"


def over_budget(rscore: float, moved: float, most: float | None) -> HeldBack | None:
    """Why a change that nothing forces must wait; None: it need not. One that moves nothing never does."""
    if most is None or rscore <= 0 or rscore + moved <= most + _ROUNDING:
        return None
    return HeldBack(rscore, moved, most)


def moved_within_an_hour(history: Sequence[Change], time_ms: int) -> float:
    """Rscore of all changes in the hour before `time_ms`; those that a wrong clock has put after it count, too."""
    return math.fsum(change.rscore for change in history if change.time_ms > time_ms - HOUR_MS)


def with_change(history: Sequence[Change], change: Change) -> tuple[Change, ...]:
    """What a Target remembers: the last ten changes, and before them those that count against the budget.

    Of more than a hundred the earliest are summed up under the time of the last one of them, so that what was moved
    counts a little longer than an hour, and never shorter.
    """
    changes = [*history, change]
    last = changes[-MAX_HISTORY:]
    earlier = [c for c in changes[:-MAX_HISTORY] if c.rscore > 0 and c.time_ms > change.time_ms - HOUR_MS]
    room = MAX_COUNTED - len(last)
    if len(earlier) > room:
        folded, newest = earlier[: len(earlier) - room + 1], earlier[len(earlier) - room]
        moved = sum(one.moved for one in folded)
        time_ms = max(one.time_ms for one in folded)
        total = math.fsum(one.rscore for one in folded)
        earlier = [replace(newest, time_ms=time_ms, moved=moved, rscore=total), *earlier[len(folded) :]]
    return (*earlier, *last)


def _number(value: float) -> str:
    """`1.2`, `1.0`, `0.125`."""
    text = f"{value:.3f}".rstrip("0")
    return f"{text}0" if text.endswith(".") else text
