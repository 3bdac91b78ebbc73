"""Load of a consumer group that is not kgs's: what each member is given, reads, and is behind. Pure.

Theory of operation. What members read is told by their committed offsets alone, so the group is looked at again and
again while the write speeds are measured.

1. Positions are counted in stored bytes, by what an offset of the partition took in the log meanwhile.
2. A speed is that from the first change of a member's commits to the last, if there are `LEAST_CHANGES`: who commits
   every 30 s (Kafka Streams) or 60 s (Connect) is not seen to read in a window of 30 s, which is no speed of zero.
3. Only who had the same partitions at every look has a speed: offsets do not say who committed them.
4. A member is flat out if at every look it was further behind than it reads in `FLAT_OUT_S`, and than in twice the
   longest time between its commits: so far behind who keeps up may look.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median_low

from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition, WriteSpeeds, whole_sum

FLAT_OUT_S = 10.0
LEAST_CHANGES = 3


@dataclass(frozen=True, slots=True)
class Look:
    """The group at one moment.

    Attributes:
        time_s: monotonic.
        owners: partition -> id of the member that has it.
        committed: next offset to be read, of each partition that has one.
        logs: first offset of each partition, and the next to be written; asked after `committed`.
    """

    time_s: float
    owners: Mapping[TopicPartition, str]
    committed: Mapping[TopicPartition, int]
    logs: Mapping[TopicPartition, tuple[int, int]]

    def position(self, tp: TopicPartition) -> int | None:
        """Next offset to be read; None: not known. One above the log's end is of another log."""
        if tp not in self.logs:
            return None
        start, end = self.logs[tp]
        at = self.committed.get(tp, end if start == end else None)
        return None if at is None or at > end else max(at, start)

    def behind(self, tp: TopicPartition) -> int | None:
        """Offsets that are not read yet; None: not known."""
        at = self.position(tp)
        return None if at is None else self.logs[tp][1] - at


@dataclass(frozen=True, slots=True)
class MemberLoad:
    """One member, by the number that the plan gives it.

    Attributes:
        name: its instance id, or its client id and host.
        partitions: how many it has.
        written_bytes_per_s: what is written to them, stored bytes/s.
        read_bytes_per_s: what it reads of them, likewise.
        behind_bytes: what it has not read yet, stored bytes.
        is_flat_out: whether it was behind the whole time, so that this is what it can read.
        is_stuck: whether it was, and has committed nothing.

    A figure that is not known is None.
    """

    consumer: ConsumerId
    name: str
    partitions: int
    written_bytes_per_s: BytesPerSecond | None
    read_bytes_per_s: BytesPerSecond | None
    behind_bytes: float | None
    is_flat_out: bool = False
    is_stuck: bool = False


@dataclass(frozen=True, slots=True)
class GroupLoad:
    """The group as it is now.

    Attributes:
        members: by number, from 1.
        current: who reads what.
        unread: partitions of its topics that no member has.
        read_by_others: those among them whose offsets were committed meanwhile all the same.
        lag_bytes: stored bytes that are not read yet, where that is known.
        since_ms: when the looks began, ms since 1970.
    """

    group: str
    members: tuple[MemberLoad, ...]
    current: Assignment
    unread: tuple[TopicPartition, ...]
    read_by_others: tuple[TopicPartition, ...]
    lag_bytes: Mapping[TopicPartition, float]
    since_ms: int = 0

    @property
    def idle(self) -> frozenset[ConsumerId]:
        """Members that read nothing."""
        return frozenset(one.consumer for one in self.members if not one.partitions)

    @property
    def flat_out(self) -> Mapping[ConsumerId, BytesPerSecond]:
        """What those read that were flat out."""
        return {one.consumer: one.read_bytes_per_s for one in self.members if one.is_flat_out and one.read_bytes_per_s}

    @property
    def flat_out_bytes_per_s(self) -> BytesPerSecond | None:
        """What a member can read, as the median (of two: the lower) of those that were flat out; None: none was."""
        return median_low(self.flat_out.values()) if self.flat_out else None


