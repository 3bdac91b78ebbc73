"""Positions of Debezium's events in the database's log, as texts that sort.

What each order promises: `order: offset` follows the order of delivery. It is right within a partition, and all
changes of a key are in one as long as the number of partitions stays. After a restart Debezium repeats events in their
order: rows may go back for a moment, and end right.

`order: source` follows the database's log, whatever partition and order events come in:

- PostgreSQL: `source.sequence`, the commit before the event's transaction, then its own place. The place alone would
  not do: a change that was written before another's commit may itself be committed later. A snapshot's row stands for
  all that was committed before its `lsn`, so it counts as older than every event behind that commit. An event before
  which the connector has seen no commit has its own place alone: right unless its transaction was open during a
  snapshot.
- MySQL, MariaDB: file, position, row; the file by the number in its name. After a failover to a server that numbers its
  files anew it is wrong.
- Others: `source.ts_ms`. Changes of one millisecond are told apart by offset.
"""

import json

import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.errors import UnsafeError
from kgs_core.lake.derived.changes.events import field_of

SOURCE_POSITION = pa.field("_source_position", pa.string())
"""Column of derived tables with `order: source`."""


def positions_of(values: pa.Table, is_read: pa.Array) -> pa.Array:
    """Position of each event.

    Args:
        values: with a struct `source`, or flattened fields as `__source_lsn` or `__lsn`.
        is_read: whether it is a row of a snapshot; null: not known.

    Raises:
        UnsafeError: an event has none.
    """
    names = ("sequence", "lsn", "file", "pos", "row", "ts_ms")
    sequence, lsn, file, place, row, time = (_of(values, name) for name in names)
    out = [
        _of_postgres(sequence[n], lsn[n], read) or _of_mysql(file[n], place[n], row[n], read) or _of_time(time[n])
        for n, read in enumerate(is_read.to_pylist())
    ]
    if "op" in values.column_names:
        is_event = values["op"].combine_chunks().is_valid().to_pylist()
    else:
        is_event = [True] * len(out)
    if any(needs and position is None for needs, position in zip(is_event, out, strict=True)):
        words = "an event has neither source.lsn, source.file and source.pos, nor source.ts_ms"
        raise UnsafeError(f"newest_rows: order: source: {words}: add them to the columns, or set order: offset")
    return pa.array(out, pa.string())


def places_of(values: pa.Table) -> pa.Array | None:
    """Place of each event in PostgreSQL's log, null where it has none; None where no column tells it."""
    kind = values.schema.field("source").type if "source" in values.column_names else pa.null()
    if not pa.types.is_struct(kind) or kind.get_field_index("lsn") < 0:
        return None
    source = values["source"].combine_chunks()
    of_sequence = pc.extract_regex(field_of(source, "sequence", pa.string()), r'"(?P<lsn>\d+)"\]$')
    # an incremental snapshot has no lsn
    return pc.coalesce(field_of(source, "lsn", pa.int64()), pc.struct_field(of_sequence, "lsn").cast(pa.int64()))


def _of(values: pa.Table, name: str) -> list[str | None]:
    for flat in (f"__source_{name}", f"__{name}"):
        if flat in values.column_names:
            return list(values[flat].cast(pa.string()).to_pylist())
    if "source" in values.column_names and pa.types.is_struct(values.schema.field("source").type):
        return list(field_of(values["source"].combine_chunks(), name).cast(pa.string()).to_pylist())
    return [None] * values.num_rows


def _of_postgres(sequence: str | None, lsn: str | None, read: bool | None) -> str | None:  # noqa: FBT001
    commit, place = (json.loads(sequence) if sequence else None) or (None, None)
    place = lsn or place  # an incremental snapshot has no lsn
    if place is None:
        return None
    return f"{int(place):020d}{0:020d}" if read else f"{int(commit or place):020d}{int(place):020d}"


def _of_mysql(file: str | None, place: str | None, row: str | None, read: bool | None) -> str | None:  # noqa: FBT001
    if file is None or place is None:
        return None
    number = file.rpartition(".")[2]
    return f"{int(number) if number.isdecimal() else 0:020d}{int(place):020d}{0 if read else 1 + int(row or 0):020d}"


def _of_time(ms: str | None) -> str | None:
    return None if ms is None else f"{int(ms):020d}"
