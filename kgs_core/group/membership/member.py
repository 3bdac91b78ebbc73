"""Values that `membership` works with: what one member of the group receives, decides and knows."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kgs_core.group.protocol import FlatOut, Member, Process, WorkDone
from kgs_core.model import BytesPerSecond, TopicPartition


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of a member: part of every full report, never changed; `consumer_class` may be empty."""

    member: Member
    process: Process
    version: str = ""
    config_hash: str = ""
    consumer_class: str = ""
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class MembershipTiming:
    """Intervals and limits of reporting; the names are those of kgs.yaml."""

    heartbeat_s: float
    suspect_after_s: float
    batch_timeout_s: float


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that the batch loop knows of its partitions.

    Attributes:
        bad_shares: topics of which too many records are bad -> share of these, see `group.membership.bad_share`.
        ready: coming partitions whose topic is open.
    """

    stopped: Mapping[TopicPartition, str] = field(default_factory=dict)
    positions: Mapping[TopicPartition, int] = field(default_factory=dict)
    bytes_per_s: BytesPerSecond = 0.0
    bad_shares: Mapping[str, float] = field(default_factory=dict)
    ready: frozenset[TopicPartition] = frozenset()
    unready: Mapping[TopicPartition, str] = field(default_factory=dict)
    work: WorkDone | None = None
    flat_out: FlatOut | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Decision that holds from the next batch on.

    Attributes:
        pending: what to fetch ahead without taking it.
        offset: of the assignment behind it; None without one.
        ends: nothing is read any more, and the process ends.
    """

    owned: frozenset[TopicPartition] = frozenset()
    pending: frozenset[TopicPartition] = frozenset()
    offset: int | None = None
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Drains:
    """Times that it took to let go what an assignment took away."""

    count: int = 0
    last_s: float | None = None
    longest_s: float | None = None

    def and_one_of(self, seconds: float) -> "Drains":
        """With one more."""
        return Drains(self.count + 1, seconds, max(seconds, self.longest_s or 0.0))


def degrees(shares: Mapping[str, float]) -> dict[str, bool]:
    """Topics that are bad -> whether all of their records are."""
    return {topic: share >= 1 for topic, share in shares.items()}
