"""Side tables as Dagster shows them."""

import dagster as dg
import pytest

from kgs_core.lake.topics.stats import LakeSnapshot, TableView
from kgs_dagster.assets.lake import QUIET_S, lake_events, lake_layout
from kgs_dagster.assets.side_tables import side_assets, side_events
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
    events, after = side_events(group(topics=RULES), LakeSnapshot(views, ()), before or {}, now)
    return {e.asset_key: (type(e), e.metadata["rows"].value, e.metadata["tables"].value) for e in events}, after


def test_each_side_table_comes_from_the_topic():
    topic = dg.AssetKey(["g", "kafka", "topic_events"])
    specs = {spec.key: spec for spec in side_assets(group(topics=RULES))}
    assert len(specs) == 3
    assert [dep.asset_key for dep in specs[ORDERS].deps] == [topic]
    assert "whose kind is order or refund" in specs[ORDERS].description
    lineage = specs[ORDERS].metadata["dagster/column_lineage"].deps_by_column
    assert [(dep.asset_key, dep.column_name) for dep in lineage["kind"]] == [(topic, "value.kind")]
    assert specs[CLICKS].metadata["dagster/table_name"] == "bronze.clicks"
    assert side_assets(group()) == []


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
    _, unknown = side_events(group(topics=RULES), LakeSnapshot((seen(away),), ()), first, 60.0)
    found, _ = recorded(seen(side("bronze/orders", 3)), before=unknown, now=400)
    assert found == {ORDERS: (dg.AssetObservation, 3, 1)}


def test_tables_of_one_pattern_are_one_asset_and_unknown_rows_are_left_out():
    key = lake_layout(group(topics=RULES))[1].sides["x/{topic}_a"]
    views = [seen(side(f"x/x-{n}_a", n, f"x-{n}"), topic=f"x-{n}", table=f"x/x-{n}") for n in (1, 2)]
    assert recorded(*views)[0] == {key: (dg.AssetMaterialization, 3, 2)}
    unknown = seen(TableView("x-1", "x/x-1_a", None, 1, 1, 0, 3), topic="x-1", table="x/x-1")
    (event,), _ = side_events(group(topics=RULES), LakeSnapshot((unknown,), ()), {}, 0.0)
    assert "rows" not in event.metadata


def test_rows_of_the_own_table_are_its_own_and_those_of_the_lake_are_all():
    snapshot = LakeSnapshot((seen(side("bronze/orders", 3), side("bronze/clicks", 4)),), ())
    events, _ = lake_events(group(topics=RULES), snapshot, {}, 0.0)
    assert events[0].metadata["rows"].value == 10
    assert snapshot.rows == 17
