"""All formats of records' values, and only here."""

from collections.abc import Mapping
from dataclasses import dataclass

from kgs_core.extras import require


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """A format that a topic's rule can name.

    Attributes:
        parser: `module:function` of a `kgs_core.ingest.formats.parsed.Parser`, loaded when values are parsed: settings
            import no client library.
        columns: column -> type, the same for all values; None: the rule's `schema` or a registry has the columns.
        columns_of: `module:function` of a `kgs_core.ingest.formats.parsed.ColumnsOf`, for rules without `schema`; a
            format that has it needs a registry. None: the rule must have a `schema`. The columns of keys are always
            those of the rule's `key_schema`.
        text_map_keys: whether keys of maps must be texts.
        takes_null: whether a record without a value (a tombstone) is a row of nulls; else it is a dead letter.
        rescues: whether its parser keeps fields without a column, see `unknown_fields`.
        loops: module of its parser's compiled code; empty: none.
        extra: the extra that it needs, see `kgs_core.extras`; empty: none.
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
    """Raise a `ConfigError` unless the packages that the topic's format needs are installed."""
    if FORMATS[name].extra:
        require(FORMATS[name].extra, f"topic {topic}: format '{name}'")


def problem_of_schema(name: str, *, has_schema: bool) -> str:
    """Problem of a rule of this format with or without a `schema`; empty: none."""
    needs_schema = FORMATS[name].columns is None
    if needs_schema and not has_schema and FORMATS[name].columns_of is None:
        return f"format '{name}' needs a 'schema' of field: type: `kgs schema topic TOPIC` proposes one"
    if has_schema and not needs_schema:
        others = " or ".join(other for other, each in FORMATS.items() if each.columns is None)
        return f"format '{name}' takes no 'schema'; say format: {others}, or drop the schema"
    return ""


def problem_of_key(name: str, *, has_schema: bool) -> str:
    """Problem of a rule of this `key_format` with or without a `key_schema`; empty: none."""
    if FORMATS[name].columns is not None and has_schema:
        return f"key_format '{name}' takes no 'key_schema'; say key_format: json, or drop the key_schema"
    if FORMATS[name].columns is None and not has_schema:
        return f"key_format '{name}' needs a 'key_schema' of field: type"
    return ""
