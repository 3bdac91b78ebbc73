"""Looks at the group all the time: who could read and did not, what each process uses, and what changed when."""

import json
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import psutil

from kgs_core.model import TopicPartition
from kgs_core.reporting.status import GroupStatus
from tests.system.chaos.faults.consumers import kind_of
from tests.system.chaos.journal import now
from tests.system.chaos.stage import FRESH_S, Stage

LOOK_EVERY_S = 0.7
USE_EVERY_S = 5.0
DECIDES_AFTER_S = 15.0
"""A controller that comes back takes the right to write, looks at the group, and decides."""


@dataclass(frozen=True, slots=True)
class Unowned:
    """A partition that nobody read while somebody could."""

    tp: TopicPartition
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Use:
    """What a process used at a moment."""

    at: float
    rss: int
    descriptors: int


class Witness(threading.Thread):
    """See above.

    Attributes:
        looks: how often the group answered.
        unowned: the longest time of each partition.
        uses: by process: kind and pid.
    """

    def __init__(self, stage: Stage) -> None:
        super().__init__(name="witness", daemon=True)
        self.looks = 0
        self.unowned: dict[TopicPartition, Unowned] = {}
        self.uses: dict[tuple[str, int], list[Use]] = defaultdict(list)
        self._stage = stage
        self._since: dict[TopicPartition, float] = {}
        self._nobody_decides: Callable[[], None] | None = None
        self._shown = ""
        self._stop_asked = threading.Event()

    def run(self) -> None:
        used_at = 0.0
        while not self._stop_asked.wait(LOOK_EVERY_S):
            found = self._stage.look()
            self._note(found.status, found.at)
            if found.status is not None:
                self.looks += 1
                self._show(found.status)
            if found.at - used_at > USE_EVERY_S:
                used_at = found.at
                self._note_use(found.at)

    def _note(self, found: GroupStatus | None, at: float) -> None:
        somebody = found is not None and any(
            line.incarnation is not None and line.report_age_s is not None and line.report_age_s < FRESH_S
            for line in found.consumers
        )
        decides = found is not None and found.controller_is_heard
        journal = self._stage.journal
        if not (somebody and decides) and self._nobody_decides is None:
            self._nobody_decides = journal.excused("nobody reports, or nobody decides", DECIDES_AFTER_S)
        if somebody and decides and self._nobody_decides is not None:
            self._nobody_decides()
            self._nobody_decides = None
        if found is None or found.target is None or journal.is_excused(at):
            self._since.clear()
            return
        unread = found.target.assignment.keys() - found.current.keys()
        self._since = {tp: self._since.get(tp, at) for tp in unread}
        for tp, since in self._since.items():
            longest = self.unowned.get(tp)
            if longest is None or at - since > longest.end - longest.begin:
                self.unowned[tp] = Unowned(tp, since, at)

    def _show(self, found: GroupStatus) -> None:
        """A line where something has changed."""
        consumers = [f"{c.consumer}@{str(c.incarnation)[:8]} {c.state} {len(c.partitions)}" for c in found.consumers]
        stopped = {str(tp): why for c in found.consumers for tp, why in c.stopped.items()}
        tree = {"converged": found.is_converged, "heard": found.controller_is_heard, "consumers": consumers}
        text = json.dumps({**tree, "stopped": stopped})
        if text != self._shown:
            self._shown = text
            with (self._stage.folder / "group.jsonl").open("a") as file:
                file.write(json.dumps({"at": round(now(), 3), **json.loads(text)}) + "\n")

    def _note_use(self, at: float) -> None:
        named = {("controller", each.pid): each for each in self._stage.control.processes().values()}
        for driver, *others in self._stage.consumers().values():
            for process in (driver, *others):
                with suppress(psutil.Error):
                    named[kind_of(process, driver), process.pid] = process
        with (self._stage.folder / "use.jsonl").open("a") as file:
            for (kind, pid), process in named.items():
                with suppress(psutil.Error):
                    use = Use(at, process.memory_info().rss, process.num_fds())
                    self.uses[kind, pid].append(use)
                    line = {"at": round(at), "kind": kind, "pid": pid, "rss": use.rss, "descriptors": use.descriptors}
                    file.write(json.dumps(line) + "\n")

    def close(self) -> None:
        self._stop_asked.set()
        self.join()
        if self._nobody_decides is not None:
            self._nobody_decides()
