"""View of one incarnation: what the topics say of it."""

from dataclasses import dataclass, replace

from kgs_core.group.protocol import Heartbeat, Member, MemberAssignment, Phase, Received, Report
from kgs_core.model import TopicPartition

_NOTHING: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class MemberView:
    """View of one incarnation.

    Attributes:
        report: its newest full report, with what a newer heartbeat said put into it; None: none was read.
        positions_since: when it first reported the positions of `report`, likewise.
        last_seen_at: when its newest sign of life came, monotonic seconds of the caller; None: none was read.
        joined: rank among all members; of two incarnations of one consumer the one with the higher rank is newer.
        first_heard: offset of the earliest report or heartbeat of it that was read.
        first_heard_ms: the broker's clock when that was appended.
    """

    member: Member
    report: Report | None = None
    assignment: Received[MemberAssignment] | None = None
    last_seen_at: float | None = None
    joined: int = 0
    sequence: int = -1
    first_heard: int | None = None
    first_heard_ms: int | None = None
    positions_since: float | None = None

    def with_sign(self, sign: Report | Heartbeat, offset: int, timestamp_ms: int, last_seen_at: float) -> "MemberView":
        """With a newer report or heartbeat."""
        # Never back: the broker's clock may have been set
        seen_at = last_seen_at if self.last_seen_at is None else max(self.last_seen_at, last_seen_at)
        before = self.report
        stands = isinstance(sign, Heartbeat) or (before is not None and before.positions == sign.positions)
        return replace(
            self,
            report=self._merged(sign) if isinstance(sign, Heartbeat) else sign,
            last_seen_at=seen_at,
            positions_since=self.positions_since if stands else seen_at,
            sequence=sign.sequence,
            first_heard=offset if self.first_heard is None else self.first_heard,
            first_heard_ms=timestamp_ms if self.first_heard_ms is None else self.first_heard_ms,
        )

    def _merged(self, heartbeat: Heartbeat) -> Report | None:
        return self.report and replace(
            self.report,
            sequence=heartbeat.sequence,
            phase=heartbeat.phase,
            bytes_per_s=heartbeat.bytes_per_s,
            batch_age_s=heartbeat.batch_age_s,
        )

    @property
    def possibly_owned(self) -> frozenset[TopicPartition]:
        """Every partition that it may still commit to, or will once it reads its last Assignment.

        An incarnation that has ended owns nothing, and applies nothing any more.
        """
        if self.ended:
            return _NOTHING
        held = self.report.owned if self.report else _NOTHING
        if self.assignment is None or self.has_applied:
            return held
        return held | self.assignment.message.owned | self.assignment.message.revoking

    @property
    def has_applied(self) -> bool:
        """Whether its report says that it has acted on its last Assignment."""
        applied = self.report.applied if self.report else None
        return self.assignment is not None and applied is not None and applied >= self.assignment.offset

    @property
    def ended(self) -> bool:
        """Whether it said its last word."""
        return self.report is not None and self.report.phase is Phase.ENDED

    @property
    def retiring(self) -> bool:
        """Whether it was told to end, which is never taken back."""
        return self.assignment is not None and self.assignment.message.retire
