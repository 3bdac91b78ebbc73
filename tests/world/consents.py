"""Judges plans that were carried out by the records alone: each with the consent of a person to it, and once."""

from collections.abc import Iterator

from kgs_core.controller.plain_text import printable
from kgs_core.protocol import Approval, Message, ProposedPlan, Received, Target

_BY_CONSENT = " approved by "


class Consents:
    """Follows the topics record by record."""

    def __init__(self) -> None:
        self._target: Received[Target] | None = None
        self._plan: Received[ProposedPlan] | None = None
        self._approvals: list[Received[Approval]] = []

    def take(self, received: Received[Message]) -> Iterator[str]:
        """What is wrong with one more record, a line each."""
        message = received.message
        if isinstance(message, ProposedPlan):
            self._plan = Received(message, received.offset, received.timestamp_ms)
        elif isinstance(message, Approval):
            self._approvals.append(Received(message, received.offset, received.timestamp_ms))
        elif isinstance(message, Target):
            if _BY_CONSENT in message.reason:
                yield from self._judged(message)
            self._target = Received(message, received.offset, received.timestamp_ms)

    def _judged(self, target: Target) -> Iterator[str]:
        plan, before = self._plan, self._target
        what = f"carried out: {printable(target.reason)}"
        if plan is None or before is None or plan.message.target_offset != before.offset:
            yield f"{what}: but no plan stands"
            return
        if not any(self._is_for(approval, plan) for approval in self._approvals):
            yield f"{what}: but nobody has approved plan {plan.message.plan_id} in time"
        if target.assignment != {**before.message.assignment, **plan.message.moves}:
            yield f"{what}: but other moves were approved"

    @staticmethod
    def _is_for(approval: Received[Approval], plan: Received[ProposedPlan]) -> bool:
        said, end_ms = approval.message, plan.timestamp_ms + plan.message.expires_after_s * 1000
        return (said.plan_id, said.plan_offset) == (
            plan.message.plan_id,
            plan.offset,
        ) and approval.timestamp_ms <= end_ms
