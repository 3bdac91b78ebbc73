"""Columns of topics and tables, and which of a table's come from which of a topic's, as far as kgs.yaml says.

A topic's columns are the parts of its records; where the rule names the value's fields, each is one, as
`value.carrier`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from kgs_core.config import TopicRule

_ORIGIN = (
    ("_topic_id", "string", "Kafka's id of the topic", None),
    ("_partition", "int", "partition of the record", "partition"),
    ("_offset", "long", "offset of the record", "offset"),
    ("_timestamp", "timestamp", "the record's time in Kafka, UTC", "timestamp"),
    ("_key", "binary", "the record's key", "key"),
    ("_headers", "array<struct<key:string,value:binary>>", "the record's headers", "headers"),
)
"""Name, type, words and part of the record of each column that every table has."""
_RECORD = (
    ("partition", "int"),
    ("offset", "long"),
    ("timestamp", "timestamp"),
    ("key", "binary"),
    ("headers", "array<struct<key:string,value:binary>>"),
    ("value", "binary"),
)
SCHEMA, LINEAGE = "dagster/column_schema", "dagster/column_lineage"
Source = tuple[TopicRule, dg.AssetKey]
"""A rule, and the asset of its topics."""


def topic_columns(rule: TopicRule) -> dict[str, Any]:
    """Metadata of a topic's asset."""
    columns = [*_RECORD, *((f"value.{name}", kind) for name, kind in rule.fields.items())]
    return {SCHEMA: dg.TableSchema([dg.TableColumn(name, kind) for name, kind in columns])}


def table_columns(sources: Sequence[Source]) -> dict[str, Any]:
    """Metadata of a table's asset: all columns, and their lineage; with a transform, of those that it must keep."""
    is_known = not any(rule.has_transform for rule, _ in sources)  # else only the function knows
    columns: dict[str, dg.TableColumn] = {}
    lineage: dict[str, list[dg.TableColumnDep]] = {}
    for rule, topic in sources:
        for column, part in [*_origin(rule), *_of_value(rule), *_of_layout(rule)] if is_known else [*_origin(rule)]:
            columns.setdefault(column.name, column)
            if part is not None:
                lineage.setdefault(column.name, []).append(dg.TableColumnDep(asset_key=topic, column_name=part))
    about: dict[str, Any] = {LINEAGE: dg.TableColumnLineage(lineage)}
    if is_known:
        about[SCHEMA] = dg.TableSchema([*columns.values()])
    return about


def own_columns(sources: Sequence[Source], fields: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Metadata of a look at tables: their own columns, as of `TableDescription`, where these are not kgs.yaml's."""
    from kgs_core.catalog.column_types import sql_type

    schema = table_columns(sources).get(SCHEMA)
    said = {column.name: column for column in (schema.columns if schema is not None else ())}
    found = {field["name"]: field for field in fields}
    if found.keys() == said.keys() or not found:
        return {}
    columns = [
        said.get(name) or dg.TableColumn(name, sql_type(field["type"]), field.get("metadata", {}).get("comment"))
        for name, field in found.items()
    ]
    return {SCHEMA: dg.TableSchema(columns)}


def derived_columns(sources: Sequence[Source], table: dg.AssetKey) -> dict[str, Any]:
    """Metadata of a derived table's asset, whose columns are those of the append-only table."""
    about = table_columns(sources)
    names = about[LINEAGE].deps_by_column if SCHEMA not in about else [c.name for c in about[SCHEMA].columns]
    own = {name: [dg.TableColumnDep(asset_key=table, column_name=name)] for name in names}
    return about | {LINEAGE: dg.TableColumnLineage(own)}


Found = Iterator[tuple[dg.TableColumn, str | None]]


def _origin(rule: TopicRule) -> Found:
    for name, kind, words, part in _ORIGIN:
        yield dg.TableColumn(name, kind, rule.comments.get(name, words)), part


def _of_value(rule: TopicRule) -> Found:
    words: Mapping[str, str] = rule.comments
    for name, kind in rule.value_columns.items():
        is_field = name in rule.fields
        yield (
            dg.TableColumn(name, kind, words.get(name, None if is_field else "the record's value")),
            f"value.{name}" if is_field else "value",
        )
    if rule.unknown_fields == "rescue":
        yield dg.TableColumn("_rescued", "string", "fields of the value without a column, as JSON"), "value"
    for name, kind in rule.key_columns.items():
        yield dg.TableColumn(name, kind, words.get(name, "of the record's key")), "key"
    for name, header in rule.headers.items():
        yield dg.TableColumn(name, "string", words.get(name, f"header {header}")), "headers"
    for name in rule.topic_columns:
        yield dg.TableColumn(name, "string", words.get(name, "the topic's name")), None


def _of_layout(rule: TopicRule) -> Found:
    parts = {column.name: part for column, part in [*_origin(rule), *_of_value(rule)]}
    for column in rule.partition_columns:
        if column.unit is not None:
            kind = "date" if column.unit == "day" else "string"
            words = rule.comments.get(
                column.name, f"{column.unit} of {column.source}, UTC; the table is partitioned by it"
            )
            yield dg.TableColumn(column.name, kind, words), parts.get(column.source)
