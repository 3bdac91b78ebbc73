"""Measures the whole group at a size: the real controller and a real broker, members and load simulated."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from math import log
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from bench.process import BenchProcess
from bench.scale_load import WINDOW_S, GrowingLogs, scale_settings
from kgs_core.config import Settings
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import TransientError
from kgs_core.group.controller.state import ControllerState, Options
from kgs_core.group.controller.terms import terms_of
from kgs_core.group.protocol import Process
from kgs_core.group.topics.controller_writer import KafkaControllerWriter
from kgs_core.group.topics.topic_reader import KafkaGroupTopicReader
from kgs_core.group.topics.topics import GroupTopic, GroupTopics, create_topics
from kgs_core.group.view.transitions import State
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.client_config import admin_client
from kgs_core.model import ConsumerId
from kgs_core.monitor.kafka.measurement_thread import MeasurementThread
from kgs_core.monitor.kafka.monitor import Monitor
from kgs_core.monitor.kafka.topic import topic_name
from kgs_core.ports import Run
from kgs_core.runtime.controller_loop import ControlLoop, ControlPorts
from kgs_core.system.shutdown import StopFlag

_QUIET_S = 6.0
"""A change is over when none has followed for so long, and the window has only seen what came after the step."""
_CHANGE_WITHIN_S = 120.0
"""Of the load's step. With very many partitions the controller looks for another plan seldom."""
_GIVE_UP_S = 1200.0
_MEMBERS = "bench.scale_members"


class GroupSize(NamedTuple):
    """Size of a group."""

    partitions: int
    consumers: int


class _Steady(NamedTuple):
    """Figures of the steady state, as in `ScaleFigures`."""

    cpu: float
    loop_ms: float
    member_bytes_per_s: float
    stored_bytes_per_s: float
    monitor_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class ScaleFigures:
    """Figures of one size. CPU is of the controller's process, with its monitor and its clients.

    Attributes:
        first_s: from the controller's start to the last assignment of the first packing applied.
        readers: consumers that read after it.
        step_s: from a step of the load to the last assignment applied; the window's 10 s are in it.
        step_cpu_s: CPU until the step's change was over.
        step_moved: partitions that it moved.
        steady_cpu: CPU seconds per second while nothing changes.
        steady_loop_ms: mean CPU of the controller's own thread for an event then, ms.
        member_bytes_per_s: reports and heartbeats as encoded.
        stored_bytes_per_s: growth of the group's topics on the broker's disk but for the next.
        monitor_bytes_per_s: growth of `monitor.writeSpeed` on the broker's disk.
    """

    partitions: int
    consumers: int
    first_s: float
    readers: int
    step_s: float
    step_cpu_s: float
    step_moved: int
    steady_cpu: float
    steady_loop_ms: float
    member_bytes_per_s: float
    stored_bytes_per_s: float
    monitor_bytes_per_s: float

    def to_dict(self) -> dict[str, Any]:
        """By the names above."""
        return asdict(self)


def growth(smaller: ScaleFigures, larger: ScaleFigures) -> dict[str, float]:
    """Exponent in the number of partitions of each figure that is above 0 in both."""
    ratio = log(larger.partitions / smaller.partitions)
    found = {}
    for name, value in larger.to_dict().items():
        before = smaller.to_dict()[name]
        if name not in ("partitions", "consumers") and before > 0 and value > 0 and ratio:
            found[name] = log(value / before) / ratio
    return found


def run_scale(
    directory: Path, sizes: Sequence[GroupSize], steady_s: float, say: Callable[[str], None], stop: StopFlag
) -> list[ScaleFigures]:
    """Figures of each size, each on a broker of its own.

    Raises:
        PermanentError: no broker can be started.
        TransientError: a change was not over in 20 minutes.
    """
    found = []
    for number, size in enumerate(sizes):
        if stop.is_set:
            break
        folder = directory / str(number)
        folder.mkdir()
        say(f"{size.partitions} partitions, {size.consumers} consumers")
        with EmbeddedKafka.start(folder / "kafka") as kafka, ExitStack() as held:
            found.append(_ScaleRun(kafka, size, folder, held, stop).measure(steady_s, say))
    return found


class _BenchFleet:
    """Port `Fleet`: the members' program; what is started goes there with the next question."""

    def __init__(self, process: BenchProcess) -> None:
        self._process = process
        self._runs: dict[str, tuple[ConsumerId, float]] = {}
        self._asked: list[tuple[ConsumerId, str]] = []
        self._ended: frozenset[str] = frozenset()

    def ask(self) -> dict[str, Any]:
        """What the members' program says of itself."""
        asked, self._asked = self._asked, []
        return self._process.request("look", start=asked)

    def runs(self) -> Sequence[Run]:
        self._ended = frozenset(self.ask()["ended"])
        now = time.monotonic()
        return [
            Run(consumer, handle, now - at, is_over=handle in self._ended)
            for handle, (consumer, at) in self._runs.items()
        ]

    def start(self, consumer: ConsumerId, consumer_class: str = "") -> Run:  # noqa: ARG002 - all are alike here
        handle = f"run-{len(self._runs)}"
        self._runs[handle] = consumer, time.monotonic()
        self._asked.append((consumer, handle))
        return Run(consumer, handle, 0.0, is_over=False)

    def stop(self, handle: str) -> None:
        """Members end when an assignment tells them to."""

    def is_dead(self, process: Process) -> bool | None:
        return process.run_id in self._ended


