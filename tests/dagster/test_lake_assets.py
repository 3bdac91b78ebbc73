"""The lake as Dagster shows it: assets from kgs.yaml alone, and what is recorded of a look."""

import json

import dagster as dg
import pytest

from kgs_core.lake.topics.stats import LakeSnapshot, TableView
from kgs_dagster.assets.lake import QUIET_S, lake_assets, lake_events, lake_layout
from kgs_dagster.automation import lake_sensor
from tests.dagster.groups import group

ORDERS = dg.AssetKey(["g", "lake", "bronze", "orders"])
TOPIC = dg.AssetKey(["g", "kafka", "topic_orders"])
FLIGHTS = dg.AssetKey(["g", "lake", "bronze", "flights.any"])


def table(topic="orders", *, position=10, end=10, **figures):
    known = {"rows": position, "size_bytes": 1000, "files": 2, "dead_letters": 0, "version": 5, **figures}
    return TableView(topic, f"bronze/{topic}", positions={0: position}, ends={0: end}, **known)


def seen(*tables, problems=()):
    return LakeSnapshot(tables, problems)


def events(snapshot, before=None, now=0.0):
    return lake_events(group(), snapshot, before or {}, now)


def numbers(event):
    return {key: value.value for key, value in event.metadata.items() if isinstance(value.value, int)}


def test_every_rule_is_a_topic_and_a_table_that_comes_from_it():
    r"""A topic is told apart from its table where only the last part of a name is shown; Markdown would eat a `\\`."""
    specs = lake_assets(group())
    assert [(spec.key.to_user_string(), spec.kinds) for spec in specs] == [
        ("g/kafka/topic_orders", {"kafka"}),
        ("g/lake/bronze/orders", {"delta"}),
        ("g/kafka/topic_flights.any", {"kafka"}),
        ("g/lake/bronze/flights.any", {"delta"}),
    ]
    assert [dep.asset_key for dep in specs[1].deps] == [TOPIC]
    assert [r"`flights\..*`" in spec.description for spec in specs] == [False, False, True, True]


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (".*", "any"),
        (r"[a-z]+\.v\d", "_a-z__.v_"),
        (r"eu\.(orders|returns)", "eu._orders_returns_"),
    ],
)
def test_a_pattern_has_a_name_of_its_own(pattern, name):
    (asset,) = lake_layout(group(topics=f"[{{pattern: '{pattern}'}}]"))
    assert asset.topics[0].path == ["g", "kafka", f"topic_{name}"]


def test_no_two_rules_share_an_asset():
    layout = lake_layout(group(topics="[{topic: x.any}, {pattern: 'x\\..*'}, {pattern: 'x\\..+'}]"))
    assert [asset.table.path[-1] for asset in layout] == ["x.any", "x.any_2", "x.any_3"]
    assert len({asset.topics for asset in layout}) == 3


def test_columns_of_the_table_that_kgs_yaml_does_not_name_are_recorded():
    """Such as one that was renamed there, or has come with the schema of a registry."""
    rules = group(topics="[{topic: orders, table: bronze/orders, format: json, schema: {n: int}}]")
    said = [column.name for column in lake_assets(rules)[1].metadata["dagster/column_schema"].columns]

    def recorded(*names):
        fields = [{"name": name, "type": "long", "metadata": {"comment": "gross"}} for name in names]
        ((event,), _) = lake_events(rules, seen(table(fields=fields)), {}, 0.0)
        schema = event.metadata.get("dagster/column_schema")
        return schema and [(column.name, column.type, column.description) for column in schema.value.columns][6:]

    assert recorded(*said) is recorded() is None, "the definition has them"
    assert recorded(*said, "tax") == [("n", "int", None), ("tax", "bigint", "gross")]


def test_a_table_that_is_caught_up_is_materialized_with_plain_numbers():
    (event,), _ = events(seen(table(position=10, end=10)))
    assert isinstance(event, dg.AssetMaterialization)
    assert event.asset_key == ORDERS
    assert numbers(event) == {"rows": 10, "dead_letters": 0, "size_bytes": 1000, "files": 2, "lag": 0, "tables": 1}
    (line,) = event.metadata["partitions"].records
    assert line.data == {"partition": 0, "position": 10, "end": 10, "lag": 0}


def test_a_table_that_is_behind_is_materialized_when_it_has_come_further_and_observed_when_not():
    (first,), before = events(seen(table(position=10, end=90)))
    (second,), before = events(seen(table(position=40, end=100)), before, 60)
    (third,), _ = events(seen(table(position=40, end=110)), before, 120)
    assert [type(event) for event in (first, second, third)] == [
        dg.AssetObservation,
        dg.AssetMaterialization,
        dg.AssetObservation,
    ]


def test_what_does_not_change_is_recorded_now_and_then_only():
    """Events stay for ever: a topic without traffic must not fill the database."""
    _, before = events(seen(table()))
    again, after = events(seen(table()), before, 60)
    assert again == []
    assert after == before
    (event,), _ = events(seen(table()), after, QUIET_S)
    assert isinstance(event, dg.AssetMaterialization)


