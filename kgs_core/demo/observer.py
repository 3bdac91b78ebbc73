"""Observer of the demonstration: snapshots of all of it, and the history of its group."""

import time
from collections import deque
from collections.abc import Iterable
from textwrap import shorten

from kgs_core.demo.layout import Layout
from kgs_core.demo.snapshot import DemoSnapshot, GroupFigures, Produced, read_produced, simulated_time
from kgs_core.demo.supervisor import GroupControl
from kgs_core.errors import PortError
from kgs_core.fleet.host_process import HostProcess
from kgs_core.fleet.pod_process import PodProcess
from kgs_core.group.protocol import Change, Incarnation, Process
from kgs_core.group.view.plain_text import counted
from kgs_core.lake.topics.stats import LakeView
from kgs_core.reporting.consumer_rows import ConsumerRow
from kgs_core.reporting.status import GroupStatus
from kgs_core.runtime.group_status import GroupWatch

_WINDOW_S = 5.0
_SHORTEST_S = 1.5  # the tally changes once a second
_REASON_CHARACTERS = 45


class Observer:
    """Observer of one demonstration."""

    def __init__(
        self, layout: Layout, lake: LakeView, group: GroupWatch, control: GroupControl, elapsed_s: float
    ) -> None:
        """The demonstration began `elapsed_s` seconds ago."""
        self._layout = layout
        self._lake = lake
        self._group = group
        self._control = control
        self._started_s = time.monotonic() - elapsed_s
        self._began_ms = round((time.time() - elapsed_s) * 1000)
        self._history = DemoHistory()
        self._produced: deque[tuple[float, int]] = deque()

    def look(self, stage: str) -> DemoSnapshot:
        """Everything as of now."""
        produced = read_produced(self._layout.tally_file)
        group, problems = self._look_at_group()
        news = self._history.note(group, time.monotonic()) if group is not None else ()
        return DemoSnapshot(
            stage=stage,
            elapsed_s=time.monotonic() - self._started_s,
            simulated=simulated_time(produced.replayed_s, self._layout.time_factor) if produced is not None else None,
            produced=produced,
            produced_bytes_per_s=self._speed(produced),
            lake=self._lake.snapshot(),
            control=self._control.state,
            group=group,
            figures=self._history.figures,
            began_ms=self._began_ms,
            news=news,
            problems=problems,
        )

    def _look_at_group(self) -> tuple[GroupStatus | None, tuple[str, ...]]:
        try:
            group = self._group.look(with_lake=False)
        except PortError as e:  # the broker is being started again
            return None, (str(e),)
        return group, group.facts.problems

    def _speed(self, produced: Produced | None) -> float | None:
        """Produced bytes/s over the last seconds; None before there are readings far enough apart."""
        if produced is None:
            return None
        now = time.monotonic()
        self._produced.append((now, produced.value_bytes))
        while now - self._produced[0][0] > _WINDOW_S:  # ends at the latest with the reading just added
            self._produced.popleft()
        since, before = self._produced[0]
        return (produced.value_bytes - before) / (now - since) if now - since >= _SHORTEST_S else None


class DemoHistory:
    """History of the group, from one status after the other; `now` is seconds on a steady clock."""

    def __init__(self) -> None:
        self._members: dict[Incarnation, str] = {}
        self._changes: dict[int, Change] = {}
        self._first_s: float | None = None
        self._last_s = 0.0
        self._readers = 0
        self._most = 0
        self._reader_seconds = 0.0

    def note(self, group: GroupStatus, now: float) -> tuple[str, ...]:
        """Takes in how the group is now; returns the news since the last call."""
        self._count(len(set(group.current.values())), now)
        return (*self._decisions(group.changes), *self._people(group.consumers))

    @property
    def figures(self) -> GroupFigures:
        """As of the last call of `note`."""
        rebalances = [change for change in self._changes.values() if change.moved]
        span_s = 0.0 if self._first_s is None else self._last_s - self._first_s
        return GroupFigures(
            rebalances=len(rebalances),
            moved=sum(change.moved for change in rebalances),
            rscore=sum(change.rscore for change in rebalances),
            mean_consumers=self._reader_seconds / span_s if span_s else None,
            max_consumers=self._most,
        )

    def _count(self, readers: int, now: float) -> None:
        if self._first_s is None and not readers:
            return
        if self._first_s is None:
            self._first_s = self._last_s = now
        self._reader_seconds += self._readers * (now - self._last_s)
        self._last_s, self._readers = now, readers
        self._most = max(self._most, readers)

    def _people(self, lines: Iterable[ConsumerRow]) -> list[str]:
        there = {line.incarnation: _name(line) for line in lines if line.incarnation and line.process}
        news = [f"{name} has left" for i, name in self._members.items() if i not in there]
        news += [f"{name} has joined" for i, name in there.items() if i not in self._members]
        self._members = there
        return news

    def _decisions(self, changes: Iterable[Change]) -> list[str]:
        new = [change for change in changes if change.time_ms not in self._changes]
        # The last ten come every time, and how long one took is known only later
        self._changes.update((change.time_ms, change) for change in changes)
        return [describe(change) for change in new]


def describe(change: Change) -> str:
    """One change of the target in words."""
    moves = f"{change.moved} partitions move, Rscore {change.rscore:.2f}" if change.moved else "nothing moves"
    return f"target: {counted(change.consumers, 'consumer')}, {moves}: {short_reason(change)}"


def short_reason(change: Change) -> str:
    """Every reason of a change, long lists of whom it concerns cut."""
    return "; ".join(shorten(reason, _REASON_CHARACTERS, placeholder=" ...") for reason in change.reason.split("; "))


def short_name(process: Process) -> tuple[str, str]:
    """What to look for with `ps` or `kubectl`: ("pid", "4711"), ("pod", "x7k2p"), the end of its name, or ("", "?")."""
    if (host := HostProcess.of(process)) is not None:
        return "pid", str(host.pid)
    if (pod := PodProcess.of(process)) is not None:
        return "pod", pod.pod.rpartition("-")[2]
    return "", "?"


def _name(line: ConsumerRow) -> str:
    what = " ".join(short_name(line.process)) if line.process else ""
    return f"consumer {line.consumer} ({what})" if what else f"consumer {line.consumer}"