class _ScaleRun:
    """One group of one size."""

    def __init__(self, kafka: EmbeddedKafka, size: GroupSize, directory: Path, held: ExitStack, stop: StopFlag) -> None:
        self._size = size
        self._stop = stop
        self._data = kafka.nodes[0].data
        settings = scale_settings(kafka.bootstrap_servers)
        self._settings = settings
        self._logs = GrowingLogs(settings, size.partitions, size.consumers)
        admin = KafkaAdmin(admin_client(settings))
        create_topics(settings, admin)
        command = [sys.executable, "-m", _MEMBERS, kafka.bootstrap_servers]
        members = held.enter_context(BenchProcess("members", command, directory))
        members.start()
        self._fleet = _BenchFleet(members)
        self._loop = self._controller(settings, GroupTopics(settings, admin), held)

    def _controller(self, settings: Settings, topics: GroupTopics, held: ExitStack) -> ControlLoop:
        monitor = MeasurementThread(settings, lambda each: Monitor(each, publish=True, sizes=self._logs))
        reader, writer = KafkaGroupTopicReader(topics), KafkaControllerWriter(topics)
        held.callback(reader.close)
        held.callback(writer.close)
        ports = ControlPorts(reader, writer, self._fleet, held.enter_context(monitor))
        options = Options(settings.packing, settings.membership, lambda: Random(0), terms=terms_of(settings))  # noqa: S311
        return ControlLoop(settings.group, options, ports)

    def measure(self, steady_s: float, say: Callable[[str], None]) -> ScaleFigures:
        """First packing, steady state, step of the load."""
        began = time.monotonic()
        self._loop.start(self._stop)
        self._go_on_until_settled(began)
        first_s = self._fleet.ask()["applied_s"] - began
        target = self._loop.state.target
        readers = len(set(target.assignment.values())) if target else 0
        say(f"{readers} read after {first_s:.1f} s")
        steady = self._steady(steady_s)
        before = dict(target.assignment) if target else {}
        cpu_s, at = time.process_time(), self._logs.step()
        self._go_on_until_settled(at, self._epoch)
        target = self._loop.state.target
        moved = sum(before.get(tp) != consumer for tp, consumer in (target.assignment if target else {}).items())
        figures = ScaleFigures(
            partitions=self._size.partitions,
            consumers=self._size.consumers,
            first_s=first_s,
            readers=readers,
            step_s=self._fleet.ask()["applied_s"] - at,
            step_cpu_s=time.process_time() - cpu_s,
            step_moved=moved,
            steady_cpu=steady.cpu,
            steady_loop_ms=steady.loop_ms,
            member_bytes_per_s=steady.member_bytes_per_s,
            stored_bytes_per_s=steady.stored_bytes_per_s,
            monitor_bytes_per_s=steady.monitor_bytes_per_s,
        )
        say(f"{moved} moved after {figures.step_s:.1f} s")
        return figures

    @property
    def _epoch(self) -> int | None:
        target = self._loop.state.view.target
        return None if target is None else target.offset

    def _go_on_until_settled(self, since: float, epoch: int | None = None) -> None:
        """Until nothing has changed for a while, where a Target has followed the one of `epoch` or none does in time.

        Raises:
            TransientError: that takes too long.
        """
        quiet_since = time.monotonic()
        last: object = None

        def is_quiet(state: ControllerState) -> bool:
            nonlocal quiet_since, last
            now = time.monotonic()
            if now - since > _GIVE_UP_S:
                raise TransientError(f"bench scale: {self._size}: no rest after {_GIVE_UP_S:g} s")
            settled_s, measured = state.change.settled_s, state.measured
            seen = (state.name, state.view.target and state.view.target.offset, settled_s)
            if seen != last or state.name is not State.SENTINEL or settled_s is None:
                quiet_since, last = now, seen
            has_changed = seen[1] != epoch or now - since > _CHANGE_WITHIN_S
            is_new = measured is not None and measured.at > since + WINDOW_S
            return is_new and has_changed and now - quiet_since > _QUIET_S

        self._loop.go_on(self._stop, is_quiet)

    def _steady(self, seconds: float) -> "_Steady":
        events = 0
        began, cpu_s, own_s = time.monotonic(), time.process_time(), time.thread_time()
        sent, stored, monitored = self._fleet.ask()["bytes"], self._stored(), self._monitored()

        def is_over(_: ControllerState) -> bool:
            nonlocal events
            events += 1
            return time.monotonic() - began > seconds

        self._loop.go_on(self._stop, is_over)
        lasted = time.monotonic() - began
        return _Steady(
            (time.process_time() - cpu_s) / lasted,
            (time.thread_time() - own_s) / max(1, events) * 1000,
            (self._fleet.ask()["bytes"] - sent) / lasted,
            (self._stored() - stored) / lasted,
            (self._monitored() - monitored) / lasted,
        )

    def _stored(self) -> int:
        return sum(self._bytes_of(topic.of(self._settings.group)) for topic in GroupTopic)

    def _monitored(self) -> int:
        return self._bytes_of(topic_name(self._settings))

    def _bytes_of(self, topic: str) -> int:
        return sum(file.stat().st_size for file in self._data.glob(f"{topic}-*/*.log"))
