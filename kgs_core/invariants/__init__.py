"""What must always hold, as functions of plain values: for tests, simulations, audits and asset checks alike."""

from kgs_core.invariants.table_audit import (
    NO_OFFSETS,
    Fault,
    Finding,
    LakeAudit,
    LogPart,
    Offsets,
    PartitionAudit,
    Promise,
    StoredPositions,
    TableAudit,
)
from kgs_core.invariants.table_rows import check_partition

__all__ = [
    "NO_OFFSETS",
    "Fault",
    "Finding",
    "LakeAudit",
    "LogPart",
    "Offsets",
    "PartitionAudit",
    "Promise",
    "StoredPositions",
    "TableAudit",
    "check_partition",
]
