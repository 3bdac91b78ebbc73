"""The messages of the group, and how they are written. They carry whole states, never edges."""

from kgs_core.group.protocol.messages import (
    DesiredState,
    DesiredVersion,
    Ending,
    Heartbeat,
    MemberAssignment,
    Message,
    Phase,
    Received,
    Report,
    RunState,
    Starting,
    Target,
    Tombstone,
)
from kgs_core.group.protocol.parts import Change, FlatOut, Incarnation, LearntCapacity, Member, Process, Terms, WorkDone

__all__ = [
    "Change",
    "DesiredState",
    "DesiredVersion",
    "Ending",
    "FlatOut",
    "Heartbeat",
    "Incarnation",
    "LearntCapacity",
    "Member",
    "MemberAssignment",
    "Message",
    "Phase",
    "Process",
    "Received",
    "Report",
    "RunState",
    "Starting",
    "Target",
    "Terms",
    "Tombstone",
    "WorkDone",
]