def group_load(
    group: str,
    members: Sequence[tuple[str, str]],
    looks: Sequence[Look],
    bytes_per_offset: Mapping[TopicPartition, float],
    speeds: WriteSpeeds,
) -> GroupLoad:
    """Load of the group's members, in their order.

    Args:
        members: id and name of each at the last look.
        looks: by time, at least one.
        bytes_per_offset: stored bytes of one offset of each partition, where that is known.
        speeds: write speeds, as far as they are known.
    """
    last = looks[-1]
    numbers = {member: ConsumerId(number) for number, (member, _) in enumerate(members, 1)}
    current = {tp: numbers[member] for tp, member in sorted(last.owners.items())}
    shares = {member: frozenset(tp for tp, owner in last.owners.items() if owner == member) for member in numbers}
    found = tuple(
        _member_load(numbers[member], name, _Share(member, shares[member], looks, bytes_per_offset), speeds)
        for member, name in members
    )
    unread = tuple(sorted(last.logs.keys() - current.keys()))
    others = tuple(
        tp for tp in unread if last.committed.get(tp, 0) > looks[0].committed.get(tp, last.committed.get(tp, 0))
    )
    lags = {tp: _bytes(last.behind(tp), bytes_per_offset.get(tp)) for tp in last.logs}
    return GroupLoad(group, found, current, unread, others, {tp: lag for tp, lag in lags.items() if lag is not None})


@dataclass(frozen=True, slots=True)
class _Share:
    """What one member has, over the looks."""

    member: str
    partitions: frozenset[TopicPartition]
    looks: Sequence[Look]
    bytes_per_offset: Mapping[TopicPartition, float]

    @property
    def was_its_own(self) -> bool:
        return all(
            {tp for tp, owner in look.owners.items() if owner == self.member} == self.partitions for look in self.looks
        )

    def behind(self, look: Look) -> float | None:
        return whole_sum(_bytes(look.behind(tp), self.bytes_per_offset.get(tp)) for tp in self.partitions)

    def read(self) -> list[float] | None:
        """Stored bytes that were read until each look, from the first; None: not known."""
        found = [whole_sum(self._read(tp, look) for tp in self.partitions) for look in self.looks]
        return [one for one in found if one is not None] if None not in found else None

    def _read(self, tp: TopicPartition, look: Look) -> float | None:
        began, at = self.looks[0].position(tp), look.position(tp)
        return None if began is None or at is None else _bytes(at - began, self.bytes_per_offset.get(tp))


def _member_load(consumer: ConsumerId, name: str, share: _Share, speeds: WriteSpeeds) -> MemberLoad:
    written, behind = whole_sum(map(speeds.get, share.partitions)), share.behind(share.looks[-1])
    load = MemberLoad(consumer, name, len(share.partitions), written, None, behind)
    read = share.read() if share.was_its_own else None
    lags = [lag for lag in map(share.behind, share.looks) if lag is not None]
    if read is None or len(lags) < len(share.looks) or any(b < a for a, b in pairwise(read)):
        return load
    times = [look.time_s for look, (a, b) in zip(share.looks[1:], pairwise(read), strict=True) if b > a]
    if not times:
        is_idle = not any(lags) and not written and written is not None
        is_stuck = min(lags) > 0 and len(lags) >= LEAST_CHANGES
        return MemberLoad(consumer, name, load.partitions, written, 0.0 if is_idle else None, behind, is_stuck=is_stuck)
    if len(times) < LEAST_CHANGES:
        return load
    at = {look.time_s: so_far for look, so_far in zip(share.looks, read, strict=True)}
    speed = (at[times[-1]] - at[times[0]]) / (times[-1] - times[0])
    longest_s = max(b - a for a, b in pairwise(times))
    is_flat_out = min(lags) >= max(FLAT_OUT_S, 2 * longest_s) * speed
    return MemberLoad(consumer, name, load.partitions, written, speed, behind, is_flat_out)


def _bytes(offsets: int | None, each: float | None) -> float | None:
    """Stored bytes of so many offsets; none take none, whatever one takes."""
    if offsets is None or (offsets and each is None):
        return None
    return offsets * (each or 0.0)
