"""Part of a rule for a topic of Debezium's JSON events: columns, and what its newest rows are to know."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kgs_core.config.rule.field_types import MAX_PRECISION, StructType, parse_type
from kgs_core.ingest.formats.json.json_inference import SchemaProposal, fit, propose_schema

_PLAIN = {
    "int8": "byte",
    "int16": "short",
    "int32": "int",
    "int64": "long",
    "float": "float",
    "float32": "float",
    "double": "double",
    "float64": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "binary",
}
_NAMED = {
    "io.debezium.time.Date": "date",
    "org.apache.kafka.connect.data.Date": "date",
    "io.debezium.time.Timestamp": "timestamp_ms",
    "org.apache.kafka.connect.data.Timestamp": "timestamp_ms",
    "io.debezium.time.MicroTimestamp": "timestamp_us",
    "io.debezium.time.NanoTimestamp": "timestamp_ns",
    "io.debezium.time.ZonedTimestamp": "timestamp",
}
"""Name of a type in Connect -> its word in `newest_rows: types`."""
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_SOURCE = {"ts_ms": "long", "lsn": "long", "sequence": "string", "file": "string", "pos": "long", "row": "int"}
_MARKS = ("__deleted", "__op")


@dataclass(frozen=True, slots=True)
class ChangeProposal:
    """What is proposed beside the columns of keys.

    Attributes:
        keys: the keys, as their columns are to be found.
        newest_rows: of the rule, but for the table.
    """

    values: SchemaProposal
    keys: list[bytes | None]
    newest_rows: dict[str, Any]


def propose_changes(values: Sequence[bytes | None], keys: Sequence[bytes | None]) -> ChangeProposal | None:
    """A proposal for these records; None where they are no changes by Debezium."""
    objects = [_object(value) for value in values if value is not None and value.strip() != b"null"]
    if not objects:
        return None
    is_whole = all({"schema", "payload"} == found.keys() for found in objects)
    found = [each["payload"] if is_whole else each for each in objects]
    if not all(isinstance(each, dict) for each in found):
        return None
    of_keys = [_without_schema(key) for key in keys]
    if not all({"op", "source"} <= each.keys() and {"before", "after"} & each.keys() for each in found):
        is_marked = any(each.keys() & {*_MARKS} for each in found)
        return _of_rows(values, objects if is_whole else [], of_keys) if is_marked else None
    rows = [json.dumps(row).encode() for each in found for row in (each.get("after"), each.get("before")) if row]
    proposed = propose_schema(rows, are_keys=True)
    types: dict[str, str] = {}
    if is_whole:
        objects.sort(key=lambda each: each["payload"]["source"].get("ts_ms") or 0)  # the newest schema counts
        parts = (part for each in objects for part in each["schema"]["fields"] if part["field"] in ("before", "after"))
        columns, types = _of_connect(parts)
        proposed = replace(proposed, columns=columns, without_type={})
    row = _struct(proposed.columns)
    source = {name: kind for name, kind in _SOURCE.items() if all(name in each["source"] for each in found)}
    envelope = {"before": row, "after": row, "source": _struct(source), "op": "string", "ts_ms": "long"}
    columns = {"payload": _struct(envelope)} if is_whole else envelope
    whole = replace(fit(columns, [v for v in values if v is not None]), without_type=proposed.without_type)
    return ChangeProposal(whole, of_keys, _newest_rows(types))


def _of_rows(
    values: Sequence[bytes | None], with_schemas: Sequence[Mapping[str, Any]], of_keys: list[bytes | None]
) -> ChangeProposal:
    """Of flattened rows; `with_schemas`: where they have schemas, which know better than values."""
    present = [value for value in values if value is not None and value.strip() != b"null"]
    if not with_schemas:
        return ChangeProposal(propose_schema(present), of_keys, {"changes": "debezium"})
    columns, types = _of_connect(each["schema"] for each in with_schemas)
    return ChangeProposal(fit({"payload": _struct(columns)}, present), of_keys, _newest_rows(types))


def _newest_rows(types: dict[str, str]) -> dict[str, Any]:
    return {"changes": "debezium", **({"types": types} if types else {})}


def _object(value: bytes) -> dict[str, Any]:
    try:
        found = json.loads(value)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _without_schema(key: bytes | None) -> bytes | None:
    found = _object(key) if key is not None else {}
    return json.dumps({"payload": found["payload"]}).encode() if {"schema", "payload"} == found.keys() else key


def _of_connect(schemas: Iterable[Mapping[str, Any]]) -> tuple[dict[str, str], dict[str, str]]:
    """Columns of the followed table, and their words in `types`, by schemas of its rows: the last one counts."""
    columns: dict[str, str] = {}
    types: dict[str, str] = {}
    for each in schemas:
        columns |= {field["field"]: _kind(field) for field in each["fields"]}
        types |= dict(_types(each["fields"]))
    return columns, types


def _types(fields: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for field in fields:
        name = field.get("name")
        if name in _NAMED:
            yield field["field"], _NAMED[name]
        elif name == _DECIMAL:
            of = field.get("parameters", {})
            precision, scale = int(of.get("connect.decimal.precision", MAX_PRECISION)), int(of.get("scale", 0))
            if 0 <= scale <= MAX_PRECISION:  # else no column takes it but as bytes
                yield field["field"], f"decimal({min(max(precision, scale, 1), MAX_PRECISION)},{scale})"


def _kind(field: Mapping[str, Any]) -> str:
    match field["type"]:
        case "struct":
            return _struct({inner["field"]: _kind(inner) for inner in field["fields"]})
        case "array":
            return f"array<{_kind(field['items'])}>"
        case "map":
            return f"map<{_kind(field['keys'])},{_kind(field['values'])}>"
        case plain:
            return _PLAIN[plain]


def _struct(columns: Mapping[str, str]) -> str:
    return str(StructType(tuple((name, parse_type(kind)) for name, kind in columns.items())))
