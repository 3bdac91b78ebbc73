"""Exactly once: positions in the table's log, the commit rule, owners of tables, the audit of rows; pure."""

from kgs_core.lake.rule.audit import check_partition
from kgs_core.lake.rule.audit_result import (
    NO_OFFSETS,
    DerivedAudit,
    EndedOffsets,
    Fault,
    Finding,
    LakeAudit,
    LogPart,
    Offsets,
    PartitionAudit,
    Promise,
    SideRows,
    StoredPositions,
    TableAudit,
)

__all__ = [
    "NO_OFFSETS",
    "DerivedAudit",
    "EndedOffsets",
    "Fault",
    "Finding",
    "LakeAudit",
    "LogPart",
    "Offsets",
    "PartitionAudit",
    "Promise",
    "SideRows",
    "StoredPositions",
    "TableAudit",
    "check_partition",
]
