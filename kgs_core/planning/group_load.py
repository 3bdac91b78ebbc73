"""Load of a consumer group that is not kgs's: what each member is given, reads, and is behind. Pure.

Read speeds are told by committed offsets. Members commit every few seconds (Kafka's default: 5), so a speed over a
window of 30 s is known to a sixth.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low

from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition, WriteSpeeds

FLAT_OUT_S = 10.0
"""Twice what a member that keeps up seems to be behind, since it commits every 5 s."""
LEAST_SPAN_S = 10.0
"""Over less, the same commits say too little of a speed."""


@dataclass(frozen=True, slots=True)
class MemberLoad:
    """One member, by the number that the plan gives it.

    Attributes:
        name: its instance id, or its client id and host.
        partitions: how many it reads.
        written_bytes_per_s: what is written to them, stored bytes/s.
        read_bytes_per_s: what it reads of them, likewise.
        behind_bytes: what it has not read yet, stored bytes.
        is_flat_out: whether it was behind the whole time, so that this is what it can read.

    A figure that is not known of each of its partitions is None.
    """

    consumer: ConsumerId
    name: str
    partitions: int
    written_bytes_per_s: BytesPerSecond | None
    read_bytes_per_s: BytesPerSecond | None
    behind_bytes: float | None
    is_flat_out: bool


@dataclass(frozen=True, slots=True)
class GroupLoad:
    """The group as it is now.

    Attributes:
        members: by number, from 1.
        current: who reads what.
        unread: partitions of its topics that no member has.
    """

    group: str
    members: tuple[MemberLoad, ...]
    current: Assignment = field(default_factory=dict)
    unread: tuple[TopicPartition, ...] = ()

    @property
    def idle(self) -> frozenset[ConsumerId]:
        """Members that read nothing."""
        return frozenset(one.consumer for one in self.members if not one.partitions)

    @property
    def flat_out_bytes_per_s(self) -> BytesPerSecond | None:
        """What a member can read, as the median (of two: the lower) of those that were flat out; None: none was."""
        shown = [one.read_bytes_per_s for one in self.members if one.is_flat_out and one.read_bytes_per_s is not None]
        return median_low(shown) if shown else None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the group got while the write speeds were measured.

    Attributes:
        before: committed offsets at first.
        after: the same `span_s` seconds later.
        ends: next offsets to be written, then.
        bytes_per_offset: stored bytes of one offset of each partition.
    """

    before: Mapping[TopicPartition, int]
    after: Mapping[TopicPartition, int]
    span_s: float
    ends: Mapping[TopicPartition, int]
    bytes_per_offset: Mapping[TopicPartition, float]

    def read(self, tp: TopicPartition) -> BytesPerSecond | None:
        """Stored bytes/s; None: not known. An offset that was set back is no reading."""
        if (
            self.span_s < LEAST_SPAN_S
            or tp not in self.before.keys() & self.after.keys() & self.bytes_per_offset.keys()
        ):
            return None
        offsets = self.after[tp] - self.before[tp]
        return offsets * self.bytes_per_offset[tp] / self.span_s if offsets >= 0 else None

    def behind(self, tp: TopicPartition) -> float | None:
        """Stored bytes; None: not known."""
        if tp not in self.after.keys() & self.ends.keys() & self.bytes_per_offset.keys():
            return None
        return max(0, self.ends[tp] - self.after[tp]) * self.bytes_per_offset[tp]


def group_load(
    group: str, members: Sequence[tuple[str, frozenset[TopicPartition]]], progress: Progress, speeds: WriteSpeeds
) -> GroupLoad:
    """Load of the group's members, in their order.

    Args:
        members: name and partitions of each.
        speeds: write speeds as far as they are known, of all partitions of its topics.
    """
    numbered = [(ConsumerId(number), name, tps) for number, (name, tps) in enumerate(members, 1)]
    current = {tp: consumer for consumer, _, tps in numbered for tp in sorted(tps)}
    found = []
    for consumer, name, tps in numbered:
        written, read, behind = (
            _sum(map(speeds.get, tps)),
            _sum(map(progress.read, tps)),
            _sum(map(progress.behind, tps)),
        )
        is_flat_out = _is_flat_out(written, read, behind, progress.span_s)
        found.append(MemberLoad(consumer, name, len(tps), written, read, behind, is_flat_out))
    return GroupLoad(group, tuple(found), current, tuple(sorted(progress.ends.keys() - current.keys())))


def _sum(each: Iterable[float | None]) -> float | None:
    known = list(each)
    return None if None in known else sum(one for one in known if one is not None)


def _is_flat_out(written: float | None, read: float | None, behind: float | None, span_s: float) -> bool:
    """Whether it was behind by more than `FLAT_OUT_S` of its reading, at first and at last."""
    if not read or written is None or behind is None:
        return False
    return min(behind, behind + (read - written) * span_s) >= FLAT_OUT_S * read
