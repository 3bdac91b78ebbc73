"""Ports of the core as Protocols; `adapters` and `testing` implement them.

A port whose types are the controller's own stands beside its user, since those lie above this room: `Measurements`
in `runtime/controller_loop.py`, `Feed` in `runtime/rebalance_ports.py`.
"""

from kgs_core.ports.group import AssignmentReader, ControllerWriter, Fleet, GroupTopicReader, ReportWriter, Run, Topics
from kgs_core.ports.lake import FileWritten, Lake, LakeTable, Outcome, PinnedTable, TableContents, Upkeep

__all__ = [
    "AssignmentReader",
    "ControllerWriter",
    "FileWritten",
    "Fleet",
    "GroupTopicReader",
    "Lake",
    "LakeTable",
    "Outcome",
    "PinnedTable",
    "ReportWriter",
    "Run",
    "TableContents",
    "Topics",
    "Upkeep",
]
