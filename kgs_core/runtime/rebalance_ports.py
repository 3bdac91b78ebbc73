"""Ports of a rebalance run, and the request behind it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kgs_core.group.protocol import Heartbeat, Message, Received, Report, Target
from kgs_core.planning.load import Load
from kgs_core.ports import ControllerWriter, Fleet, GroupTopicReader
from kgs_core.runtime.controller_loop import MeasurementSource


class GroupTopicAccess(Protocol):
    """The group's topics."""

    def reader(self) -> GroupTopicReader | None:
        """Reader without the right to write; None: the topics do not exist yet."""

    def controller(self) -> tuple[GroupTopicReader, ControllerWriter]:
        """Reader and writer; creates missing topics."""


class Feed(MeasurementSource, Protocol):
    """Source of published measurements: a run begins with the one that it refers to, and takes newer ones."""

    def at(self, offset: int | None) -> Load | None:
        """The measurement at an offset, or the newest; None: it does not exist."""

    def measure(self) -> Load:
        """A measurement of our own, which takes as long as the window is."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """Steady clock and wall clock."""

    steady: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class RunPorts:
    """Ports of a rebalance run."""

    topics: GroupTopicAccess
    fleet: Fleet
    feed: Feed
    clocks: Clocks = Clocks()


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference of a run to the observation that it was requested for.

    Attributes:
        measurement_offset: measurement to pack by; None: the newest. If it is too old, another one is used.
        report_age_s: age of the report at `report_offset`, which a run that has just begun to listen cannot know.
        packs: it may pack anew; False: it carries out the present Target, and needs no measurement.
        written: offset of the Target that was written for this run before it began; None: it writes one itself.
    """

    measurement_offset: int | None = None
    report_offset: int | None = None
    report_age_s: float = 0.0
    packs: bool = True
    written: int | None = None

    def age_of(self, messages: Sequence[Received[Message]]) -> float:
        """Lower bound on the age of the newest report among `messages`; 0 if it arrived after the request."""
        offsets = [one.offset for one in messages if isinstance(one.message, Report | Heartbeat)]
        return self.report_age_s if offsets and max(offsets) == self.report_offset else 0.0

    def packed_by(self, feed: Feed) -> Load | None:
        """The measurement that the Target at `written` was packed by, however old; None: there is none."""
        return None if self.written is None or self.measurement_offset is None else feed.at(self.measurement_offset)

    def divided(
        self, messages: Sequence[Received[Message]]
    ) -> tuple[Sequence[Received[Message]], Sequence[Received[Message]]]:
        """What the topics said before the Target at offset `written`, and the rest; all and nothing without it."""
        targets = (one for one in messages if isinstance(one.message, Target))
        first = next((one for one in targets if one.offset == self.written), None)
        if first is None:
            return messages, ()
        earlier = [one for one in messages if one is not first and one.timestamp_ms <= first.timestamp_ms]
        return earlier, [one for one in messages if one is first or one.timestamp_ms > first.timestamp_ms]
