"""The readings of one partition within the window, and the speed they give."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum
from statistics import median

from kgs_core.monitor.speeds.measurement import PartitionReading, PartitionSpeed, Verdict
from kgs_core.monitor.speeds.pace import Counted, factor_at, is_far, is_its_own

MIN_SAMPLES = 2
_STANDSTILL = 3
_ALL = (Counted(float("-inf"), 1.0),)


@dataclass(frozen=True, slots=True)
class _Sample:
    """A reading, and what it says about the time since the one before.

    Attributes:
        end: end offset at the moment when the size was read, interpolated.
        moved: the log's start has moved since.
        cut: the size may be short of what was deleted since.
        compacted: it is, and the start has not moved.
    """

    at: PartitionReading
    end: float
    moved: bool = False
    cut: bool = False
    compacted: bool = False


class Track:
    """One partition; it remembers nothing beyond the window, so that the window's readings rebuild it exactly."""

    def __init__(self, window_s: float, min_span_s: float) -> None:
        self._window_s = window_s
        self._min_span_s = min_span_s
        self._samples: deque[_Sample] = deque()
        self._begun_by: tuple[Verdict, str] | None = None
        self._absent: tuple[Verdict, str] | None = None
        self._heard_s = float("-inf")

    @property
    def heard_s(self) -> float:
        """When the partition was last read."""
        return self._heard_s

    @property
    def span_s(self) -> float:
        """Time between the first and the last reading."""
        return self._samples[-1].at.time_s - self._samples[0].at.time_s if self._samples else 0.0

    @property
    def _is_long_enough(self) -> bool:
        return len(self._samples) >= MIN_SAMPLES and self.span_s >= self._min_span_s

    def miss(self, verdict: Verdict, reason: str) -> None:
        """The partition is not in the newest reading. Its window goes on, for sizes bridge what was not read."""
        self._absent = (verdict, reason)

    def add(self, reading: PartitionReading) -> None:
        """Take in a reading; one that is not wholly later than the last (of another monitor) is left out."""
        last = self._samples[-1] if self._samples else None
        if last is not None and (reading.time_s <= last.at.time_s or reading.offsets_s <= last.at.offsets_s):
            return
        self._absent, self._heard_s = None, reading.time_s
        impossible = _impossible(reading)
        if impossible:
            self._samples.clear()
            self._absent = (Verdict.CONTRADICTION, impossible)
            return
        if last is not None and (begun_by := _break(last.at, reading)) is not None:
            self._samples.clear()
            self._begun_by, last = begun_by, None
        self._samples.append(_sample(last, reading))
        while self._samples[0].at.time_s < reading.time_s - self._window_s:
            self._samples.popleft()
        if self._is_long_enough:
            self._begun_by = None

    def speed(self, counted: Sequence[Counted] = ()) -> PartitionSpeed:
        """The average speed over the window, from its first and its last reading.

        Args:
            counted: what the topic's pace makes of the growth in parts of the window; empty: all counts as it is.

        References:
            Landau 2022, section "Monitor".
        """
        if self._absent is not None:
            return PartitionSpeed(self._absent[0], None, self._absent[1])
        if not self._is_long_enough:
            verdict, reason = self._begun_by or (Verdict.UNKNOWN, "a new window")
            return PartitionSpeed(
                verdict, None, f"{reason}: {len(self._samples)} readings in {self.span_s:.0f} of {self._min_span_s:g} s"
            )
        last = self._samples[-1].at
        if last.size_bytes is None:
            lack = "no sample of its record batches yet"
            return self._by_records(counted, Verdict.ESTIMATED, last.bytes_per_record, "from a sample", lack)
        if any(sample.cut for sample in list(self._samples)[1:]):
            lack = "and nothing tells the size of its records"
            return self._by_records(counted, Verdict.SHRUNK, self._bytes_per_record(), "the log was cut", lack)
        return self._by_size(counted)

    def _by_size(self, counted: Sequence[Counted]) -> PartitionSpeed:
        first, last = self._samples[0].at, self._samples[-1].at
        grown = _size(last) - _size(first)
        # One or two rises may be offsets that became visible late, when a follower has caught up
        if grown == 0 and self._rises() >= _STANDSTILL:
            reason = f"{last.end_offset - first.end_offset} new offsets, and the size stays {_size(last)} bytes"
            return PartitionSpeed(Verdict.CONTRADICTION, None, reason)
        return PartitionSpeed(Verdict.MEASURED, self._pace(counted, lambda at: (_size(at), at.time_s)))

    def _rises(self) -> int:
        """How often the end offset has risen, but for the last reading, whose size was read before its end."""
        return sum(b.at.end_offset > a.at.end_offset for a, b in pairwise(list(self._samples)[:-1]))

    def _by_records(
        self, counted: Sequence[Counted], verdict: Verdict, each: float | None, basis: str, lack: str
    ) -> PartitionSpeed:
        """New records x stored bytes of each."""
        first, last = self._samples[0].at, self._samples[-1].at
        records = last.end_offset - first.end_offset
        if records and each is None:
            return PartitionSpeed(Verdict.UNKNOWN, None, f"{basis}: {lack}")
        return PartitionSpeed(
            verdict,
            (each or 0.0) * self._pace(counted, lambda at: (at.end_offset, at.offsets_s)),
            f"{basis}: {records} records of {each or 0.0:.0f} bytes" if records else f"{basis}: no new record",
        )

    def _pace(self, counted: Sequence[Counted], read: Callable[[PartitionReading], tuple[float, float]]) -> float:
        """Growth per second of what `read` gives, with when it was read."""
        samples = [sample.at for sample in self._samples]
        begins = [max(1, bisect_left(samples, each.from_s, key=lambda at: at.time_s)) for each in counted] or [1]
        parts = []
        for each, (begin, end) in zip(counted or _ALL, pairwise([*begins, len(samples)]), strict=True):
            if each.factor is not None and end > begin:
                (first, began), (last, ended) = read(samples[begin - 1]), read(samples[end - 1])
                parts.append((each.factor * (last - first), ended - began))
        if len(parts) > 1 and self._has_its_own(counted, parts, read):
            parts = parts[-1:]
        grown, seconds = (fsum(column) for column in zip((0.0, 0.0), *parts, strict=True))
        return grown / seconds if seconds else 0.0

    def _has_its_own(
        self,
        counted: Sequence[Counted],
        parts: Sequence[tuple[float, float]],
        read: Callable[[PartitionReading], tuple[float, float]],
    ) -> bool:
        """Whether the topic's pace is not its own: `parts` (growth, s) before the last are of another load."""
        grown, seconds = (fsum(column) for column in zip(*parts[:-1], strict=True))
        if not is_far(grown / seconds, parts[-1][0] / parts[-1][1]):  # nearly all; the rest costs more
            return False
        older: list[float] = []
        newest: list[float] = []
        for before, after in pairwise(sample.at for sample in self._samples):
            if (factor := factor_at(counted, after.time_s)) is not None:
                (first, began), (last, ended) = read(before), read(after)
                is_new = after.time_s >= counted[-1].from_s
                (newest if is_new else older).append(factor * (last - first) / (ended - began))
        return is_its_own(older, newest)

    def _bytes_per_record(self) -> float | None:
        """Stored bytes per offset: of what came while nothing was deleted, or of the whole log if that is more.

        A compacted log has fewer records than offsets, so there the first is better even if it is little.
        """
        grown = records = 0.0
        for before, after in pairwise(self._samples):
            if not after.cut:
                grown += _size(after.at) - _size(before.at)
                records += after.end - before.end
        logs = [(s.end - s.at.log_start, _size(s.at)) for s in self._samples if s.end > s.at.log_start]
        compacted = any(sample.compacted for sample in self._samples)
        if grown > 0 and records > 0 and (compacted or not logs or records >= median(log[0] for log in logs)):
            return grown / records
        # The median, because one reading may have seen the size before a cut and the start after it
        return median(size / offsets for offsets, size in logs) if logs else None


