"""Avro values to typed columns.

Theory of operation. Values of one schema are walked through by a compiled loop, which says of each by itself whether it
is exactly one datum (`avro_walk`). The good ones are laid end to end behind the header of an Avro file, and polars
reads this file in one call.
"""

import io
from collections.abc import Mapping
from functools import cache

import numpy as np
import polars as pl
import pyarrow as pa

from kgs_core.adapters.ingest.formats import avro_steps
from kgs_core.adapters.ingest.formats.avro_columns import fit, misfit
from kgs_core.adapters.ingest.formats.avro_schema import AvroReading, UnfitSchemaError, avro_reading
from kgs_core.adapters.ingest.formats.by_schema import Pieces, parse_groups, schema_of, structs
from kgs_core.adapters.ingest.formats.parsed import MAX_REASON, NoColumnsError, Parsed, ValueBatch
from kgs_core.adapters.ingest.native.session import address_of
from kgs_core.adapters.lake.columns import lacking
from kgs_core.adapters.registry.client import open_registry
from kgs_core.adapters.registry.wire_format import (
    NO_VALUE,
    FramedValues,
    Offsets,
    SchemaGroup,
    byte_ranges,
    joined,
    unframe,
)
from kgs_core.adapters.system.machine_code import Loop, machine_code
from kgs_core.config import TopicRule
from kgs_core.config.field_types import problem_of_names
from kgs_core.config.registry import RegistrySettings
from kgs_core.errors import ConfigError, PermanentError
from kgs_core.ports.registry import RegisteredSchema, SchemaKind, UnknownSchemaError

_SYNC = b"kgs: end of block"[:16]
_WALK = "kgs_core.adapters.ingest.formats.avro_walk"
_LOOPS = ["kgs_core.adapters.ingest.native.loops", "kgs_core.adapters.ingest.native.utf8"]


def parse_avro(batch: ValueBatch) -> Parsed:
    """Avro values, each with the schema that it names, or all of the rule's, to columns by the names of fields.

    Keys always name theirs.
    """
    rule = batch.rule
    if rule.avro_schema is None or batch.is_key:
        registry = open_registry(_given(batch.registry))
        framed = unframe(batch.values, batch.headers, batch.schema_header)
        return parse_groups(batch, SchemaKind.AVRO, _decode, (framed, lambda group: schema_of(registry, group)))
    inline = RegisteredSchema(None, SchemaKind.AVRO, rule.avro_schema)
    return parse_groups(batch, SchemaKind.AVRO, _decode, (_unframed(batch.values), lambda _: inline))


def avro_columns_of(topic: str, rule: TopicRule, registry: RegistrySettings | None) -> pa.Schema:
    """Columns of the rule's schema or, without one, of the newest of the subject `<topic>-value`; see `ColumnsOf`."""
    try:
        if rule.avro_schema is not None:
            where, schema = "avro_schema", RegisteredSchema(None, SchemaKind.AVRO, rule.avro_schema)
        else:
            where = f"subject {topic}-value"
            schema = open_registry(_given(registry)).latest(f"{topic}-value")
        columns = avro_reading(schema).columns
    except UnknownSchemaError as e:
        raise ConfigError([f"topic {topic}: {where}: {e}; or give the rule a 'schema' of field: type"]) from e
    except UnfitSchemaError as e:
        kind = NoColumnsError if schema.kind is SchemaKind.AVRO and rule.avro_schema is None else ConfigError
        raise kind([f"topic {topic}: {where}: {e}; or give the rule a 'schema' of field: type"]) from e
    problem = _unfit_names(columns)
    if problem:
        kind = NoColumnsError if rule.avro_schema is None else ConfigError
        raise kind([f"topic {topic}: {where}: {problem}; give the rule a 'schema' of field: type"])
    return columns


def _given(registry: RegistrySettings | None) -> RegistrySettings:
    if registry is None:
        raise ConfigError(["format avro: give registry.url, or the rule an avro_schema"])
    return registry


