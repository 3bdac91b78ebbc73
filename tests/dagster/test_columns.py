"""Column lineage from topic to table and on to the derived table; schema, storage kind and words of the assets."""

from kgs_dagster.assets.columns import LINEAGE, SCHEMA
from kgs_dagster.assets.lake import lake_assets
from kgs_dagster.assets.side_tables import beside_assets
from tests.dagster.groups import group

RULE = (
    "{topic: orders, table: bronze/orders, format: json, schema: {id: long, at: timestamp, 'items': 'array<int>'}, "
    "unknown_fields: rescue, key_format: json, key_schema: {n: 'decimal(9,2)', s: {l: 'array<date>'}}, "
    "headers: {trace: traceparent}, partition_by: [hour(at), id], "
    "description: orders of the shop, comments: {id: its number}, newest_rows: {table: gold/orders}}"
)
CUSTOM = "{topic: custom, transform_arrow: 'my:function', format: json, schema: {n: int}}"


def metadata_of(rule, **sections):
    ours = group(topics=f"[{rule}]", **sections)
    topic, table = lake_assets(ours)
    return ours, topic, table


def deps(spec):
    found = spec.metadata[LINEAGE].value if hasattr(spec.metadata[LINEAGE], "value") else spec.metadata[LINEAGE]
    return {name: [(dep.asset_key, dep.column_name) for dep in of] for name, of in found.deps_by_column.items()}


def columns(spec):
    return {column.name: column for column in spec.metadata[SCHEMA].columns}


def test_each_column_comes_from_a_part_of_the_record_that_the_topic_shows():
    _, topic, table = metadata_of(RULE)
    found = deps(table)
    assert {name: part for name, ((key, part),) in found.items() if key == topic.key} == {
        "_partition": "partition", "_offset": "offset", "_timestamp": "timestamp", "_key": "key", "_headers": "headers",
        "id": "value.id", "at": "value.at", "items": "value.items", "_rescued": "value", "key_n": "key",
        "key_s": "key", "trace": "headers", "at_hour": "value.at",
    }  # fmt: skip
    assert {part for ((_, part),) in found.values()} <= columns(topic).keys()
    assert found.keys() | {"_topic_id"} == columns(table).keys()
    assert columns(table)["id"].description == "its number"
    assert columns(table)["at"].description is None
    types = [columns(table)[name].type for name in ("id", "_rescued", "key_n", "key_s", "trace", "at_hour")]
    assert types == ["long", "string", "decimal(9,2)", "struct<l:array<date>>", "string", "string"]
    assert table.description.startswith("orders of the shop\n")
    assert (table.metadata["dagster/storage_kind"], table.metadata["dagster/table_name"]) == ("delta", "bronze.orders")


def test_a_derived_table_comes_from_its_table():
    ours, _, table = metadata_of(RULE)
    (spec,) = beside_assets(ours)
    assert deps(spec) == {name: [(table.key, name)] for name in columns(table)}
    assert columns(spec) == columns(table)


def test_a_table_that_follows_a_database_has_other_columns_than_its_events():
    ours, _, _ = metadata_of(RULE.replace("{table: gold/orders}", "{table: gold/orders, changes: debezium}"))
    (spec,) = beside_assets(ours)
    assert not {SCHEMA, LINEAGE} & spec.metadata.keys()


def test_of_a_transform_only_the_columns_that_it_must_keep_are_known():
    _, _, table = metadata_of(CUSTOM)
    assert deps(table).keys() == {"_partition", "_offset", "_timestamp", "_key", "_headers"}
    assert SCHEMA not in table.metadata


def test_the_store_is_a_kind_of_its_own():
    _, topic, table = metadata_of("{topic: raw}", lake="{root: 's3://bucket/lake'}")
    assert (topic.kinds, table.kinds) == ({"kafka"}, {"delta", "s3"})
    assert deps(table)["value"] == [(topic.key, "value")]
    assert columns(table)["value"].description == "the record's value"
