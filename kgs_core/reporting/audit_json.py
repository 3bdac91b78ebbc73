"""An audit of the lake as plain values for JSON."""

from typing import Any

from kgs_core.lake.rule import Fault, LakeAudit, PartitionAudit, TableAudit
from kgs_core.reporting.plain_values import picked

COUNTED = (Fault.LOST, Fault.DOUBLED, Fault.AHEAD, Fault.FOREIGN, Fault.DELETED_UNREAD)
"""Faults that have a count of rows or offsets, in the order in which they are shown."""


def audit_values(found: LakeAudit) -> dict[str, Any]:
    """The audit as values for JSON.

    Returns:
        {"ok", "tables": [{"table", "topic", "ok", "promise", "version" (null: there is none), "rows", "dead_letters",
        "unread" (null: unknown), "lost", "doubled", "ahead", "foreign", "deleted_unread", "compared" (rows; null:
        values were not), "changed" (null likewise), "notes": [line], "problem" (why it could not be read, or that it
        is missing; empty: it was read), "partitions": [{"topic_id", "partition", "ok", "start", "position", "gaps":
        [[first offset, end]], "rows", "dead_letters", "unread", "lost", "doubled", "ahead", "foreign",
        "deleted_unread", "ended" (records that are gone by keep), "erased" (likewise, by a person), "findings":
        [line]}]}], "derived": [{"table", "source", "ok", "version" (of the source; null: there is nothing yet),
        "rows", "missing", "extra", "differing", "problem"}]}
    """
    derived = [picked(each, *_OF_DERIVED) for each in found.derived]
    return {"ok": found.ok, "tables": [_table(table) for table in found.tables], "derived": derived}


_OF_DERIVED = ("table", "source", "ok", "version", "rows", "missing", "extra", "differing", "problem")


def _table(table: TableAudit) -> dict[str, Any]:
    return {
        **picked(table, "table", "topic", "ok", "promise", "version", "rows", "dead_letters", "unread"),
        **{fault.value: table.count(fault) for fault in COUNTED},
        "compared": table.compared,
        "changed": None if table.compared is None else table.count(Fault.CHANGED),
        **picked(table, "notes", "problem"),
        "partitions": [_partition(partition) for partition in table.partitions],
    }


def _partition(partition: PartitionAudit) -> dict[str, Any]:
    stored = partition.stored
    return {
        **picked(stored, "topic_id", "partition"),
        "ok": partition.ok,
        **picked(stored, "start", "position", "gaps"),
        **picked(partition, "rows", "dead_letters", "unread"),
        **{fault.value: partition.count(fault) for fault in COUNTED},
        **picked(partition, "ended", "erased"),
        "findings": [str(finding) for finding in partition.findings],
    }
