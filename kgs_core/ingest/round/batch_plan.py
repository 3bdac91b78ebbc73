"""Which topic to read next, and how far, where each topic costs a Spark job of its own. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgs_core.model import OffsetRange


@dataclass(frozen=True, slots=True)
class UnreadRecords:
    """Unread records in the owned partitions of one topic.

    Attributes:
        positions: partition -> next offset to read.
        ends: partition -> end of what may be read.
        since: when the oldest of it was first seen, seconds on the caller's clock.
        bytes_per_record: as read of late, uncompressed.
    """

    topic: str
    positions: Mapping[int, int]
    ends: Mapping[int, int]
    since: float
    bytes_per_record: float

    @property
    def records(self) -> int:
        """Offsets between position and end, over all partitions."""
        return sum(max(0, self.ends.get(p, 0) - position) for p, position in self.positions.items())


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """The next job: exact ranges of one topic, including the empty ones (so that the client keeps them assigned)."""

    topic: str
    ranges: Mapping[int, OffsetRange]


def choose(waiting: Sequence[UnreadRecords], batch_bytes: int, wait_time_s: float, now: float) -> PlannedRead | None:
    """The topic that is due and has most waiting, by size and age together; None while none is due.

    A topic is due when a full batch waits, or when its oldest record has waited for `wait_time_s`. Age counts without
    bound, so no topic waits for ever behind a hot one.
    """

    def score(w: UnreadRecords) -> tuple[float, str]:
        full = min(w.records * w.bytes_per_record / batch_bytes, 1.0)
        return full + (now - w.since) / max(wait_time_s, 1.0), w.topic

    due = [
        w
        for w in waiting
        if w.records and (w.records * w.bytes_per_record >= batch_bytes or now - w.since >= wait_time_s)
    ]
    if not due:
        return None
    chosen = max(due, key=score)
    return PlannedRead(chosen.topic, _ranges(chosen, batch_bytes))


def _ranges(waiting: UnreadRecords, batch_bytes: int) -> dict[int, OffsetRange]:
    """At most `batch_bytes` in all: small backlogs whole, the rest in equal parts."""
    left = max(1, int(batch_bytes / max(waiting.bytes_per_record, 1.0)))
    backlog = {p: max(0, waiting.ends.get(p, 0) - position) for p, position in waiting.positions.items()}
    ranges = {}
    todo = sorted(backlog, key=lambda p: (backlog[p], p))
    for n, partition in enumerate(todo):
        # rounded up, so that a batch of fewer records than partitions still moves
        take = min(backlog[partition], -(-left // (len(todo) - n)))
        left -= take
        start = waiting.positions[partition]
        ranges[partition] = OffsetRange(start, start + take)
    return ranges
