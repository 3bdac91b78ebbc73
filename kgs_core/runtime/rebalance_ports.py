"""Ports of a rebalance run, and what it was asked for."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kgs_core.group.protocol import Heartbeat, Message, Received, Report
from kgs_core.group.view.events import Measured
from kgs_core.ports import ControllerWriter, Fleet, GroupTopicReader
from kgs_core.runtime.controller_loop import MeasurementSource


class GroupTopicAccess(Protocol):
    """The group's topics."""

    def reader(self) -> GroupTopicReader | None:
        """For who only reads; None: there are none yet."""

    def controller(self) -> tuple[GroupTopicReader, ControllerWriter]:
        """For who writes; makes those that are missing."""


class Feed(MeasurementSource, Protocol):
    """Source of measurements that were published: a run is referred to one of them, and takes the newer ones."""

    def at(self, offset: int | None) -> Measured | None:
        """The one at an offset, or the newest; None: it is not there."""

    def measure(self) -> Measured:
        """One of our own: takes as long as the window is."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """Steady clock and wall clock."""

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
