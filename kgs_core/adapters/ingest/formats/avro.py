"""Avro values to typed columns.

Theory of operation. Values of one schema are walked through by a compiled loop, which says of each by itself whether it
is exactly one datum (`avro_walk`). The good ones are laid end to end behind the header of an Avro file, and polars
reads this file in one call.
"""

import io
from collections.abc import Callable, Mapping
from functools import cache
from uuid import UUID

import numpy as np
import polars as pl
import pyarrow as pa

from kgs_core.adapters.ingest.formats import avro_steps
from kgs_core.adapters.ingest.formats.avro_columns import fit, misfit
from kgs_core.adapters.ingest.formats.avro_schema import AvroReading, UnfitSchemaError, avro_reading
from kgs_core.adapters.ingest.formats.by_schema import in_order, structs, within_patience
from kgs_core.adapters.ingest.formats.parsed import MAX_REASON, NO_COLUMNS, NoColumnsError, Parsed, ValueBatch
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
from kgs_core.errors import ConfigError, PermanentError, TransientError
from kgs_core.ports.registry import RegisteredSchema, SchemaKind, SchemaRegistry, UnknownSchemaError

_SYNC = b"kgs: end of block"[:16]
_WALK = "kgs_core.adapters.ingest.formats.avro_walk"
_LOOPS = ["kgs_core.adapters.ingest.native.loops", "kgs_core.adapters.ingest.native.utf8"]


def parse_avro(batch: ValueBatch) -> Parsed:
    """Avro values, each with the schema that it names, or all of the rule's, to columns by the names of fields.

    Keys always name theirs.
    """
    rule = batch.rule
    if rule.avro_schema is not None and not batch.is_key:
        inline = RegisteredSchema(None, SchemaKind.AVRO, rule.avro_schema)
        return _parsed(batch, _unframed(batch.values), lambda _: inline)
    registry = open_registry(_given(batch.registry))
    return _parsed(
        batch, unframe(batch.values, batch.headers, batch.schema_header), lambda group: _asked(registry, group)
    )


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


def _asked(registry: SchemaRegistry, group: SchemaGroup) -> RegisteredSchema:
    if isinstance(group.schema, UUID):
        return registry.by_guid(str(group.schema))
    return registry.by_id(group.schema)


def _unframed(values: pa.Array) -> FramedValues:
    data, starts, ends = byte_ranges(values)
    valid = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    bad = dict.fromkeys(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)).tolist(), NO_VALUE)
    groups = [SchemaGroup(0, valid, starts[valid], ends[valid])] if len(valid) else []
    return FramedValues(data, groups, bad)


def _parsed(batch: ValueBatch, framed: FramedValues, schema_of: Callable[[SchemaGroup], RegisteredSchema]) -> Parsed:
    bad, waiting, missing = dict(framed.bad), dict[int, str](), dict[str, pa.Field]()
    tables, chosen = [batch.columns.empty_table()], [np.zeros(0, np.int64)]
    ask = within_patience(schema_of)
    for group in in_order(framed):
        try:
            reading = _fitting(ask(group), batch.columns)
        except TransientError as e:
            waiting.update(dict.fromkeys(group.positions.tolist(), str(e)[:MAX_REASON]))
            continue
        except (PermanentError, UnfitSchemaError) as e:
            words = str(e) if isinstance(e, PermanentError) else f"schema {group.schema}: {e}"
            bad.update(dict.fromkeys(group.positions.tolist(), words[:MAX_REASON]))
            continue
        good, faults = _walked(framed, group, reading)
        bad |= faults
        if len(good):
            chosen.append(group.positions[good])
            tables.append(_read(framed, group, good, reading, batch.columns))
            missing = {f.name: f for f in lacking(batch.columns, reading.columns)} | missing
    positions = np.concatenate(chosen)
    table = pa.concat_tables(tables)
    if len(tables) > 2:  # noqa: PLR2004 - the empty one and one more: in order already
        order = np.argsort(positions, kind="stable")
        positions, table = positions[order], table.take(pa.array(order))
    more = pa.schema(list(missing.values())) if missing else NO_COLUMNS
    return Parsed(table, positions.tolist(), bad, waiting, more)


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
