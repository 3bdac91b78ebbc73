"""Gathers a snapshot of the demonstration from its files, its processes, its group and its lake."""

import time
from collections import deque

from kgs_core.adapters.lake.stats import LakeView
from kgs_core.demo.history import DemoHistory
from kgs_core.demo.layout import Layout
from kgs_core.demo.snapshot import DemoSnapshot, Produced, read_produced, simulated_time
from kgs_core.demo.supervisor import GroupControl
from kgs_core.errors import PortError
from kgs_core.reporting.status import GroupStatus
from kgs_core.runtime.group_status import GroupWatch

_WINDOW_S = 5.0
_SHORTEST_S = 1.5  # the tally changes once a second


class Observer:
    """Looks at one demonstration again and again."""

    def __init__(
        self, scene: Layout, lake: LakeView, group: GroupWatch, control: GroupControl, elapsed_s: float
    ) -> None:
        """The demonstration began `elapsed_s` seconds ago."""
        self._scene = scene
        self._lake = lake
        self._group = group
        self._control = control
        self._started_s = time.monotonic() - elapsed_s
        self._began_ms = round((time.time() - elapsed_s) * 1000)
        self._chronicle = DemoHistory()
        self._produced: deque[tuple[float, int]] = deque()

    def look(self, stage: str) -> DemoSnapshot:
        """Everything as of now."""
        produced = read_produced(self._scene.tally_file)
        group, problems = self._look_at_group()
        news = self._chronicle.note(group, time.monotonic()) if group is not None else ()
        return DemoSnapshot(
            stage=stage,
            elapsed_s=time.monotonic() - self._started_s,
            simulated=simulated_time(produced.replayed_s, self._scene.time_factor) if produced is not None else None,
            produced=produced,
            produced_bytes_per_s=self._speed(produced),
            lake=self._lake.snapshot(),
            control=self._control.state,
            group=group,
            figures=self._chronicle.figures,
            began_ms=self._began_ms,
            news=news,
            problems=problems,
        )

    def _look_at_group(self) -> tuple[GroupStatus | None, tuple[str, ...]]:
        try:
            group = self._group.look(with_lake=False)
        except PortError as e:  # the broker is being started again
            return None, (str(e),)
        return group, group.surroundings.problems

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