def _size(reading: PartitionReading) -> int:
    return reading.size_bytes or 0


def _sample(last: _Sample | None, reading: PartitionReading) -> _Sample:
    if last is None:
        return _Sample(reading, float(reading.end_offset))
    moved = reading.log_start != last.at.log_start
    shrunk = _size(reading) < _size(last.at)
    # Sizes are read before starts: where the start had moved last time, that size may still have been the uncut one
    near = moved or last.moved
    return _Sample(reading, _end_at_size(last.at, reading), moved, near or shrunk, compacted=shrunk and not near)


def _end_at_size(last: PartitionReading, reading: PartitionReading) -> float:
    """The end offset between its last two readings; what comes in the moment after the size is not in the size."""
    between = reading.offsets_s - last.offsets_s
    share = (reading.time_s - last.offsets_s) / between if between > 0 else 1.0
    return last.end_offset + (reading.end_offset - last.end_offset) * min(1.0, max(0.0, share))


def _impossible(reading: PartitionReading) -> str:
    """Why a reading cannot be; empty when it can."""
    if reading.end_offset < reading.log_start:
        return f"the log ends at {reading.end_offset}, before its start {reading.log_start}"
    if reading.log_start < 0 or _size(reading) < 0:
        return f"negative: start {reading.log_start}, size {reading.size_bytes}"
    return ""


def _break(last: PartitionReading, new: PartitionReading) -> tuple[Verdict, str] | None:
    """Why two readings are not of one log that goes on; None when they are."""
    if new.topic_id != last.topic_id:
        return Verdict.RECREATED, f"the topic was made again: id {new.topic_id}, before {last.topic_id}"
    if (new.size_bytes is None) != (last.size_bytes is None):
        return Verdict.RESTARTED, "measured in another way than before"
    if new.end_offset < last.end_offset:
        return Verdict.TRUNCATED, f"the end offset went back from {last.end_offset} to {new.end_offset}"
    if new.log_start < last.log_start:
        return Verdict.CONTRADICTION, f"the log's start went back from {last.log_start} to {new.log_start}"
    if new.leader != last.leader and new.size_bytes is not None:
        return Verdict.RESTARTED, f"the leader is now broker {new.leader}, before {last.leader}"
    return None
