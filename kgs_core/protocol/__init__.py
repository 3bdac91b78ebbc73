"""The messages of the group, and how they are written. They carry whole states, never edges."""

from kgs_core.protocol.messages import (
    Approval,
    DesiredState,
    DesiredVersion,
    Ending,
    Heartbeat,
    MemberAssignment,
    Message,
    Phase,
    ProposedPlan,
    Received,
    Report,
    RunState,
    Starting,
    Target,
    Tombstone,
)
from kgs_core.protocol.parts import Change, Incarnation, Member, Process, Terms, WorkDone

__all__ = [
    "Approval",
    "Change",
    "DesiredState",
    "DesiredVersion",
    "Ending",
    "Heartbeat",
    "Incarnation",
    "Member",
    "MemberAssignment",
    "Message",
    "Phase",
    "Process",
    "ProposedPlan",
    "Received",
    "Report",
    "RunState",
    "Starting",
    "Target",
    "Terms",
    "Tombstone",
    "WorkDone",
]
