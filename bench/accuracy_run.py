"""Measures loads of known shape on a broker of its own, and the files on that broker's disk beside it."""

import random
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.accuracy import AccuracyPoint
from bench.load_shapes import KnownLoad, Shape, noise, ramp, steady, step
from bench.segment_files import SegmentGrowth
from kgs_core.config import Settings, TopicRule
from kgs_core.config.monitor import MonitorSettings
from kgs_core.config.settings import KafkaSettings, LakeSettings
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.model import TopicPartition
from kgs_core.monitor.kafka.monitor import Monitor
from kgs_core.monitor.speeds import Measurement
from kgs_core.system.shutdown import StopFlag

SLOW = 200_000.0
FAST = 400_000.0
_SEED = 1
_DEVIATION = 0.3
_MARGIN_S = 5.0
_SECOND = 1.0

Progress = Callable[[float, float], None]
"""Is told seconds done and seconds in all."""


@dataclass(frozen=True, slots=True)
class LoadCase:
    """One load on one topic.

    Attributes:
        change: seconds after the start when the load begins to change, and when it has its new speed.
        speeds: bytes of values/s before and after that; alike without a change.
    """

    name: str
    shape: Shape
    compression: str
    change: tuple[float, float] | None
    speeds: tuple[float, float]


def load_cases(window_s: float) -> list[LoadCase]:
    """Steps, a ramp and noise, with compression and without; the change comes when the window has been filled once."""
    at = window_s + _MARGIN_S
    generator = random.Random(_SEED)  # noqa: S311 - a load, not a secret
    cases = []
    for codec in ("none", "lz4", "gzip"):
        cases.append(LoadCase(f"steady-{codec}", steady(SLOW), codec, None, (SLOW, SLOW)))
        cases.append(LoadCase(f"step-up-{codec}", step(SLOW, FAST, at), codec, (at, at), (SLOW, FAST)))
    ends = at + window_s / 2
    return [
        *cases,
        LoadCase("step-down-none", step(FAST, SLOW, at), "none", (at, at), (FAST, SLOW)),
        LoadCase("ramp-none", ramp(SLOW, FAST, at, ends), "none", (at, ends), (SLOW, FAST)),
        LoadCase("noise-none", noise(SLOW, _DEVIATION, generator, 3600), "none", None, (SLOW, SLOW)),
    ]


def run_accuracy(
    directory: Path, cases: list[LoadCase], monitor: MonitorSettings, progress: Progress, stop: StopFlag
) -> dict[str, list[AccuracyPoint]]:
    """The measurements of each case, by name; takes about two and a half windows.

    Raises:
        PermanentError: no broker can be started.
    """
    seconds = max((case.change[1] for case in cases if case.change), default=0.0) + monitor.window_s + _MARGIN_S
    tps = {case.name: TopicPartition(case.name, 0) for case in cases}
    measurements: list[Measurement] = []
    with EmbeddedKafka.start(directory) as kafka, ExitStack() as held:
        admin = KafkaAdmin({"bootstrap.servers": kafka.bootstrap_servers})
        for case in cases:
            admin.create_topic(case.name, 1)
        growth = held.enter_context(SegmentGrowth(dict.fromkeys(tps.values(), kafka.nodes[0].data)))
        running = held.enter_context(Monitor(_settings(kafka.bootstrap_servers, monitor), publish=False))
        began = time.monotonic()
        for case in cases:
            held.enter_context(KnownLoad(kafka.bootstrap_servers, case.name, case.shape, case.compression))
        done = StopFlag()

        def show(measurement: Measurement) -> None:
            measurements.append(measurement)
            progress(min(seconds, time.monotonic() - began), seconds)
            if stop.is_set or time.monotonic() > began + seconds:
                done.set()

        running.run(done, show)
    return {name: _points(tp, measurements, growth, monitor.window_s, began) for name, tp in tps.items()}


def _settings(bootstrap_servers: str, monitor: MonitorSettings) -> Settings:
    return Settings(
        group="accuracy",
        kafka=KafkaSettings(bootstrap_servers=bootstrap_servers),
        lake=LakeSettings(root="none"),
        topics=(TopicRule(pattern=".*", table="{topic}"),),
        monitor=monitor,
    )


def _points(
    tp: TopicPartition, measurements: list[Measurement], growth: SegmentGrowth, window_s: float, began: float
) -> list[AccuracyPoint]:
    """The measurements with a speed, once the window is filled."""
    times = [m.reading.partitions[tp].time_s for m in measurements if tp in m.reading.partitions]
    speeds: Mapping[float, float] = {
        m.reading.partitions[tp].time_s: m.known[tp] for m in measurements if tp in m.known
    }
    points = []
    for now in times:
        first = next(t for t in times if t >= now - window_s)
        if now in speeds and now - began > window_s:
            truth, recent = growth.speed(tp, first, now), growth.speed(tp, now - _SECOND, now)
            points.append(AccuracyPoint(now - began, speeds[now], truth, recent))
    return points
