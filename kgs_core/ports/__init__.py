"""Ports of the core that several subjects use, as Protocols; one that a single subject uses stands with its user."""

from kgs_core.ports.group import ControllerWriter, Fleet, GroupTopicReader, Run
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
)
from kgs_core.ports.upkeep import RowsRemoved, Upkeep

__all__ = [
    "PLAIN",
    "CommitOutcome",
    "ControllerWriter",
    "FileWritten",
    "Fleet",
    "GroupTopicReader",
    "Lake",
    "LakeTable",
    "PinnedTable",
    "RowsRemoved",
    "Run",
    "Schema",
    "TableContents",
    "TableDescription",
    "TableLayout",
    "Upkeep",
]
