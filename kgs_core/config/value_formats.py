"""All formats of records' values: the one place that knows which there are."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """A format that a topic's rule can name.

    Attributes:
        parser: `module:function` of a `kgs_core.adapters.ingest.formats.parsed.Parser`, loaded where values are
            parsed: the settings know no client library.
        columns: column -> type of what any value becomes; None: the rule's `schema` says that, or a registry.
        columns_of: `module:function` of a `kgs_core.adapters.ingest.formats.parsed.ColumnsOf`, for rules without
            `schema`; None: the rule must have one. A format that has it needs a registry.
    """

    parser: str
    columns: Mapping[str, str] | None = None
    columns_of: str | None = None


FORMATS: dict[str, ValueFormat] = {
    "raw": ValueFormat("kgs_core.adapters.ingest.formats.raw:parse_raw", {"value": "binary"}),
    "json": ValueFormat("kgs_core.adapters.ingest.formats.json_objects:parse_json"),
    "protobuf": ValueFormat(
        "kgs_core.adapters.ingest.formats.protobuf:parse_protobuf",
        columns_of="kgs_core.adapters.ingest.formats.protobuf:columns_of",
    ),
}
"""Name, as `format` takes it -> format."""


def problem_of_schema(name: str, *, has_schema: bool) -> str:
    """What is wrong with a rule of this format that has a `schema`, or has none; empty: nothing."""
    needs_schema = FORMATS[name].columns is None
    if needs_schema and not has_schema and FORMATS[name].columns_of is None:
        return f"format '{name}' needs a 'schema' of field: type"
    if has_schema and not needs_schema:
        others = " or ".join(other for other, each in FORMATS.items() if each.columns is None)
        return f"format '{name}' takes no 'schema'; say format: {others}, or drop the schema"
    return ""
