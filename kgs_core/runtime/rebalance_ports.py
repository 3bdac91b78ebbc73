"""Ports of a rebalance run, and what it puts between itself and the topics: ears, and a last check."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kgs_core.group.protocol import Heartbeat, MemberAssignment, Message, Received, Report, Target, Tombstone
from kgs_core.group.view.events import Measured, Write
from kgs_core.group.view.handover_gaps import Unread
from kgs_core.ports import ControllerWriter, Fleet, GroupTopicAccess, GroupTopicReader
from kgs_core.runtime.measurement_source import MeasurementSource


class Feed(MeasurementSource, Protocol):
    """Source of measurements that were published: a run is referred to one of them, and takes the newer ones."""

    def at(self, offset: int | None) -> Measured | None:
        """The one at an offset, or the newest; None: it is not there."""

    def measure(self) -> Measured:
        """One of our own: takes as long as the window is."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """Steady clock and wall clock.

    Attributes:
        steady: seconds, for everything that is measured.
        wall: seconds since 1970.
    """

    steady: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class RunPorts:
    """The world."""

    topics: GroupTopicAccess
    fleet: Fleet
    feed: Feed
    clocks: Clocks = Clocks()


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference of a run to what it was asked for.

    Attributes:
        measurement_offset: of the measurement to pack by; None: the newest one. Where it is too old, another one.
        report_offset: of the newest report that was there; None: not known.
        report_age_s: how long ago that had come: a run that has only begun to listen cannot know it.
        packs: it may pack anew; else it carries out the Target that stands, and needs no measurement.
    """

    measurement_offset: int | None = None
    report_offset: int | None = None
    report_age_s: float = 0.0
    packs: bool = True

    def age_of(self, messages: Sequence[Received[Message]]) -> float:
        """How long ago the newest report among `messages` came at least; 0 where it came after this was said."""
        offsets = [one.offset for one in messages if isinstance(one.message, Report | Heartbeat)]
        return self.report_age_s if offsets and max(offsets) == self.report_offset else 0.0


class ObservedGroupTopicReader:
    """Port `GroupTopicReader`; whatever is read is also passed to those who keep count."""

    def __init__(self, reader: GroupTopicReader, unread: Unread) -> None:
        self._topic_reader = reader
        self._unread = unread
        self._has_begun = False

    def read_to_end(self) -> Sequence[Received[Message]]:
        """See `GroupTopicReader`. What changed hands before the first time is none of ours."""
        messages = self._topic_reader.read_to_end()
        self._unread.take(messages)
        if not self._has_begun:
            self._unread.forget_gaps()
            self._has_begun = True
        return messages

    def poll(self, timeout_s: float) -> Sequence[Received[Message]]:
        """See `GroupTopicReader`."""
        messages = self._topic_reader.poll(timeout_s)
        self._unread.take(messages)
        return messages


class CheckedControllerWriter:
    """Port `ControllerWriter`; `check` sees every write before it is made, and may refuse it by an error."""

    def __init__(self, writer: ControllerWriter, check: Callable[[Write], None]) -> None:
        self._controller_writer = writer
        self._check = check

    def fence(self) -> None:
        """See `ControllerWriter`."""
        self._controller_writer.fence()

    def write(
        self,
        target: Target | None,
        assignments: Sequence[MemberAssignment],
        tombstones: Sequence[Tombstone],
    ) -> Sequence[Received[Message]]:
        """See `ControllerWriter`."""
        self._check(Write(target, tuple(assignments), tuple(tombstones)))
        return self._controller_writer.write(target, assignments, tombstones)
