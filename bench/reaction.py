"""Measures how soon the demonstration's group answers: to a consumer's death, and to a step of its load."""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.load_shapes import RECORD_BYTES, KnownLoad
from kgs_core.config.file import load_settings
from kgs_core.errors import KgsError, TransientError
from kgs_core.fleet.host_process import HostProcess
from kgs_core.model import grouped
from kgs_core.reporting.status import GroupStatus
from kgs_core.runtime.group_status import GroupWatch
from kgs_core.runtime.rebalance_results import started_s
from kgs_core.simulation.charts import Chart
from kgs_core.system.subprocesses import ChildProcess

_SIGNALS = {"killed": signal.SIGKILL, "frozen": signal.SIGSTOP}
_READERS = {"doubled": 2, "tripled": 3}
STRIKES = (*_SIGNALS, *_READERS)
PARTS = ("measured_s", "decided_s", "started_s", "handed_over_s")
"""Until the load was measured, the last Target written, all its consumers had joined, all was handed over."""
CONTROLS = {"dagster": (), "bare": ("--bare",)}
_START_S, _REST_S, _LONGEST_S = 240.0, 180.0, 120.0
_QUIET_S = 10.0
_POLL_S = 0.05
_DRAWN_BEFORE_S, _DRAWN_AFTER_S = 3.0, 10.0
_LINES_SHOWN = 8
_TOPIC = "flights.jfk"
_PER_READER = 130_000.0
"""Bytes/s, stored, of which each consumer of the demonstration can be given one such share, and not two."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """What one strike has cost.

    Attributes:
        control: who controls the group, of `CONTROLS`.
        strike: of `STRIKES`.
        partitions: that the consumer read, or that have moved.
        seconds: until others had reported all of them.
        parts: of a step, what took how long, of `PARTS`.
        course: of a step, seconds since it -> bytes/s produced, measured, and read by the consumers' reports.
    """

    control: str
    strike: str
    partitions: int
    seconds: float
    parts: Mapping[str, float] = field(default_factory=dict)
    course: Mapping[float, tuple[float, float, float]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """By the names above."""
        return asdict(self)


def run_reactions(
    folder: Path, controls: Sequence[str], strikes: Sequence[str], say: Callable[[str], None]
) -> list[Reaction]:
    """These strikes one after the other, under each control; each while the group is at rest and has a spare.

    Raises:
        TransientError: the group does not come to rest.
    """
    found: list[Reaction] = []
    for control in controls:
        place = folder / control
        with _demonstration(place, CONTROLS[control]) as demo, _opened(place, demo) as watch, _Load(place) as load:
            group = _Demonstrated(watch, load, demo)
            for strike in strikes:
                load.readers = 1
                group.wait(_Rest().is_long, _REST_S, "at rest, with one reader and a spare")
                answer = _stepped(group, _READERS[strike]) if strike in _READERS else _struck(group, _SIGNALS[strike])
                found.append(Reaction(control, strike, *answer))
                say(f"{control}: {strike}: {answer[0]} partitions read by others after {answer[1]:.1f} s")
    return found


@contextmanager
def _demonstration(folder: Path, options: Sequence[str]) -> Iterator[ChildProcess]:
    """As slow as the real world: its flights are next to nothing beside our own load."""
    program = str(Path(sys.executable).with_name("kgs"))
    log = folder.with_suffix(".log")
    demo = ChildProcess("demo", [program, "demo", "--directory", str(folder), "--time-factor", "1", *options], log)
    with demo:
        demo.start()
        try:
            yield demo
        finally:
            demo.end(_REST_S)


class _Load(KnownLoad):
    """Load for so many readers."""

    def __init__(self, folder: Path) -> None:
        self.readers = 1
        servers = load_settings(folder / "kgs.yaml", {}).kafka.bootstrap_servers
        super().__init__(servers, _TOPIC, lambda _: self.readers * _PER_READER, value=_position)


def _position(generator: random.Random) -> bytes:
    """A flight's position, as far as its rule is concerned."""
    return json.dumps({"flight": generator.randbytes(RECORD_BYTES // 2 - 8).hex()}).encode()


@dataclass(frozen=True, slots=True)
class _Demonstrated:
    watch: GroupWatch
    load: _Load
    demo: ChildProcess
    course: dict[float, tuple[float, float, float]] = field(default_factory=dict)

    def wait(self, until: Callable[[GroupStatus], bool], timeout_s: float, what: str) -> GroupStatus:
        """The first look that `until` holds for."""
        deadline = time.monotonic() + timeout_s
        while not until(found := self.watch.look(with_lake=False)):
            if time.monotonic() > deadline:
                tail = self.demo.log_tail(_LINES_SHOWN)
                raise TransientError(f"bench reaction: not {what} after {timeout_s:g} s; the log ends:\n{tail}")
            self._note(found)
            time.sleep(_POLL_S)
        return found

    def _note(self, found: GroupStatus) -> None:
        produced = self.load.readers * _PER_READER
        measured = sum(row.load or 0.0 for row in found.consumers)
        read = sum(row.bytes_per_s or 0.0 for row in found.consumers)
        self.course[time.monotonic()] = (produced, measured, read)


def _struck(group: _Demonstrated, strike: int) -> tuple[int, float]:
    before = group.watch.look(with_lake=False)
    victim = max((row for row in before.consumers if row.partitions), key=lambda row: len(row.partitions))
    held, incarnation = set(victim.partitions), victim.incarnation
    process = HostProcess.of(victim.process) if victim.process else None
    if process is None:
        raise TransientError(f"bench reaction: consumer {victim.consumer} does not say which process it is")

    def is_taken_over(found: GroupStatus) -> bool:
        others = (row for row in found.consumers if row.incarnation not in (None, incarnation))
        return held <= {tp for row in others for tp in row.partitions}

    os.kill(process.pid, strike)
    began = time.monotonic()
    try:
        group.wait(is_taken_over, _LONGEST_S, "read by others")
        return len(held), round(time.monotonic() - began, 2)
    finally:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def _stepped(
    group: _Demonstrated, readers: int
) -> tuple[int, float, Mapping[str, float], Mapping[float, tuple[float, float, float]]]:
    began, began_ms = time.monotonic(), time.time() * 1000
    group.load.readers = readers
    found = group.wait(partial(_is_balanced, began_ms, readers), _LONGEST_S, "balanced")
    balanced_s = time.time() - began_ms / 1000
    changes = [change for change in found.changes if change.time_ms >= began_ms]
    written_s = (changes[-1].time_ms - began_ms) / 1000
    deciding_s = (changes[0].seen_s or 0.0) + (changes[0].decided_s or 0.0)
    measured_s = max(0.0, (changes[0].time_ms - began_ms) / 1000 - deciding_s)
    joined_s = written_s + (started_s(group.watch.view) or 0.0)
    ends = (0.0, measured_s, written_s, joined_s, balanced_s)
    parts = {name: round(after - before, 2) for name, (before, after) in zip(PARTS, pairwise(ends), strict=True)}
    over = time.monotonic() + _DRAWN_AFTER_S
    group.wait(lambda _: time.monotonic() > over, _LONGEST_S, "looked at")
    course = {round(at - began, 2): values for at, values in group.course.items() if at > began - _DRAWN_BEFORE_S}
    return sum(change.moved for change in changes), round(balanced_s, 2), parts, course


def _is_balanced(since_ms: float, readers: int, found: GroupStatus) -> bool:
    target = found.target
    if target is None or target.time_ms < since_ms or len(set(target.assignment.values())) != readers:
        return False
    return all(found.current.get(tp) == consumer for tp, consumer in target.assignment.items())


def _opened(folder: Path, demo: ChildProcess) -> GroupWatch:
    """The group, as soon as it is there."""
    deadline = time.monotonic() + _START_S
    while True:
        try:
            watch = GroupWatch(load_settings(folder / "kgs.yaml", {}))
            watch.look(with_lake=False)
        except KgsError as e:
            if time.monotonic() > deadline:
                raise TransientError(f"bench reaction: {e}; the log ends:\n{demo.log_tail(_LINES_SHOWN)}") from e
            time.sleep(1.0)
        else:
            return watch


class _Rest:
    """For how long nothing has changed, and a spare is there: while a group still grows, one spare is not enough."""

    def __init__(self) -> None:
        self._changes: object = None
        self._since = 0.0

    def is_long(self, found: GroupStatus) -> bool:
        has_spare = any(row.incarnation is not None and row.state == "spare" for row in found.consumers)
        is_there = found.is_converged and has_spare and len(set(found.current.values())) == 1
        changes = found.changes if is_there else None
        if changes is None or changes != self._changes:
            self._changes, self._since = changes, time.monotonic()
        return changes is not None and time.monotonic() - self._since >= _QUIET_S


def reaction_charts(found: Sequence[Reaction]) -> list[Chart]:
    """The first step of each kind, under each control, over time."""
    charts = []
    for (control, strike), steps in grouped(
        ((each.control, each.strike), each) for each in found if each.course
    ).items():
        first = steps[0]
        names = ("produced", "measured", "read")
        lines = {
            name: [(at, values[n] / 1000) for at, values in sorted(first.course.items())]
            for n, name in enumerate(names)
        }
        title, mark = f"{control}: load {strike}", (first.seconds, "every partition has its reader")
        charts.append(Chart(title, "seconds since the step", "kB/s", lines=lines, mark=mark, x_from_zero=False))
    return charts
