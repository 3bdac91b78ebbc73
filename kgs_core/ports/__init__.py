"""Ports of the core as Protocols; adapters and tests implement them.

A port whose types are the controller's own stands beside its user, since those lie above this room: `Measurements`
in `runtime/controller_loop.py`, `Feed` in `runtime/rebalance_ports.py`.
"""

from kgs_core.ports.catalog import Catalog, CatalogEntry, Registration
from kgs_core.ports.group import (
    AssignmentReader,
    ControllerWriter,
    Fleet,
    GroupTopicAccess,
    GroupTopicReader,
    ReportWriter,
    Run,
)
from kgs_core.ports.lake import (
    PLAIN,
    CommitOutcome,
    FileWritten,
    Lake,
    LakeTable,
    PinnedTable,
    Schema,
    TableContents,
    TableDescription,
    TableLayout,
    Upkeep,
)
from kgs_core.ports.registry import RegisteredSchema, SchemaKind, SchemaRegistry, UnknownSchemaError

__all__ = [
    "PLAIN",
    "AssignmentReader",
    "Catalog",
    "CatalogEntry",
    "CommitOutcome",
    "ControllerWriter",
    "FileWritten",
    "Fleet",
    "GroupTopicAccess",
    "GroupTopicReader",
    "Lake",
    "LakeTable",
    "PinnedTable",
    "RegisteredSchema",
    "Registration",
    "ReportWriter",
    "Run",
    "Schema",
    "SchemaKind",
    "SchemaRegistry",
    "TableContents",
    "TableDescription",
    "TableLayout",
    "UnknownSchemaError",
    "Upkeep",
]
