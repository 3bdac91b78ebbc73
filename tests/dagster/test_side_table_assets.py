"""Tables beside a rule's own as Dagster shows them: side tables, and newest rows."""

import dagster as dg
import pytest

from kgs_core.lake.topics.stats import LakeSnapshot, TableView
from kgs_dagster.assets.lake import QUIET_S, lake_events, lake_layout
from kgs_dagster.assets.side_tables import beside_assets, beside_events
from kgs_dagster.jobs.prune import _seen
from tests.dagster.groups import group

RULES = (
    "[{topic: events, table: bronze/events, format: json, schema: {kind: string}, "
    "route: {column: kind, tables: {order: bronze/orders, refund: bronze/orders, click: bronze/clicks}}}, "
    "{pattern: 'x-.*', table: 'x/{topic}', format: json, schema: {kind: string}, "
    "route: {column: kind, tables: {a: 'x/{topic}_a'}}}]"
)
ORDERS, CLICKS = (dg.AssetKey(["g", "lake", "bronze", name]) for name in ("orders", "clicks"))


def side(name, rows, topic="events"):
    return TableView(topic, name, rows, 100, 1, 0, 3)


def seen(*sides, topic="events", table="bronze/events"):
    return TableView(topic, table, 10, 1000, 2, 0, 5, {0: 10}, {0: 10}, sides)


def recorded(*views, before=None, now=0.0):
    events, after = beside_events(group(topics=RULES), LakeSnapshot(views, ()), before or {}, now)
    return {e.asset_key: (type(e), e.metadata["rows"].value, e.metadata["tables"].value) for e in events}, after


def test_each_side_table_comes_from_the_topic():
    topic = dg.AssetKey(["g", "kafka", "topic_events"])
    specs = {spec.key: spec for spec in beside_assets(group(topics=RULES))}
    assert len(specs) == 3
    assert [dep.asset_key for dep in specs[ORDERS].deps] == [topic]
    assert "whose kind is order or refund" in specs[ORDERS].description
    lineage = specs[ORDERS].metadata["dagster/column_lineage"].deps_by_column
    assert [(dep.asset_key, dep.column_name) for dep in lineage["kind"]] == [(topic, "value.kind")]
    assert specs[CLICKS].metadata["dagster/table_name"] == "bronze.clicks"
    assert beside_assets(group()) == []


def test_one_that_has_more_rows_is_materialized():
    made, observed = dg.AssetMaterialization, dg.AssetObservation
    found, after = recorded(seen(side("bronze/orders", 3), side("bronze/clicks", 0)))
    assert found == {ORDERS: (made, 3, 1), CLICKS: (observed, 0, 1)}
    found, again = recorded(seen(side("bronze/orders", 3), side("bronze/clicks", 2)), before=after, now=60)
    assert found == {CLICKS: (made, 2, 1)}
    found, _ = recorded(seen(side("bronze/orders", 3), side("bronze/clicks", 2)), before=again, now=QUIET_S)
    assert found == {ORDERS: (observed, 3, 1)}


@pytest.mark.parametrize(
    "away", [TableView("events", "bronze/orders"), TableView("events", "bronze/orders", None, 1, 1, 0, 3)]
)
def test_one_whose_rows_were_not_known_for_a_while_has_no_more_than_before(away):
    _, first = recorded(seen(side("bronze/orders", 3)))
    _, unknown = beside_events(group(topics=RULES), LakeSnapshot((seen(away),), ()), first, 60.0)
    found, _ = recorded(seen(side("bronze/orders", 3)), before=unknown, now=400)
    assert found == {ORDERS: (dg.AssetObservation, 3, 1)}


def test_tables_of_one_pattern_are_one_asset_and_unknown_rows_are_left_out():
    key = lake_layout(group(topics=RULES))[1].sides["x/{topic}_a"]
    views = [seen(side(f"x/x-{n}_a", n, f"x-{n}"), topic=f"x-{n}", table=f"x/x-{n}") for n in (1, 2)]
    assert recorded(*views)[0] == {key: (dg.AssetMaterialization, 3, 2)}
    unknown = seen(TableView("x-1", "x/x-1_a", None, 1, 1, 0, 3), topic="x-1", table="x/x-1")
    (event,), _ = beside_events(group(topics=RULES), LakeSnapshot((unknown,), ()), {}, 0.0)
    assert "rows" not in event.metadata


