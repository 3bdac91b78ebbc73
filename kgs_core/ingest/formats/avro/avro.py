"""Avro values to typed columns.

Theory of operation. Values of one schema are walked through by a compiled loop, which says of each by itself whether it
is exactly one datum (`avro_walk`). The good ones are laid end to end behind the header of an Avro file, and polars
reads this file in one call.
"""

import io
from collections.abc import Mapping

import numpy as np
import polars as pl
import pyarrow as pa

from kgs_core.accel import avro_steps
from kgs_core.accel.compiled import address_of, machine_code
from kgs_core.config import TopicRule
from kgs_core.config.registry import RegistrySettings
from kgs_core.errors import ConfigError, PermanentError
from kgs_core.ingest.formats.avro.avro_columns import PROMOTIONS, column_of
from kgs_core.ingest.formats.avro.avro_schema import AvroReading, avro_reading
from kgs_core.ingest.formats.by_schema import newest_columns, parse_by_schema, usable_columns
from kgs_core.ingest.formats.parsed import MAX_REASON, NoColumnsError, Parsed, Pieces, UnusableSchemaError, ValueBatch
from kgs_core.ingest.formats.widening import widened, widening_problem
from kgs_core.ports.registry import RegisteredSchema, SchemaKind
from kgs_core.registry.wire_format import FramedValues, Offsets, SchemaGroup, joined

_SYNC = b"kgs: end of block"[:16]
_WALK = "kgs_core.accel.avro_walk"


def parse_avro(batch: ValueBatch) -> Parsed:
    """Avro values, each with the schema that it names, or all of the rule's, to columns by the names of fields.

    Keys always name theirs.
    """
    return parse_by_schema(batch, SchemaKind.AVRO, _decode, _inline(batch.avro_schema))


def avro_columns_of(topic: str, rule: TopicRule, registry: RegistrySettings | None) -> pa.Schema:
    """Columns of the rule's schema or, without one, of the newest of the subject `<topic>-value`; see `ColumnsOf`."""
    inline = _inline(rule.avro_schema)
    if inline is None:
        return newest_columns(topic, registry, SchemaKind.AVRO, _natural)
    try:
        return usable_columns(f"topic {topic}: avro_schema", inline, _natural)
    except NoColumnsError as e:  # the rule's fault, not a registry's
        raise ConfigError(e.problems) from e


def _inline(schema: str | None) -> RegisteredSchema | None:
    return None if schema is None else RegisteredSchema(None, SchemaKind.AVRO, schema)


def _natural(schema: RegisteredSchema) -> pa.Schema:
    return avro_reading(schema).columns


def _decode(schema: RegisteredSchema, group: SchemaGroup, framed: FramedValues, pieces: Pieces) -> None:
    reading = avro_reading(schema)
    known = dict(reading.fields)
    for each in pieces.columns:
        if each.name in known and (
            problem := widening_problem(known[each.name].arrow, each.type, each.name, PROMOTIONS)
        ):
            raise UnusableSchemaError(problem)
    good, bad = _walked(framed, group, reading)
    table = _read(framed, group, good, reading, pieces.columns)
    pieces.take(Parsed(table, good.tolist() if bad else range(len(good)), bad), group.positions, reading.columns)


def _walked(framed: FramedValues, group: SchemaGroup, reading: AvroReading) -> tuple[Offsets, Mapping[int, str]]:
    """Which values of the group are good, and why the others are not, by their places in it."""
    count = len(group.positions)
    faults, room = np.zeros(count, np.int64), np.zeros(reading.depth + 1, np.int64)
    data = framed.data if len(framed.data) else np.zeros(1, np.uint8)
    starts, ends = np.ascontiguousarray(group.starts), np.ascontiguousarray(group.ends)
    known = [address_of(each) for each in (data, starts, ends)]
    if not machine_code(_WALK)["walk"](*known, count, *(address_of(each) for each in (reading.steps, room, faults))):
        return np.arange(count), {}
    return np.flatnonzero(faults == 0), {i: _words(int(faults[i]), reading) for i in np.flatnonzero(faults).tolist()}


def _words(fault: int, reading: AvroReading) -> str:
    place = reading.places[fault >> avro_steps.FAULT_BITS]
    what = avro_steps.FAULTS[fault & ((1 << avro_steps.FAULT_BITS) - 1)]
    return f"field {place}: {what}"[:MAX_REASON] if place else f"value {what}"


def _read(
    framed: FramedValues, group: SchemaGroup, good: Offsets, reading: AvroReading, columns: pa.Schema
) -> pa.Table:
    rows, known = len(good), dict(reading.fields)
    wanted = {f.name: known[f.name] for f in columns if f.name in known}
    made: dict[str, pa.Array] = {}
    if rows and wanted:
        body = joined(framed.data, group.starts[good], group.ends[good])
        file = io.BytesIO(_container(reading.physical, rows, body.tobytes()))
        frame = pl.read_avro(file, columns=list(wanted))
        if frame.height != rows:
            raise PermanentError(f"polars read {frame.height} Avro values of {rows}")
        for name, part in wanted.items():
            made[name] = widened(column_of(part, frame[name].to_arrow()), columns.field(name).type)
    return pa.Table.from_arrays(
        [made[f.name] if f.name in made else pa.nulls(rows, f.type) for f in columns], schema=columns
    )


def _container(schema: str, rows: int, body: bytes) -> bytes:
    """An Avro file of one block."""
    text = schema.encode()
    head = [b"Obj\x01", _long(1), _long(11), b"avro.schema", _long(len(text)), text, _long(0), _SYNC]
    return b"".join([*head, _long(rows), _long(len(body)), body, _SYNC])


def _long(number: int) -> bytes:
    """A number that is not negative, as Avro writes it."""
    left, out = number << 1, bytearray()
    while left > 127:  # noqa: PLR2004 - seven bits a byte
        out.append(left & 127 | 128)
        left >>= 7
    return bytes([*out, left])
