"""Gathers a snapshot of the demonstration from its files, its processes and its lake."""

import time
from collections import deque

from kgs_core.adapters.lake_view import LakeView
from kgs_core.consumer.share import EqualShare
from kgs_core.demo.crew import Crew
from kgs_core.demo.scene import Scene
from kgs_core.demo.snapshot import (
    DemoSnapshot,
    Produced,
    lag_of_share,
    read_consumer,
    read_produced,
    simulated_time,
)

_WINDOW_S = 5.0
_SHORTEST_S = 1.5  # the tally changes once a second


class Observer:
    """Looks at one demonstration again and again."""

    def __init__(self, scene: Scene, view: LakeView, crew: Crew, started_s: float) -> None:
        """Elapsed time counts from `started_s`, on `time.monotonic`."""
        self._scene = scene
        self._view = view
        self._crew = crew
        self._started_s = started_s
        self._produced: deque[tuple[float, int]] = deque()

    def look(self, stage: str) -> DemoSnapshot:
        """Everything as of now."""
        scene = self._scene
        produced = read_produced(scene.tally_file)
        lake = self._view.snapshot()
        consumers = tuple(
            read_consumer(
                scene.status_file(number),
                number,
                child.pid,
                self._crew.absence(number),
                lag_of_share(lake, EqualShare(number, scene.consumers)),
            )
            for number, child in self._crew.consumers.items()
        )
        return DemoSnapshot(
            stage,
            time.monotonic() - self._started_s,
            simulated_time(produced.replayed_s, scene.time_factor) if produced is not None else None,
            produced,
            self._speed(produced),
            consumers,
            lake,
        )

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
