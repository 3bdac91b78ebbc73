"""Messages about a plan that waits for a person."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from kgs_core.protocol.fields import Amount, ByPartition, Consumer, Count, Flag, Label, Text


@dataclass(frozen=True, slots=True)
class ProposedPlan:
    """A plan that nothing forces, which the controller has not carried out: written by it alone, the newest one counts.

    It stands while the Target that it was made against does, and no longer than `expires_after_s`. Its offset in the
    topic tells it from an equal one that is proposed later.

    Attributes:
        plan_id: the same for the same plan against the same Target.
        target_offset: of the Target that it was made against.
        moves: partitions that would change their consumer -> which one they would get.
        spares: as in the Target that it would become.
        speeds: of the partitions that would move, as it was made with, bytes/s.
        rscore: of the moves at these speeds.
        consumers: how many would read something.
        reason: why it was made, for people.
        expires_after_s: after the broker's time of this record.
        may_be_approved: it waits for a person; else it is a recommendation only.
        time_ms: wall clock, for people only.
        measurement_offset: as in the Target.
    """

    plan_id: Annotated[Label, Field(min_length=1)]
    target_offset: Count
    algorithm: Annotated[Label, Field(min_length=1)]
    moves: ByPartition[Consumer]
    spares: tuple[Consumer, ...]
    speeds: Annotated[ByPartition[Amount], Field(alias="speeds_bytes_per_s")]
    rscore: Amount
    consumers: Count
    reason: Text
    expires_after_s: Amount
    may_be_approved: Flag
    time_ms: Count
    measurement_offset: Count | None = None


@dataclass(frozen=True, slots=True)
class Approval:
    """Consent of a person to one proposed plan; the newest one counts, and for no other plan.

    Attributes:
        plan_id: which plan.
        plan_offset: of the record that proposed it: an equal plan that is proposed later is not meant.
    """

    plan_id: Annotated[Label, Field(min_length=1)]
    plan_offset: Count
    by: Text
    time_ms: Count
