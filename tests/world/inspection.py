"""Looks on from outside, where the truth is known, and says what must not have happened."""

from collections.abc import Iterable, Sequence

from kgs_core.group.controller.state import ControllerState, Options
from kgs_core.group.protocol import Heartbeat, Incarnation, Report, Target, Tombstone
from tests.world.fleet import SimFleet
from tests.world.group_events import Fact, FactKind
from tests.world.group_history import GroupHistory
from tests.world.idleness import Idleness, Powers
from tests.world.requests import Requests
from tests.world.topics import Topics

_NOBODY: frozenset[Incarnation] = frozenset()
UNREAD_S = 5.0
"""Within so many seconds after a suspicion what nobody reads is read, where everybody has a turn each second."""


class Inspection:
    """Follows the topics record by record, and looks at what processes really hold.

    Attributes:
        problems: everything that was wrong, a line each, in the order in which it was found.
        doubled: starts of a consumer that had a fresh report of a living process. A controller that was frozen, or has
            not read that report, cannot know better, so this is wrong only where nothing of the kind was done.
    """

    def __init__(self, options: Options, topics: Topics, fleet: SimFleet) -> None:
        self._topics = topics
        self._fleet = fleet
        membership, packing = options.membership, options.packing
        limit_s = membership.suspect_after_s + UNREAD_S
        self._idleness = Idleness(topics, fleet, limit_s, strict=membership.strict_handover)
        self._fresh_ms = membership.suspect_after_s * 500
        self._group = GroupHistory(strict=membership.strict_handover, max_consumers=packing.max_consumers)
        self._requests = Requests(forced_only=packing.apply == "forced_only")
        self._seen = 0
        self._started = 0
        self._dead: frozenset[Incarnation] = _NOBODY
        self._suspected: frozenset[Incarnation] = _NOBODY
        self._excused: frozenset[Incarnation] = _NOBODY
        self._heard_ms: dict[Incarnation, int] = {}
        self.problems: list[str] = []
        self.doubled: list[str] = []

    def look(self, controllers: Sequence[ControllerState], powers: Powers | None = None) -> None:
        """Everything that has happened since the last look.

        Args:
            controllers: those that live.
            powers: what they can do; None: not to be judged by what nobody reads.
        """
        records = self._topics.history[self._seen :]
        self._seen = len(self._topics.history)
        events = [*self._deaths(), *self._suspicions(controllers), *records]
        self._say(self._group.take(events, self._topics.torn))
        self._say(self._group.check_owners({p.member: p.owned for p in self._fleet.living()}))
        for received in records:
            message = received.message
            self._say(self._requests.take(received))
            if isinstance(message, Tombstone) and message.member.incarnation not in self._dead:
                self._say([f"a tombstone of {message.member}, which lives"])
            if isinstance(message, Target) and message.idle is not None:
                read = self._topics.read
                self._say(f"it sleeps, and {p} is not read" for p, end in message.idle.ends.items() if read[p] < end)
            if isinstance(message, Report | Heartbeat):
                self._heard_ms[message.member.incarnation] = received.timestamp_ms
        self._look_at_starts()
        if powers is not None:
            self._say(self._idleness.look(powers))

    def _deaths(self) -> list[Fact]:
        dead = frozenset(p.member.incarnation for p in self._fleet.processes.values() if not p.lives)
        new, self._dead = dead - self._dead, dead
        return [self._fact(incarnation, FactKind.DEAD) for incarnation in sorted(new)]

    def _suspicions(self, controllers: Sequence[ControllerState]) -> list[Fact]:
        """Who is suspected by any controller, or was by one that is gone, whose last transaction has yet to end."""
        suspected = _NOBODY.union(*(state.suspects() for state in controllers))
        if self._topics.hanging:
            self._excused |= self._suspected | suspected
            suspected |= self._excused
        else:
            suspected |= self._excused
            self._excused = _NOBODY
        facts = [self._fact(incarnation, FactKind.SUSPECTED) for incarnation in sorted(suspected - self._suspected)]
        facts += [self._fact(incarnation, FactKind.HEARD) for incarnation in sorted(self._suspected - suspected)]
        self._suspected = suspected
        return facts

    def _look_at_starts(self) -> None:
        for process in self._fleet.started[self._started :]:
            for twin in self._fleet.of(process.consumer):
                age_ms = self._topics.clock.ms - self._heard_ms.get(twin.member.incarnation, -(10**9))
                if twin is not process and age_ms <= self._fresh_ms:
                    self.doubled.append(f"at {self._topics.clock.now:g} s: {process.handle} beside {twin.member}")
        self._started = len(self._fleet.started)

    def _fact(self, incarnation: Incarnation, kind: FactKind) -> Fact:
        return Fact(incarnation, kind, self._topics.clock.ms)

    def _say(self, problems: Iterable[str]) -> None:
        self.problems += [f"at {self._topics.clock.now:g} s: {problem}" for problem in problems]
