"""All formats of records' values: the one place that knows which there are."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """A format that a topic's rule can name.

    Attributes:
        parser: `module:function` of a `kgs_core.adapters.ingest.formats.Parser`, loaded where values are parsed: the
            settings know no client library.
        columns: column -> type of what any value becomes; None: the rule's `schema` says that, so it must have one.
    """

    parser: str
    columns: Mapping[str, str] | None = None


FORMATS: dict[str, ValueFormat] = {
    "raw": ValueFormat("kgs_core.adapters.ingest.formats:parse_raw", {"value": "binary"}),
    "json": ValueFormat("kgs_core.adapters.ingest.formats:parse_json"),
}
"""Name, as `format` takes it -> format."""


def problem_of_schema(name: str, *, has_schema: bool) -> str:
    """What is wrong with a rule of this format that has a `schema`, or has none; empty: nothing."""
    needs_schema = FORMATS[name].columns is None
    if needs_schema and not has_schema:
        return f"format '{name}' needs a 'schema' of field: type"
    if has_schema and not needs_schema:
        others = " or ".join(other for other, each in FORMATS.items() if each.columns is None)
        return f"format '{name}' takes no 'schema'; say format: {others}, or drop the schema"
    return ""