def test_rows_of_the_own_table_are_its_own_and_those_of_the_lake_are_all():
    snapshot = LakeSnapshot((seen(side("bronze/orders", 3), side("bronze/clicks", 4)),), ())
    events, _ = lake_events(group(topics=RULES), snapshot, {}, 0.0)
    assert events[0].metadata["rows"].value == 10
    assert snapshot.rows == 17


NEWEST = (
    "[{pattern: 'db\\.(?P<name>.*)', table: 'bronze/{name}', format: json, "
    "schema: {op: string, after: 'struct<n:int>'}, newest_rows: {table: 'gold/{name}', changes: debezium, key: [n]}}, "
    "{topic: plain, table: bronze/plain, format: string, newest_rows: {table: gold/plain, history: gold/past}}]"
)


PLAIN = TableView("plain", "gold/plain", 5, 9, 1, 0, 3)
PAST = TableView("plain", "gold/past", 7, 9, 1, 0, 3, fields=[{"name": "_from", "type": "timestamp", "metadata": {}}])


def newest_looks(*looks):
    """What is recorded of newest rows: at each look of a minute, versions of the tables of topics db.0, db.1, ..."""
    found, before = [], {}
    for at, versions in enumerate(looks):
        views = []
        for number, version in enumerate(versions):
            fields = [{"name": "n", "type": "integer", "metadata": {}}]
            known = () if version is None else (5, 100 + version, 1, 0, version)
            derived = TableView(f"db.{number}", f"gold/{number}", *known, fields=fields if known else ())
            views.append(TableView(f"db.{number}", f"bronze/{number}", 10, 1000, 2, 0, 5, derived=(derived,)))
        events, before = beside_events(group(topics=NEWEST), LakeSnapshot(tuple(views), ()), before, 60.0 * at)
        found.append([type(event) for event in events])
        assert all(event.asset_key == lake_layout(group(topics=NEWEST))[0].derived["gold/{name}"] for event in events)
        columns = [event.metadata["dagster/column_schema"].value.columns for event in events]
        assert all([(column.name, column.type) for column in each] == [("n", "int")] for each in columns)
    return found


def test_newest_rows_that_consumers_keep_up_are_materialized_when_their_version_changes():
    made, seen_only = [dg.AssetMaterialization], [dg.AssetObservation]
    assert newest_looks([None], [0], [0], [1]) == [[], made, [], made]
    assert newest_looks([7], [7], [7], [7], [7], [7]) == [made, [], [], [], [], seen_only]
    assert newest_looks([7], [0]) == [made, made]  # deleted, and built again
    # one of them is not there yet, or cannot be read, and is then as it was
    assert newest_looks([3, None], [4, None], [4, 0]) == [made, made, made]
    assert newest_looks([3, 5], [3, None], [3, 5]) == [made, seen_only, seen_only]


def test_newest_rows_of_plain_records_have_the_columns_of_their_rule():
    view = TableView("plain", "bronze/plain", 10, 1000, 2, 0, 5, derived=(PLAIN, PAST))
    events, _ = beside_events(group(topics=NEWEST), LakeSnapshot((view,), ()), {}, 0.0)
    found = {event.asset_key.path[-1]: event.metadata for event in events}
    assert (found["plain"]["rows"].value, found["plain"]["size_bytes"].value) == (5, 9)
    assert "dagster/column_schema" not in found["plain"]
    assert [column.name for column in found["past"]["dagster/column_schema"].value.columns] == ["_from"]


def test_newest_rows_and_their_history_are_assets_below_their_table_and_what_is_recorded_of_them_is_cleaned_up():
    ours = group(topics=NEWEST)
    specs = {spec.key.path[-1]: spec for spec in beside_assets(ours)}
    assert {name: [dep.asset_key.path[-1] for dep in spec.deps] for name, spec in specs.items()} == {
        "name": ["name"],
        "plain": ["plain"],
        "past": ["plain"],
    }
    assert {spec.key for spec in specs.values()} <= {*_seen(ours)}