def test_unknown_is_not_zero():
    (event,), _ = events(seen(table(rows=None, dead_letters=None)))
    assert numbers(event) == {"size_bytes": 1000, "files": 2, "lag": 0, "tables": 1}
    _, before = events(seen(table(position=None, end=90, rows=0)))
    (event,), _ = events(seen(table(position=10, end=90)), before, 60)
    assert isinstance(event, dg.AssetObservation), "a position that comes to be known is no progress"
    assert events(seen(TableView("orders", "bronze/orders"))) == ([], {}), "it is not there yet"


def test_the_topics_of_a_pattern_are_lines_of_one_asset():
    (event,), _ = events(seen(table("flights.a", position=1, end=1), table("flights.b", position=2, end=3)))
    assert event.asset_key == FLIGHTS
    assert (numbers(event)["rows"], numbers(event)["lag"], numbers(event)["tables"]) == (3, 1, 2)
    assert [line.data["topic"] for line in event.metadata["topics"].records] == ["flights.a", "flights.b"]


@pytest.fixture
def tick(instance):
    def run(snapshot, cursor=None, now=0.0):
        sensor = lake_sensor(group(), lambda: snapshot, lambda: now)
        return sensor(dg.build_sensor_context(instance=instance, cursor=cursor))

    return run


def test_the_sensor_remembers_what_it_recorded(tick):
    first = tick(seen(table()))
    assert [event.asset_key for event in first.asset_events] == [ORDERS]
    assert first.skip_reason.skip_message == "1 tables seen, 1 assets recorded"
    second = tick(seen(table()), first.cursor, 60)
    assert second.asset_events == []
    assert json.loads(second.cursor) == json.loads(first.cursor)


OF_THE_FUTURE = json.dumps({ORDERS.to_user_string(): {"at": 9e9, "position": 10, "figures": [10, 0, 1000, 2, 0, 1]}})


@pytest.mark.parametrize(
    "cursor",
    [
        *("no JSON", "[]", '{"g/lake/x": 1}', '{"g/lake/x": {"at": 1}}', "null", OF_THE_FUTURE),
        *(
            json.dumps({ORDERS.to_user_string(): {"at": at, "position": position, "figures": figures}})
            for at, position, figures in (("1", 1, [1]), (None, 1, [1]), (1, "1", [1]), (1, 1, [1]), (1, 1, 3))
        ),
    ],
)
def test_a_cursor_that_is_none_of_ours_costs_one_more_record(tick, cursor):
    assert len(tick(seen(table()), cursor).asset_events) == 1


def test_while_lake_or_kafka_are_away_the_sensor_forgets_nothing(tick):
    first = tick(seen(table(position=10, end=20)))
    away = tick(seen(TableView("orders", "bronze/orders")), first.cursor, 60)
    nobody = tick(seen(problems=("Kafka: no answer",)), away.cursor, 120)
    assert (away.asset_events, nobody.asset_events) == ([], [])
    assert nobody.skip_reason.skip_message == "Kafka: no answer"
    assert json.loads(nobody.cursor) == json.loads(first.cursor)
    back = tick(seen(table(position=15, end=20)), nobody.cursor, 180)
    (event,) = back.asset_events
    assert isinstance(event, dg.AssetMaterialization), "it has come further since"


def test_the_first_table_that_is_there_is_audited_once(instance):
    """The check would say `not evaluated` until the night."""

    @dg.job(name="lake_audit_job")
    def audit():
        pass

    def asked():
        sensor = lake_sensor(group(), lambda: seen(table()), lambda: 0.0, audit)
        return sensor(dg.build_sensor_context(instance=instance)).run_requests

    assert [(request.job_name, request.run_key) for request in asked()] == [("lake_audit_job", "g/first-audit")]
    instance.create_run_for_job(audit)
    assert not asked()


SHARED = "[{topic: a, table: bronze/x}, {topic: b, table: bronze/x}, {pattern: 'c+', table: bronze/x}]"


def test_rules_that_name_one_table_share_its_asset():
    (asset,) = lake_layout(group(topics=SHARED))
    specs = lake_assets(group(topics=SHARED))
    (of_table,) = [spec for spec in specs if spec.key == asset.table]
    assert {dep.asset_key for dep in of_table.deps} == {*asset.topics} == {spec.key for spec in specs} - {asset.table}
    assert len(asset.topics) == 3
    assert "topic a, topic b, topics that match `c+`" in of_table.description


def test_what_several_topics_share_is_counted_once():
    views = [
        TableView(t, "bronze/x", 10, 1000, 2, 1, 5, positions={0: at}, ends={0: 9}) for t, at in (("a", 8), ("cc", 5))
    ]
    snapshot = seen(*views)
    (event,), _ = lake_events(group(topics=SHARED), snapshot, {}, 0.0)
    assert numbers(event) == {"rows": 10, "dead_letters": 1, "size_bytes": 1000, "files": 2, "lag": 5, "tables": 1}
    assert [line.data["topic"] for line in event.metadata["topics"].records] == ["a", "cc"]
    assert snapshot.rows == 10
