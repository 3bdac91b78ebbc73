"""History of the group since the demonstration began: news for people, figures for the end."""

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import shorten

from kgs_core.adapters.fleet.host_process import HostProcess
from kgs_core.protocol import Change, Incarnation
from kgs_core.reporting.status import ConsumerRow, GroupStatus

_REASON_CHARACTERS = 45


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """The group's history in numbers.

    Attributes:
        rebalances: changes of the target that moved partitions.
        moved: partitions that these moved.
        rscore: the sum of what they cost.
        mean_consumers: how many read something, over the time since the first one did; None before that.
        max_consumers: the most that did at once.
    """

    rebalances: int
    moved: int
    rscore: float
    mean_consumers: float | None
    max_consumers: int


class DemoHistory:
    """Is told of the group again and again; `now` is seconds on a steady clock."""

    def __init__(self) -> None:
        self._members: dict[Incarnation, str] = {}
        self._changes: dict[int, Change] = {}
        self._first_s: float | None = None
        self._last_s = 0.0
        self._readers = 0
        self._most = 0
        self._reader_seconds = 0.0

    def note(self, group: GroupStatus, now: float) -> tuple[str, ...]:
        """Takes in how the group is now; returns the news since the last call."""
        self._count(len(set(group.current.values())), now)
        return (*self._decisions(group.changes), *self._people(group.consumers))

    @property
    def figures(self) -> GroupFigures:
        """As of the last call of `note`."""
        rebalances = [change for change in self._changes.values() if change.moved]
        span_s = 0.0 if self._first_s is None else self._last_s - self._first_s
        return GroupFigures(
            rebalances=len(rebalances),
            moved=sum(change.moved for change in rebalances),
            rscore=sum(change.rscore for change in rebalances),
            mean_consumers=self._reader_seconds / span_s if span_s else None,
            max_consumers=self._most,
        )

    def _count(self, readers: int, now: float) -> None:
        if self._first_s is None and not readers:
            return
        if self._first_s is None:
            self._first_s = self._last_s = now
        self._reader_seconds += self._readers * (now - self._last_s)
        self._last_s, self._readers = now, readers
        self._most = max(self._most, readers)

    def _people(self, lines: Iterable[ConsumerRow]) -> list[str]:
        there = {line.incarnation: _name(line) for line in lines if line.incarnation and line.process}
        news = [f"{name} has left" for i, name in self._members.items() if i not in there]
        news += [f"{name} has joined" for i, name in there.items() if i not in self._members]
        self._members = there
        return news

    def _decisions(self, changes: Iterable[Change]) -> list[str]:
        new = [change for change in changes if change.time_ms not in self._changes]
        # The last ten are told of every time, and how long one took is known only later
        self._changes.update((change.time_ms, change) for change in changes)
        return [describe(change) for change in new]


def describe(change: Change) -> str:
    """One change of the target in words."""
    readers = f"{change.consumers} consumer{'' if change.consumers == 1 else 's'}"
    moves = f"{change.moved} partitions move, Rscore {change.rscore:.2f}" if change.moved else "nothing moves"
    return f"target: {readers}, {moves}: {short_reason(change)}"


def short_reason(change: Change) -> str:
    """Every reason of a change, long lists of whom it concerns cut."""
    return "; ".join(shorten(reason, _REASON_CHARACTERS, placeholder=" ...") for reason in change.reason.split("; "))


def _name(line: ConsumerRow) -> str:
    process = HostProcess.of(line.process) if line.process else None
    return f"consumer {line.consumer} (pid {process.pid})" if process else f"consumer {line.consumer}"
