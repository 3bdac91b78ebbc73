"""Types that JSON values would fit, from looking at some of them."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from kgs_core.config.rule.field_types import ArrayType, DecimalType, FieldType, MapType, ScalarType, StructType
from kgs_core.ingest.formats.json.json_faults import JsonFaults
from kgs_core.ingest.formats.json.json_objects import parse_json
from kgs_core.ingest.formats.json.json_text import Number, is_too_deep, read_object
from kgs_core.ingest.formats.parsed import ValueBatch
from kgs_core.lake.files.row_schema import schema_of

MANY_FIELDS = 50
"""Fields of an object above which it may be a map, if none of them is in every other one."""
_MAX_DEPTH = 20
_LONG, _MAX_DIGITS = 2**63, 38
_KINDS = {str: "texts", bool: "true or false", tuple: "objects", list: "arrays"}
_PLAIN = {"true or false": "boolean", "whole numbers": "long", "fractions": "double"}
_TIMES = JsonFaults(pa.schema([("date", pa.date32()), ("timestamp", pa.timestamp("us", tz="UTC"))]))


@dataclass(slots=True)
class _Seen:
    """What was seen of one place in the values.

    Attributes:
        there: values, nulls among them.
        of_kind: kind -> how many.
        narrowest: of texts: 0 a date, 1 a timestamp, 2 anything; of whole numbers: 0 a long, 1 more, 2 too much.
    """

    there: int = 0
    nulls: int = 0
    of_kind: Counter[str] = field(default_factory=Counter)
    narrowest: int = 0
    fields: dict[str, "_Seen"] = field(default_factory=dict)
    item: "_Seen | None" = None

    def add(self, found: Any) -> None:
        self.there += 1
        if found is None:
            self.nulls += 1
            return
        if type(found) is Number:
            self._add_number(found)
            return
        self.of_kind[_KINDS[type(found)]] += 1
        if type(found) is str:
            self.narrowest = max(self.narrowest, _width_of_text(found))
        elif type(found) is tuple:
            for name, each in dict(found).items():
                self.fields.setdefault(name, _Seen()).add(each)
        elif type(found) is list:
            self.item = self.item or _Seen()
            for each in found:
                self.item.add(each)

    def _add_number(self, text: str) -> None:
        if not text.removeprefix("-").isdecimal():
            self.of_kind["fractions"] += 1
            return
        self.of_kind["whole numbers"] += 1
        digits = len(text.removeprefix("-"))
        fits = digits < _MAX_DIGITS and -_LONG <= int(text) < _LONG
        self.narrowest = max(self.narrowest, 0 if fits else 1 if digits <= _MAX_DIGITS else 2)

    def merge(self, other: "_Seen") -> None:
        self.there += other.there
        self.nulls += other.nulls
        self.of_kind += other.of_kind
        self.narrowest = max(self.narrowest, other.narrowest)
        for name, seen in other.fields.items():
            self.fields.setdefault(name, _Seen()).merge(seen)
        if other.item is not None:
            self.item = self.item or _Seen()
            self.item.merge(other.item)


@dataclass(frozen=True, slots=True)
class SchemaProposal:
    """Columns that fit values, and what was seen of them.

    Attributes:
        columns: column -> type, in the text of `kgs_core.config.rule.field_types`.
        looked_at: how many values.
        fitting: how many of them are good with these columns.
        bad: reason -> how many others are bad for it, the most frequent first.
        absent: column -> in how many of the objects it is missing or null, where it is in any.
        without_type: field -> why none was found; inner ones as `a.b`, items of arrays as `a[]`.
    """

    columns: dict[str, str]
    looked_at: int
    fitting: int
    bad: dict[str, int]
    absent: dict[str, int]
    without_type: dict[str, str]


def propose_schema(values: Sequence[bytes | None], *, are_keys: bool = False) -> SchemaProposal:
    """Columns for these values. Values that are no JSON objects have no say in them, and are counted as bad.

    `are_keys`: whether these are keys, whose columns have a prefix before their names.
    """
    root = _Seen()
    for value in values:
        if (pairs := _object_in(value)) is not None:
            root.add(pairs)
    without_type: dict[str, str] = {}
    kinds = dict(_fields_of(root, "", without_type, reserved="" if are_keys else "_"))
    columns = {name: str(kind) for name, kind in kinds.items()}
    seen = {name: root.fields[name] for name in columns}
    absent = {name: n for name, each in seen.items() if (n := root.there - each.there + each.nulls)}
    return replace(fit(columns, values), absent=absent, without_type=without_type)


def fit(columns: dict[str, str], values: Sequence[bytes | None]) -> SchemaProposal:
    """How these columns fit the values."""
    parsed = parse_json(ValueBatch(pa.array(values, pa.binary()), schema_of(columns)))
    bad = dict(Counter(parsed.bad.values()).most_common())
    return SchemaProposal(columns, len(values), len(parsed.good), bad, {}, {})


def _object_in(value: bytes | None) -> tuple[tuple[str, Any], ...] | None:
    if value is None or is_too_deep(value):
        return None
    try:
        pairs = read_object(value.decode().strip(" \t\r\n"))
    except (UnicodeDecodeError, json.JSONDecodeError):
        return None
    return pairs if type(pairs) is tuple else None


def _fields_of(
    seen: _Seen, path: str, without_type: dict[str, str], *, reserved: str = ""
) -> Iterator[tuple[str, FieldType]]:
    taken: set[str] = set()
    for name, each in seen.fields.items():
        inner = f"{path}.{name}" if path else name
        if not name or (name[:1] == reserved and not name.startswith("__")):
            without_type[inner] = "columns must not be empty or begin with '_': parse it with a transform"
        elif name.lower() in taken:
            without_type[inner] = "another field differs only in case, which many readers of Delta cannot tell apart"
        elif (kind := _type_of(each, inner, without_type)) is not None:
            taken.add(name.lower())
            yield name, kind


def _type_of(seen: _Seen, path: str, without_type: dict[str, str]) -> FieldType | None:
    if problem := _problem(seen, path):
        without_type[path] = problem
        return None
    kinds = set(seen.of_kind)
    if kinds == {"arrays"}:
        return _array_of(seen, path, without_type)
    if kinds == {"objects"}:
        return _object_of(seen, path, without_type)
    if kinds == {"texts"}:
        return ScalarType(("date", "timestamp", "string")[seen.narrowest])
    if kinds == {"whole numbers"} and seen.narrowest:
        return DecimalType(_MAX_DIGITS, 0)
    return ScalarType(_PLAIN[max(kinds, key=list(_PLAIN).index)])


def _problem(seen: _Seen, path: str) -> str:
    """Why no type takes all of these; empty: one does, as far as this place goes."""
    kinds = set(seen.of_kind)
    if not kinds:
        return f"null in all {seen.there}: give it a type, or leave it out"
    if path.count(".") + path.count("[]") >= _MAX_DEPTH:
        return f"nested deeper than {_MAX_DEPTH} levels"
    if len(kinds) > 1 and kinds != {"whole numbers", "fractions"}:
        shown = ", ".join(f"{kind} ({n})" for kind, n in seen.of_kind.most_common())
        return f"{shown}: no type takes all; fix the producers, or parse it with a transform"
    if kinds == {"whole numbers"} and seen.narrowest > 1:
        return f"whole numbers of more than {_MAX_DIGITS} digits: write double, which rounds them"
    return ""


def _array_of(seen: _Seen, path: str, without_type: dict[str, str]) -> FieldType | None:
    if seen.item is None or not seen.item.there:
        without_type[path] = f"an empty array in all {seen.there - seen.nulls}: write array<...> with the items' type"
        return None
    item = _type_of(seen.item, f"{path}[]", without_type)
    return None if item is None else ArrayType(item)


def _object_of(seen: _Seen, path: str, without_type: dict[str, str]) -> FieldType | None:
    objects = seen.there - seen.nulls
    if len(seen.fields) > MANY_FIELDS and max(each.there for each in seen.fields.values()) * 2 < objects:
        merged = _Seen()
        for each in seen.fields.values():
            merged.merge(each)
        kind = _type_of(merged, f"{path}.*", without_type)
        return None if kind is None else MapType(ScalarType("string"), kind)
    fields = tuple(_fields_of(seen, path, without_type))
    if not fields and not seen.fields:
        without_type[path] = f"an empty object in all {objects}: write map<string,...> or struct<...>"
    return StructType(fields) if fields else None


def _width_of_text(text: str) -> int:
    quoted = json.dumps(text).encode()
    widths = (n for n, name in enumerate((b"date", b"timestamp")) if not _TIMES.fault(b'{"%s": %s}' % (name, quoted)))
    return next(widths, 2)
