"""Measures what one event costs the pure controller of a large group in which nothing changes but the speeds."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from bench.scale_load import drawn_speeds, partitions_of, scale_settings
from kgs_core.errors import PermanentError
from kgs_core.group.controller.machine import begin, step
from kgs_core.group.controller.state import Options
from kgs_core.group.protocol import (
    Heartbeat,
    Incarnation,
    Member,
    MemberAssignment,
    Message,
    Phase,
    Process,
    Received,
    Report,
    Target,
)
from kgs_core.group.view.events import Event, FleetSeen, RecordsRead, Tick
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.planning.load import Load
from kgs_core.planning.shares import shares_of
from kgs_core.ports import Run

EVENTS = ("heartbeats", "fleet", "measurement", "tick")
_READS_A_SECOND = 10
_FLEET_EVERY = 5  # reads
_HEARTBEATS = 33  # of a read: each of a thousand consumers says something every three seconds
_READERS_SHARE = 0.9
_FILLED = 0.7  # of the capacity of all
_WARM_UP_S = 3
_GIVEN_AT, _REPORTED_AT = 100, 1000  # offsets


@dataclass(frozen=True, slots=True)
class EventTimes:
    """CPU of one kind of event, ms."""

    count: int
    mean_ms: float
    highest_ms: float


def time_events(partitions: int, consumers: int, seconds: int) -> Mapping[str, EventTimes]:
    """CPU of each kind of event (`EVENTS`) while so many seconds go by for the controller.

    Raises:
        PermanentError: it wanted to change something: the figures would not be those of a group at rest.
    """
    group = _RestingGroup(partitions, consumers)
    for _ in range(_WARM_UP_S):
        group.second()
    group.took_s = {name: [] for name in EVENTS}
    for _ in range(seconds):
        group.second()
    return {
        name: EventTimes(len(took), 1000 * sum(took) / len(took), 1000 * max(took))
        for name, took in group.took_s.items()
    }


class _RestingGroup:
    """A group as its Target has it, and the controller that watches it. No clock: a second goes by when asked to.

    Attributes:
        took_s: kind of event -> CPU seconds of each.
    """

    def __init__(self, partitions: int, consumers: int) -> None:
        settings = scale_settings("127.0.0.1:9")  # nobody is asked
        capacity = settings.packing.packing_capacity
        names = partitions_of(partitions)
        self._speeds = dict(zip(names, drawn_speeds(partitions, _FILLED * capacity * consumers, 1), strict=True))
        readers = max(1, int(_READERS_SHARE * consumers))
        target = self._target(names, readers, capacity)
        self._members = target.known
        self._runs = [Run(m.consumer, str(m.consumer), 100.0, is_over=False) for m in self._members]
        self._now = 0.0
        self._heartbeats = 0
        self._seconds = 0
        self.took_s: dict[str, list[float]] = {name: [] for name in EVENTS}
        options = Options(settings.packing, settings.membership, lambda: Random(0))  # noqa: S311
        self._state, _ = begin(options, self._now, 0)
        self._state, _ = step(self._state, RecordsRead(_records(target)), self._now)

    @staticmethod
    def _target(names: Sequence[TopicPartition], readers: int, capacity: float) -> Target:
        assignment = {tp: ConsumerId(1 + n % readers) for n, tp in enumerate(names)}
        spare = ConsumerId(readers + 1)
        known = tuple(Member(c, Incarnation(f"incarnation-{c}")) for c in sorted({*assignment.values(), spare}))
        return Target("mwf", assignment, (spare,), {}, capacity, 0.0, "", known, (), 0)

    def second(self) -> None:
        """A second of what a controller hears: heartbeats, the fleet, a measurement, and a Tick."""
        self._seconds += 1
        for number in range(_READS_A_SECOND):
            self._now += 1 / _READS_A_SECOND
            self._take("heartbeats", RecordsRead([self._heartbeat() for _ in range(_HEARTBEATS)]))
            if number % _FLEET_EVERY == 0:
                self._take("fleet", FleetSeen(self._runs))
        grown = 1 + 0.001 * (self._seconds % 3)
        self._take("measurement", Load({tp: speed * grown for tp, speed in self._speeds.items()}))
        self._take("tick", Tick())

    def _heartbeat(self) -> Received[Message]:
        self._heartbeats += 1
        member = self._members[self._heartbeats % len(self._members)]
        message = Heartbeat(member, self._heartbeats, Phase.READING, 0.0, None)
        return Received(message, _REPORTED_AT + len(self._members) + self._heartbeats, round(1000 * self._now))

    def _take(self, name: str, event: Event) -> None:
        began = time.thread_time()
        self._state, commands = step(self._state, event, self._now)
        self.took_s[name].append(time.thread_time() - began)
        if self._state.writing is not None:
            raise PermanentError(f"bench events: the controller changes the group: {commands[0]}")


def _records(target: Target) -> Sequence[Received[Message]]:
    shares = shares_of(target.assignment)
    records: list[Received[Message]] = [Received(target, 1, 0)]
    for member in target.known:
        share = shares.get(member.consumer, frozenset())
        process = Process({"run_id": str(member.consumer)})
        report = Report(member, 0, Phase.READING, 0.0, None, process, _GIVEN_AT, share)
        records.append(Received(MemberAssignment(member, share), _GIVEN_AT, 0))
        records.append(Received(report, _REPORTED_AT + member.consumer, 0))
    return records
