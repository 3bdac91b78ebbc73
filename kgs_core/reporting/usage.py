"""Usage of a group in a range of time, by what its consumers have reported: how long they ran, what changed hands.

Times are ms since 1970 by the brokers' clock. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kgs_core.group.protocol import Heartbeat, Incarnation, Message, Phase, Received, Report, Starting
from kgs_core.group.view.handover_gaps import Handover, Unread
from kgs_core.model import grouped

SELF_FENCE = 3
"""Times `suspect_after_s`: a consumer that cannot report for so long ends itself, see rule 7 of the group."""


class Period(NamedTuple):
    """A range of time, [since, until), ms."""

    since_ms: int
    until_ms: int

    def within(self, other: "Period") -> "Period":
        """The part of it that is in `other`; empty where there is none."""
        since = max(self.since_ms, other.since_ms)
        return Period(since, max(since, min(self.until_ms, other.until_ms)))

    @property
    def length_s(self) -> float:
        """How long it is."""
        return (self.until_ms - self.since_ms) / 1000


@dataclass(frozen=True, slots=True)
class GroupUsage:
    """Usage of a group.

    Attributes:
        lives: when processes of consumers ran, one after the other for each process, those of spares among them.
        silences: when processes that are not known to have ended were not heard: whether they ran is not known.
        known_since_ms: of the first report that is there: of the time before it nothing is known; None: there is none.
        handovers: partitions that found another reader.
        refused: records that are no report of ours.
        by_class: class -> those of `lives` of its consumers; empty: no consumer said that it has one.
    """

    lives: tuple[Period, ...] = ()
    silences: tuple[Period, ...] = ()
    known_since_ms: int | None = None
    handovers: tuple[Handover, ...] = ()
    refused: int = 0
    by_class: Mapping[str, tuple[Period, ...]] = field(default_factory=dict)


def overlap_s(lives: Iterable[Period], periods: Sequence[Period]) -> float:
    """Seconds of `lives`, added up, that lie in `periods`, which do not overlap."""
    return sum(life.within(period).length_s for life in lives for period in periods)


def running_at(lives: Iterable[Period], time_ms: int) -> int:
    """How many processes ran at a moment."""
    return sum(1 for life in lives if life.since_ms <= time_ms < life.until_ms)


class UsageCount:
    """Follows the reports of a group, oldest first.

    A process has run from its first sign of life to its last, and between two of them where they are no further apart
    than `suspect_after_s`. A longer silence is neither running nor not running. So is the time after the last sign of
    one that never said that it ends, up to the moment when it would have ended itself.
    """

    def __init__(self, suspect_after_s: float) -> None:
        self._silence_ms = round(suspect_after_s * 1000)
        self._first: dict[Incarnation, int] = {}
        self._last: dict[Incarnation, int] = {}
        self._ended: set[Incarnation] = set()
        self._lives: list[tuple[Incarnation, Period]] = []
        self._classes: dict[Incarnation, str] = {}
        self._silences: list[Period] = []
        self._unread = Unread()

    def take(self, messages: Iterable[Received[Message]]) -> None:
        """More of what the topic of reports holds, in its order."""
        for one in messages:
            if isinstance(one.message, Report | Heartbeat | Starting):
                self._heard(one.message, one.timestamp_ms)
                self._unread.take((one,))

    def usage(self, period: Period, known_since_ms: int | None, refused: int = 0) -> GroupUsage:
        """What is known of `period`; what was reported until its end has been taken.

        Args:
            known_since_ms: when the first report was made that the topic still has; None: it has none.
        """
        lives, silences = list(self._lives), list(self._silences)
        for incarnation, last in self._last.items():
            lives_on = incarnation not in self._ended and period.until_ms - last <= self._silence_ms
            until_ms = period.until_ms if lives_on else last
            lives.append((incarnation, Period(self._first[incarnation], until_ms)))
            if incarnation not in self._ended and not lives_on:
                silences.append(Period(last, last + SELF_FENCE * self._silence_ms))
        handovers = [h for h in self._unread.handovers if period.since_ms <= h.taken_ms < period.until_ms]
        named = grouped((self._classes.get(incarnation, ""), life) for incarnation, life in lives)
        return GroupUsage(
            _inside((life for _, life in lives), period),
            _inside(silences, period),
            known_since_ms,
            tuple(handovers),
            refused,
            {name: _inside(each, period) for name, each in sorted(named.items())} if any(named) else {},
        )

    def _heard(self, sign: Report | Heartbeat | Starting, time_ms: int) -> None:
        incarnation = sign.member.incarnation
        if incarnation in self._ended:
            return
        last = self._last.get(incarnation, time_ms)
        time_ms = max(last, time_ms)  # another broker's clock may be behind
        if time_ms - last > self._silence_ms:
            self._lives.append((incarnation, Period(self._first.pop(incarnation), last)))
            self._silences.append(Period(last, time_ms))
        self._first.setdefault(incarnation, time_ms)
        self._last[incarnation] = time_ms
        if isinstance(sign, Report):
            self._classes[incarnation] = sign.consumer_class
        if isinstance(sign, Report | Heartbeat) and sign.phase is Phase.ENDED:
            self._ended.add(incarnation)


def _inside(found: Iterable[Period], period: Period) -> tuple[Period, ...]:
    cut = (each.within(period) for each in found)
    return tuple(sorted(each for each in cut if each.until_ms > each.since_ms))
