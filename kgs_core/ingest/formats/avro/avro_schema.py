"""Avro schemas: what a value of one must look like, how it is read in bulk, and the Arrow type of its fields.

| Avro | read by polars as | column |
|---|---|---|
| enum | int | string |
| map | array of records of key and value | map |
| logical types | what they are written as | date, timestamp and decimal; of others what they are written as |
| null, a record without fields | not at all: they take no byte | none |
| a named type, used again | its definition, under a new name | |
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any

import fastavro
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from fastavro.types import Schema as AvroSchema

from kgs_core.accel import avro_steps as step
from kgs_core.ingest.formats.avro.avro_definitions import digits_of, is_empty, name_of
from kgs_core.ingest.formats.parsed import UnusableSchemaError
from kgs_core.lake.files.row_schema import TIMESTAMP
from kgs_core.ports.registry import RegisteredSchema

MAX_TYPES = 5_000
_INT, _LONG = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)
_MILLIS = ((-(2**63)) // 1000 + 1, (2**63 - 1) // 1000)
_MICROS_OF = {"timestamp-millis": 1000, "timestamp-micros": 1}
_PLAIN: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_RECORDS = ("record", "error")
_FIXED_SIZES = {"float": 4, "double": 8}


@dataclass(frozen=True, slots=True)
class AvroField:
    """A type as it is read.

    Attributes:
        kind: boolean, int, long, float, double, bytes, string, enum, timestamp, date, decimal, array, map or record.
        arrow: its column's type.
        symbols: of an enum.
        parts: name -> type: of a record its fields, of an array `item`, of a map `value`.
        factor: a timestamp is its number times this, or (negative) divided by it, in us.
    """

    kind: str
    arrow: pa.DataType
    symbols: tuple[str, ...] = ()
    parts: tuple[tuple[str, "AvroField"], ...] = ()
    factor: int = 1


@dataclass(frozen=True, slots=True)
class AvroReading:
    """All that is needed to read values of one schema.

    Attributes:
        fields: of the record, without those that take no byte.
        physical: the schema that polars is given, JSON; it says of the same bytes the same.
        steps: those of `avro_walk`.
        places: step -> which field it is in.
        depth: how deep arrays lie in arrays.
    """

    fields: tuple[tuple[str, AvroField], ...]
    physical: str
    steps: npt.NDArray[np.int64]
    places: Mapping[int, str]
    depth: int

    @property
    def columns(self) -> pa.Schema:
        """Columns that hold everything that is in a value."""
        return pa.schema([pa.field(name, each.arrow) for name, each in self.fields])


@lru_cache(maxsize=256)
def avro_reading(schema: RegisteredSchema) -> AvroReading:
    """How values of a schema are read.

    Raises:
        UnusableSchemaError: they cannot be.
    """
    named: dict[str, Any] = {}
    try:
        parsed: Any = _parsed(schema, named, set())
    except Exception as e:  # fastavro raises many kinds, of whatever the text is
        raise UnusableSchemaError(f"no Avro schema: {type(e).__name__}: {e}") from e
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise UnusableSchemaError("the schema is no record, so it has no columns")
    try:
        return _Reader(named).read(parsed)
    except UnusableSchemaError:
        raise
    except Exception as e:  # what fastavro lets pass is not all as it should be
        raise UnusableSchemaError(f"the schema cannot be read: {type(e).__name__}: {e}") from e


def _parsed(schema: RegisteredSchema, named: dict[str, Any], done: set[str]) -> AvroSchema:
    """The schema with the names of its types; what several refer to is defined once."""
    for _, reference in schema.references:
        if reference.text not in done:
            done.add(reference.text)
            _parsed(reference, named, done)
    return fastavro.parse_schema(json.loads(schema.text), named_schemas=named)


@dataclass(slots=True)
class _Reader:
    """A pass through one schema.

    Attributes:
        named: full name -> definition.
        within: names of the types that the pass is in.
        types: seen so far: a schema may name one twice in each of many, and become more than there is room for.
    """

    named: Mapping[str, Any]
    within: list[str] = field(default_factory=list)
    types: int = 0
    steps: list[list[int]] = field(default_factory=list)
    places: dict[int, str] = field(default_factory=dict)
    names: Iterator[int] = field(default_factory=count)
    depth: int = 0
    deepest: int = 0

    def read(self, schema: Mapping[str, Any]) -> AvroReading:
        self.within.append(str(schema["name"]))
        found, physical = self._record(schema, "")
        self._step("", step.END)
        limits = self._with_limits()
        return AvroReading(found.parts, json.dumps(physical), limits, self.places, self.deepest)

    def _with_limits(self) -> npt.NDArray[np.int64]:
        """The steps, and behind them what decimals must stay below; each is written once."""
        out, behind = [list(each) for each in self.steps], len(self.steps)
        limits: list[int] = []
        for each in out:
            if each[0] == step.DECIMAL:
                digits = (10 ** each[2] - 1).to_bytes(16, "big")
                each[2] = behind + len(limits) // step.WIDTH
                limits += digits
        return np.array([*(n for each in out for n in each), *limits], np.int64)

    def _step(self, place: str, *what: int) -> int:
        """Number of a new step."""
        self.places[len(self.steps)] = place
        self.steps.append([*what, *[0] * (step.WIDTH - len(what))])
        return len(self.steps) - 1

    def _record(self, schema: Mapping[str, Any], place: str) -> tuple[AvroField, dict[str, Any]]:
        parts, fields = [], []
        names = [each["name"] for each in schema["fields"]]
        if len(set(names)) < len(names):
            raise UnusableSchemaError(f"{f'field {place}' if place else 'the schema'}: two fields have one name")
        for each in schema["fields"]:
            found = self._type(each["type"], f"{place}.{each['name']}" if place else each["name"])
            if found is not None:
                parts.append((each["name"], found[0]))
                fields.append({"name": each["name"], "type": found[1]})
        arrow = pa.struct([pa.field(name, part.arrow) for name, part in parts])
        physical = {"type": "record", "name": f"r{next(self.names)}", "fields": fields}
        return AvroField("record", arrow, parts=tuple(parts)), physical

    def _type(self, schema: Any, place: str) -> tuple[AvroField, Any] | None:
        """The type as it is read, and as polars is told; None where it takes no byte."""
        self.types += 1
        if self.types > MAX_TYPES:
            raise UnusableSchemaError(f"the schema has more than {MAX_TYPES} types, counted wherever they stand")
        name = schema if isinstance(schema, str) and schema in self.named else name_of(schema)
        if name is None:
            return self._made(schema, place)
        if name in self.within:
            raise UnusableSchemaError(f"field {place}: it refers to {name[:80]}, which it is in: no column can")
        self.within.append(name)
        found = self._made(self.named.get(name, schema), place)
        self.within.pop()
        return found

    def _made(self, schema: Any, place: str) -> tuple[AvroField, Any] | None:
        if isinstance(schema, list):
            return self._union(schema, place)
        given: Mapping[str, Any] = schema if isinstance(schema, dict) else {"type": schema}
        kind = given["type"]
        if isinstance(kind, dict | list):
            return self._type(kind, place)
        if kind == "null" or (kind in _RECORDS and not given["fields"]):
            return None
        make = {
            **dict.fromkeys(_RECORDS, self._inner_record),
            **dict.fromkeys(("array", "map"), self._blocks),
            **dict.fromkeys(("fixed", "bytes"), self._bytes),
            **dict.fromkeys(("int", "long"), self._number),
            **dict.fromkeys(("float", "double", "boolean", "string"), self._plain),
            "enum": self._enum,
        }.get(kind)
        if make is None:
            raise UnusableSchemaError(f"field {place}: no type {str(kind)[:80]} is known")
        return make(given, place)

    def _inner_record(self, schema: Mapping[str, Any], place: str) -> tuple[AvroField, Any] | None:
        found = self._record(schema, place)
        return found if found[0].parts else None

    def _plain(self, schema: Mapping[str, Any], place: str) -> tuple[AvroField, Any]:
        kind = schema["type"]
        if kind in _FIXED_SIZES:
            self._step(place, step.SKIP, _FIXED_SIZES[kind])
        else:
            self._step(place, step.BOOLEAN if kind == "boolean" else step.TEXT)
        return AvroField(kind, _PLAIN[kind]), kind

    def _enum(self, schema: Mapping[str, Any], place: str) -> tuple[AvroField, Any]:
        symbols = tuple(schema["symbols"])
        self._step(place, step.NUMBER, 0, len(symbols) - 1)
        return AvroField("enum", pa.string(), symbols), "int"

    def _union(self, branches: list[Any], place: str) -> tuple[AvroField, Any] | None:
        null = next((n for n, each in enumerate(branches) if each in ("null", {"type": "null"})), None)
        if len(branches) != 2 or null is None:  # noqa: PLR2004 - null and one other
            raise UnusableSchemaError(
                f"field {place}: a union of {len(branches)} types is no column: only null and one other type can be"
            )
        index = self._step(place, step.NULLABLE, null)
        found = self._type(branches[1 - null], place)
        if found is None:
            raise UnusableSchemaError(f"field {place}: a union with an empty record is no column")
        self.steps[index][2] = len(self.steps)
        part, physical = found
        return part, ["null", physical] if null == 0 else [physical, "null"]

    def _blocks(self, schema: Mapping[str, Any], place: str) -> tuple[AvroField, Any]:
        is_map = schema["type"] == "map"
        block = self._step(place, step.BLOCK)
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        if is_map:
            self._step(place, step.TEXT)
        found = self._type(schema["values" if is_map else "items"], place)
        if found is None or is_empty(found[1]):
            raise UnusableSchemaError(f"field {place}: items that take no byte")
        self.depth -= 1
        last = self._step(place, step.NEXT, block + 1, block)
        self.steps[block][1] = last + 1
        part, physical = found
        if not is_map:
            return AvroField("array", pa.list_(part.arrow), parts=(("item", part),)), {
                "type": "array",
                "items": physical,
            }
        entry = [{"name": "key", "type": "string"}, {"name": "value", "type": physical}]
        items = {"type": "record", "name": f"r{next(self.names)}", "fields": entry}
        return AvroField("map", pa.map_(pa.string(), part.arrow), parts=(("value", part),)), {
            "type": "array",
            "items": items,
        }

    def _bytes(self, schema: Mapping[str, Any], place: str) -> tuple[AvroField, Any]:
        fixed = schema["size"] if schema["type"] == "fixed" else None
        if fixed is not None and not (isinstance(fixed, int) and 0 <= fixed <= _INT[1]):
            raise UnusableSchemaError(f"field {place}: a fixed of size {str(fixed)[:80]}")
        physical: Any = (
            "bytes" if fixed is None else {"type": "fixed", "name": f"r{next(self.names)}", "size": schema["size"]}
        )
        digits = digits_of(schema)
        if digits is not None and fixed != 0:
            self._step(place, step.DECIMAL, fixed or 0, digits[0])
            return AvroField("decimal", pa.decimal128(*digits)), physical
        if fixed is None:
            self._step(place, step.BYTES)
        else:
            self._step(place, step.SKIP, fixed)
        return AvroField("bytes", pa.binary()), physical

    def _number(self, schema: Mapping[str, Any], place: str) -> tuple[AvroField, Any]:
        kind, logical = schema["type"], schema.get("logicalType")
        if kind == "int":
            self._step(place, step.NUMBER, *_INT)
            is_date = logical == "date"
            return AvroField("date" if is_date else "int", pa.date32() if is_date else pa.int32()), kind
        self._step(place, step.NUMBER, *(_MILLIS if logical == "timestamp-millis" else _LONG))
        if logical == "timestamp-nanos":
            return AvroField("timestamp", TIMESTAMP, factor=-1000), kind
        if logical in _MICROS_OF:
            return AvroField("timestamp", TIMESTAMP, factor=_MICROS_OF[logical]), kind
        return AvroField("long", pa.int64()), kind
