"""The messages of the group, and how they are written. They carry whole states, never edges."""

from kgs_core.protocol.messages import (
    Change,
    Heartbeat,
    Incarnation,
    Member,
    Message,
    Order,
    Phase,
    Process,
    Received,
    Report,
    RunState,
    Target,
    Tombstone,
    Wanted,
    Wish,
)

__all__ = [
    "Change",
    "Heartbeat",
    "Incarnation",
    "Member",
    "Message",
    "Order",
    "Phase",
    "Process",
    "Received",
    "Report",
    "RunState",
    "Target",
    "Tombstone",
    "Wanted",
    "Wish",
]