def _unfit_names(columns: pa.Schema) -> str:
    if not columns.names:
        return "it has no field that could be a column"
    for name in columns.names:
        if name.startswith("_"):
            return f"field {name}: columns that begin with _ are those of kgs"
    return next((problem for names in structs(columns) if (problem := problem_of_names(names))), "")


def _unframed(values: pa.Array) -> FramedValues:
    data, starts, ends = byte_ranges(values)
    valid = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    bad = dict.fromkeys(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)).tolist(), NO_VALUE)
    groups = [SchemaGroup(0, valid, starts[valid], ends[valid])] if len(valid) else []
    return FramedValues(data, groups, bad)


def _decode(schema: RegisteredSchema, group: SchemaGroup, framed: FramedValues, pieces: Pieces) -> None:
    try:
        reading = _fitting(schema, pieces.columns)
    except UnfitSchemaError as e:
        pieces.fail(group.positions.tolist(), f"schema {group.schema}: {e}")
        return
    good, faults = _walked(framed, group, reading)
    pieces.bad |= faults
    if len(good):
        missing = pa.schema(lacking(pieces.columns, reading.columns))
        pieces.add(_read(framed, group, good, reading, pieces.columns), group.positions[good], missing)


def _fitting(schema: RegisteredSchema, columns: pa.Schema) -> AvroReading:
    reading = avro_reading(schema)
    problem = misfit(reading, columns)
    if problem:
        raise UnfitSchemaError(problem)
    return reading


def _walked(framed: FramedValues, group: SchemaGroup, reading: AvroReading) -> tuple[Offsets, Mapping[int, str]]:
    """Which of the group are good, and why the others are not, by their positions in the batch."""
    count = len(group.positions)
    faults, room = np.zeros(count, np.int64), np.zeros(reading.depth + 1, np.int64)
    data = framed.data if len(framed.data) else np.zeros(1, np.uint8)
    starts, ends = np.ascontiguousarray(group.starts), np.ascontiguousarray(group.ends)
    known = [address_of(each) for each in (data, starts, ends)]
    if not avro_walk()(*known, count, *(address_of(each) for each in (reading.steps, room, faults))):
        return np.arange(count), {}
    wrong = np.flatnonzero(faults)
    words = {int(group.positions[i]): _words(int(faults[i]), reading) for i in wrong}
    return np.flatnonzero(faults == 0), words


def _words(fault: int, reading: AvroReading) -> str:
    place = reading.places[fault >> avro_steps.FAULT_BITS]
    what = avro_steps.FAULTS[fault & ((1 << avro_steps.FAULT_BITS) - 1)]
    return f"field {place}: {what}"[:MAX_REASON] if place else f"value {what}"


def _read(
    framed: FramedValues, group: SchemaGroup, good: Offsets, reading: AvroReading, columns: pa.Schema
) -> pa.Table:
    known = dict(reading.fields)
    wanted = [f for f in columns if f.name in known]
    rows = len(good)
    found: Mapping[str, pa.Array] = {}
    if wanted:
        body = joined(framed.data, group.starts[good], group.ends[good])
        file = io.BytesIO(_container(reading.physical, rows, body.tobytes()))
        frame = pl.read_avro(file, columns=[f.name for f in wanted])
        if frame.height != rows:
            raise PermanentError(f"polars read {frame.height} Avro values of {rows}")
        found = {name: frame[name].to_arrow() for name in frame.columns}
    out = [fit(known[f.name], found[f.name], f.type) if f.name in found else pa.nulls(rows, f.type) for f in columns]
    return pa.Table.from_arrays(out, schema=columns)


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


@cache
def avro_walk() -> Loop:
    """The walk as machine code; the first call on a machine compiles it.

    Raises:
        PermanentError: the cache directory does not have it and cannot be written.
    """
    return machine_code(_WALK, [avro_steps.__name__, *_LOOPS])["walk"]
