"""Targets that no record can hold, found before anything is written: the group keeps the present Target."""

from dataclasses import dataclass

from kgs_core.errors import ProtocolError
from kgs_core.group.protocol import Target
from kgs_core.group.protocol.codec import encode


@dataclass(frozen=True, slots=True)
class UnwritableTarget:
    """A Target that cannot be written, and why; `partitions` is how many it has."""

    partitions: int
    why: str

    def __str__(self) -> str:
        """`the plan stands, new partitions are not read: Target of ...`."""
        return f"the plan stands, new partitions are not read: {self.why}"


def unwritable(target: Target) -> UnwritableTarget | None:
    """Why no record can hold a Target; None: one can."""
    try:
        encode(target)
    except ProtocolError as e:
        return UnwritableTarget(len(target.assignment), str(e))
    return None
