"""The sliding window over readings of a whole cluster."""

from kgs_core.errors import MeasurementError
from kgs_core.model import TopicPartition, by_topic
from kgs_core.monitor.speeds.measurement import Measurement, Reading, Verdict
from kgs_core.monitor.speeds.pace import TopicPace
from kgs_core.monitor.speeds.track import Track


class Window:
    """Turns readings into measurements; keeps `window_s` seconds of them.

    Times of two clocks cannot be compared: all readings must be of one.
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
        self._begun_s = 0.0
        self._newest_s = float("-inf")
        self._tracks: dict[TopicPartition, Track] = {}
        self._paces: dict[str, TopicPace] = {}

    @property
    def span_s(self) -> float:
        """How much of the window the readings fill, seconds; at most `window_s`."""
        return max(0.0, min(self._window_s, self._newest_s - self._begun_s))

    def add(self, reading: Reading) -> Measurement:
        """The reading with the speeds after it; see `take`.

        Raises:
            MeasurementError: see `take`.
        """
        self.take(reading)
        counted = {topic: pace.counted() for topic, pace in self._paces.items()}
        speeds = {tp: track.speed(counted.get(tp.topic, ())) for tp, track in sorted(self._tracks.items())}
        return Measurement(reading, speeds)

    def take(self, reading: Reading) -> None:
        """As `add`, of the past. Raises `MeasurementError`, changing nothing, unless it is after the last."""
        if reading.time_s <= self._newest_s:
            raise MeasurementError(
                f"monitor: reading at {reading.time_s:.3f} s is not after the last one at {self._newest_s:.3f} s: "
                "left out"
            )
        if reading.time_s > self._newest_s + self._window_s:
            self._begun_s, self._tracks, self._paces = reading.time_s, {}, {}
        self._newest_s = reading.time_s
        self._track(reading)
        if self._follows_steps:
            self._pace(reading)

    def _pace(self, reading: Reading) -> None:
        topics = by_topic(reading.partitions)
        for topic in self._paces.keys() - topics.keys():
            del self._paces[topic]
        for topic, partitions in topics.items():
            self._paces.setdefault(topic, TopicPace(self._window_s)).add(reading.time_s, partitions)

    def _track(self, reading: Reading) -> None:
        tracks = self._tracks
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
