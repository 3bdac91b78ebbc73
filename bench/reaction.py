"""Measures for how long a consumer's partitions are unread after it was struck, in the demonstration's group."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kgs_core.config.file import load_settings
from kgs_core.errors import KgsError, TransientError
from kgs_core.fleet.host_process import HostProcess
from kgs_core.reporting.status import GroupStatus
from kgs_core.runtime.group_status import GroupWatch
from kgs_core.system.subprocesses import ChildProcess

STRIKES = {"killed": signal.SIGKILL, "frozen": signal.SIGSTOP}
CONTROLS = {"dagster": (), "bare": ("--bare",)}
_START_S, _REST_S, _LONGEST_S = 240.0, 180.0, 120.0
_QUIET_S = 10.0
_POLL_S = 0.05
_LINES_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Reaction:
    """What one strike has cost.

    Attributes:
        control: who controls the group, of `CONTROLS`.
        strike: of `STRIKES`.
        partitions: that the consumer read.
        unread_s: until others had reported all of them.
    """

    control: str
    strike: str
    partitions: int
    unread_s: float

    def to_dict(self) -> dict[str, Any]:
        """By the names above."""
        return asdict(self)


def run_reactions(
    folder: Path, controls: Sequence[str], strikes: Sequence[str], say: Callable[[str], None]
) -> list[Reaction]:
    """These strikes one after the other, under each control; each at a reader while a spare is there.

    Raises:
        TransientError: the group does not come to rest.
    """
    found: list[Reaction] = []
    for control in controls:
        place = folder / control
        with _demonstration(place, CONTROLS[control]) as demo:
            for strike in strikes:
                found.append(_strike(place, control, strike, demo))
                say(f"{control}: {strike}: {found[-1].partitions} partitions unread for {found[-1].unread_s:.1f} s")
    return found


@contextmanager
def _demonstration(folder: Path, options: Sequence[str]) -> Iterator[ChildProcess]:
    program = str(Path(sys.executable).with_name("kgs"))
    log = folder.with_suffix(".log")
    demo = ChildProcess("demo", [program, "demo", "--directory", str(folder), *options], log)
    with demo:
        demo.start()
        try:
            yield demo
        finally:
            demo.end(_REST_S)


def _strike(folder: Path, control: str, strike: str, demo: ChildProcess) -> Reaction:
    with _opened(folder, demo) as watch:
        before = _waited(watch, _Rest().is_long, _REST_S, "at rest, with a spare", demo)
        victim = max((row for row in before.consumers if row.partitions), key=lambda row: len(row.partitions))
        held, incarnation = set(victim.partitions), victim.incarnation
        process = HostProcess.of(victim.process) if victim.process else None
        if process is None:
            raise TransientError(f"bench reaction: consumer {victim.consumer} does not say which process it is")

        def is_taken_over(found: GroupStatus) -> bool:
            others = (row for row in found.consumers if row.incarnation not in (None, incarnation))
            return held <= {tp for row in others for tp in row.partitions}

        os.kill(process.pid, STRIKES[strike])
        began = time.monotonic()
        try:
            _waited(watch, is_taken_over, _LONGEST_S, "read by others", demo)
            return Reaction(control, strike, len(held), round(time.monotonic() - began, 2))
        finally:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)


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
        changes = found.changes if found.is_converged and found.current and has_spare else None
        if changes is None or changes != self._changes:
            self._changes, self._since = changes, time.monotonic()
        return changes is not None and time.monotonic() - self._since >= _QUIET_S


def _waited(
    watch: GroupWatch, until: Callable[[GroupStatus], bool], timeout_s: float, what: str, demo: ChildProcess
) -> GroupStatus:
    deadline = time.monotonic() + timeout_s
    while not until(found := watch.look(with_lake=False)):
        if time.monotonic() > deadline:
            raise TransientError(
                f"bench reaction: not {what} after {timeout_s:g} s; the log ends:\n{demo.log_tail(_LINES_SHOWN)}"
            )
        time.sleep(_POLL_S)
    return found
