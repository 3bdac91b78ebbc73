"""All formats of records' values: the one place that knows which there are."""

from collections.abc import Mapping
from dataclasses import dataclass

from kgs_core.extras import require


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """A format that a topic's rule can name.

    Attributes:
        parser: `module:function` of a `kgs_core.ingest.formats.parsed.Parser`, loaded where values are
            parsed: the settings know no client library.
        columns: column -> type of what any value becomes; None: the rule's `schema` says that, or a registry.
        columns_of: `module:function` of a `kgs_core.ingest.formats.parsed.ColumnsOf`, for rules without
            `schema`; None: the rule must have one. A format that has it needs a registry. Of keys, the rule's
            `key_schema` says what becomes columns, and a registry how to read them.
        text_map_keys: whether the keys of maps can be texts only.
        takes_null: whether a record without a value (a tombstone) is a row, of nulls; else it is a dead letter.
        rescues: whether its parser keeps fields without a column, see `unknown_fields`.
        loops: module of the machine code of its parser; empty: it has none.
        extra: what must be installed for it, see `kgs_core.extras`; empty: nothing more.
    """

    parser: str
    columns: Mapping[str, str] | None = None
    columns_of: str | None = None
    takes_null: bool = False
    text_map_keys: bool = False
    rescues: bool = False
    loops: str = ""
    extra: str = ""


_JSON_LOOPS = "kgs_core.accel.json_scan"
FORMATS: dict[str, ValueFormat] = {
    "raw": ValueFormat("kgs_core.ingest.formats.raw:parse_raw", {"value": "binary"}, takes_null=True),
    "string": ValueFormat("kgs_core.ingest.formats.texts:parse_text", {"value": "string"}, takes_null=True),
    "json": ValueFormat(
        "kgs_core.ingest.formats.json.json_objects:parse_json", text_map_keys=True, rescues=True, loops=_JSON_LOOPS
    ),
    "avro": ValueFormat(
        "kgs_core.ingest.formats.avro.avro:parse_avro",
        columns_of="kgs_core.ingest.formats.avro.avro:avro_columns_of",
        loops="kgs_core.accel.avro_walk",
        extra="avro",
    ),
    "protobuf": ValueFormat(
        "kgs_core.ingest.formats.protobuf.protobuf:parse_protobuf",
        columns_of="kgs_core.ingest.formats.protobuf.protobuf:columns_of",
        extra="protobuf",
    ),
    "json_schema": ValueFormat(
        "kgs_core.ingest.formats.json.json_schema:parse_json_schema",
        columns_of="kgs_core.ingest.formats.json.json_schema:columns_of",
        text_map_keys=True,
        rescues=True,
        loops=_JSON_LOOPS,
        extra="registry",
    ),
}
"""Name, as `format` takes it -> format."""


def require_packages(name: str, topic: str) -> None:
    """Raise a `ConfigError` unless what values of this format of a topic need is installed."""
    if FORMATS[name].extra:
        require(FORMATS[name].extra, f"topic {topic}: format '{name}'")


def problem_of_schema(name: str, *, has_schema: bool) -> str:
    """What is wrong with a rule of this format that has a `schema`, or has none; empty: nothing."""
    needs_schema = FORMATS[name].columns is None
    if needs_schema and not has_schema and FORMATS[name].columns_of is None:
        return f"format '{name}' needs a 'schema' of field: type: `kgs schema topic TOPIC` proposes one"
    if has_schema and not needs_schema:
        others = " or ".join(other for other, each in FORMATS.items() if each.columns is None)
        return f"format '{name}' takes no 'schema'; say format: {others}, or drop the schema"
    return ""


def problem_of_key(name: str, *, has_schema: bool) -> str:
    """What is wrong with a rule of this `key_format` that has a `key_schema`, or has none; empty: nothing."""
    if FORMATS[name].columns is not None and has_schema:
        return f"key_format '{name}' takes no 'key_schema'; say key_format: json, or drop the key_schema"
    if FORMATS[name].columns is None and not has_schema:
        return f"key_format '{name}' needs a 'key_schema' of field: type"
    return ""
