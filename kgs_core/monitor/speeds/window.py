"""The sliding window over readings of a whole cluster."""

from collections import OrderedDict
from dataclasses import dataclass, field

from kgs_core.errors import MeasurementError
from kgs_core.model import TopicPartition, by_topic
from kgs_core.monitor.speeds.measurement import Measurement, Reading, Verdict
from kgs_core.monitor.speeds.pace import TopicPace
from kgs_core.monitor.speeds.track import Track

MAX_CLOCKS = 4
"""Monitors on so many machines may publish at the same time without disturbing each other."""


@dataclass(slots=True)
class _Series:
    """The readings of one clock; `begun_s` and `newest_s` are times of readings."""

    begun_s: float
    newest_s: float = float("-inf")
    tracks: dict[TopicPartition, Track] = field(default_factory=dict)
    paces: dict[str, TopicPace] = field(default_factory=dict)


class Window:
    """Turns readings into measurements; keeps `window_s` seconds of them.

    Readings of several clocks (a monitor that went to another machine, or two at once) are never compared with each
    other; a measurement stands on those of its own clock.
    """

    def __init__(self, window_s: float = 30.0, min_span_s: float = 10.0, *, follows_steps: bool = True) -> None:
        """No reading yet.

        Args:
            min_span_s: how far a partition's readings must lie apart before they give a speed.
            follows_steps: whether a speed follows a step of its topic's load at once; else it is the window's average
                alone, as in Landau 2022, section "Monitor".
        """
        self._follows_steps = follows_steps
        self._window_s = window_s
        self._min_span_s = min_span_s
        self._series: OrderedDict[str, _Series] = OrderedDict()

    def span_s(self, clock: str) -> float:
        """How much of the window the readings of this clock fill, seconds; at most `window_s`."""
        series = self._series.get(clock)
        return min(self._window_s, series.newest_s - series.begun_s) if series is not None else 0.0

    def add(self, reading: Reading) -> Measurement:
        """The reading with the speeds after it; see `take`.

        Raises:
            MeasurementError: see `take`.
        """
        self.take(reading)
        series = self._series[reading.clock]
        counted = {topic: pace.counted() for topic, pace in series.paces.items()}
        speeds = {tp: track.speed(counted.get(tp.topic, ())) for tp, track in sorted(series.tracks.items())}
        return Measurement(reading, speeds)

    def take(self, reading: Reading) -> None:
        """As `add`, of the past. Raises `MeasurementError`, changing nothing, unless after the last of its clock."""
        series = self._series.get(reading.clock)
        if series is not None and reading.time_s <= series.newest_s:
            raise MeasurementError(
                f"monitor: reading at {reading.time_s:.3f} s is not after the last one at {series.newest_s:.3f} s: "
                "left out"
            )
        if series is None or reading.time_s > series.newest_s + self._window_s:
            series = _Series(reading.time_s)
        self._series[reading.clock] = series
        self._series.move_to_end(reading.clock)
        while len(self._series) > MAX_CLOCKS:
            self._series.popitem(last=False)
        series.newest_s = reading.time_s
        self._add_to(series.tracks, reading)
        if self._follows_steps:
            self._pace(series.paces, reading)

    def _pace(self, paces: dict[str, TopicPace], reading: Reading) -> None:
        topics = by_topic(reading.partitions)
        for topic in paces.keys() - topics.keys():
            del paces[topic]
        for topic, partitions in topics.items():
            paces.setdefault(topic, TopicPace(self._window_s)).add(reading.time_s, partitions)

    def _add_to(self, tracks: dict[TopicPartition, Track], reading: Reading) -> None:
        for tp in [*reading.partitions, *reading.unknown]:
            if tp not in tracks:
                tracks[tp] = Track(self._window_s, self._min_span_s)
        for tp, track in list(tracks.items()):
            if tp in reading.partitions:
                track.add(reading.partitions[tp])
            elif tp in reading.unknown:
                track.miss(Verdict.UNKNOWN, reading.unknown[tp])
            elif track.heard_s < reading.time_s - self._window_s:
                del tracks[tp]
            else:
                track.miss(Verdict.VANISHED, "the partition is no longer there")
