"""New columns for a table that others commit to: a metadata entry of its own, made by whoever comes first.

Theory of operation (ADR 17). A table's columns only ever become more, and each new one takes null.
1. The entry holds the metadata as of the version right before it, with more columns, and nothing else. It is created
   under exactly the next number, as every entry is (`delta_table`, 3): so no other change of metadata lies between, and
   none is ever undone by it, also where it is carried out late. Whoever loses the number looks again; what another has
   added meanwhile is not added again, so it does not matter whose entry it was, or whether a reply was lost.
2. It moves no position and adds no file: killed before it or after it, exactly-once is not touched.
3. A batch that is under way meanwhile has fewer columns, and is valid: null is read for what a file lacks. Its commit
   meets an entry that changes metadata, reads the table anew with all its checks, finds each of its columns there as
   before, judges its positions as ever, and goes on with the same file.
4. A file with more columns than its table never enters: a batch is parsed into columns that the table was seen to have,
   and they stay, as long as the table is the same.
5. An intent tells which table it is for (its id) and as of which version its writer has checked it. A maker takes none
   that was checked before the last change of metadata (`lake/rule/combining.py`, 5): its writer looks again, and
   leaves it anew.
6. Types never change: Delta at protocol 1/2 cannot say that of a column. So `evolve: widen` has columns wide from the
   start.
"""

import json
import logging
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from deltalake import Schema

from kgs_core.errors import PermanentError, one_line
from kgs_core.lake.delta.pace import Pace, Tries
from kgs_core.lake.delta.table_log import TableLog, TableMetadata
from kgs_core.lake.files.columns import lacking
from kgs_core.system.failpoints import failpoint

_log = logging.getLogger(__name__)


def add_columns(log: TableLog, wanted: Iterable[pa.Field]) -> None:
    """Add to a table what it lacks of `wanted`, see `lacking`; afterwards `log.metadata` has it.

    Raises:
        UnsafeError: the table breaks the guarantee.
        PermanentError: no reader would take its schema.
        TransientError: the store did not answer, or too many others made entries.
    """
    columns = list(wanted)
    tries = Tries(log.connect_anew, Pace())
    while tries.are_left:
        with tries.one() as lost:
            state = log.looked_at((), lost=lost)
            more = lacking(log.metadata.columns, columns)
            if not more:
                return
            metadata = _readable(log.name, with_columns(log.metadata, more))
            failpoint("before-columns")
            log.write_metadata(state, metadata, [f.name for f in more])
            failpoint("columns-added")
            _log.info("table=%s has new columns: %s", log.name, ", ".join(f"{f.name} {f.type}" for f in more))
    raise tries.given_up(log.name, "adding columns") from tries.problem


def _readable(table: str, metadata: dict[str, Any]) -> dict[str, Any]:
    """The metadata, if readers take its schema: once written, one that they do not would be there for good."""
    try:
        Schema.from_json(metadata["schemaString"]).to_arrow()
    except Exception as e:
        raise PermanentError(f"table {table}: its new columns would make it unreadable: {one_line(e)}") from e
    return metadata


def with_columns(metadata: TableMetadata, more: Sequence[pa.Field]) -> dict[str, Any]:
    """Delta's `metaData` with more columns behind those that are there, and more fields inside them."""
    schema = json.loads(metadata.action["schemaString"])
    _join(schema, json.loads(Schema.from_arrow(pa.schema(more)).to_json()))
    return {**metadata.action, "schemaString": json.dumps(schema, separators=(",", ":"), ensure_ascii=False)}


def _join(there: dict[str, Any], more: dict[str, Any]) -> None:
    """Put the fields of one struct, in Delta's form, into another."""
    found = {field["name"]: field for field in there["fields"]}
    for field in more["fields"]:
        if field["name"] not in found:
            there["fields"].append({**field, "nullable": True})
            continue
        old, new = found[field["name"]]["type"], field["type"]
        while old["type"] == "array":
            old, new = old["elementType"], new["elementType"]
        _join(old, new)
