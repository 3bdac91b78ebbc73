"""View of one incarnation: what the topics say of it."""

from dataclasses import dataclass

from kgs_core.model import TopicPartition
from kgs_core.protocol import Member, MemberAssignment, Phase, Received, Report

_NOTHING: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class MemberView:
    """View of one incarnation.

    Attributes:
        report: its newest full report, with what a newer heartbeat said put into it; None: none was read.
        assignment: its last Assignment; None: it never had one.
        last_seen_at: when its newest sign of life came, monotonic seconds of the caller; None: none was read.
        joined: rank among all members; of two incarnations of one consumer the one with the higher rank is newer.
        sequence: of its newest report or heartbeat.
        first_heard: offset of the earliest report or heartbeat of it that was read.
    """

    member: Member
    report: Report | None = None
    assignment: Received[MemberAssignment] | None = None
    last_seen_at: float | None = None
    joined: int = 0
    sequence: int = -1
    first_heard: int | None = None

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
