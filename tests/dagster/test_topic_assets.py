"""What is recorded of Kafka's topics."""

import dagster as dg

from kgs_core.lake.topics.stats import LakeSnapshot, TableView
from kgs_dagster.assets.topics import EVERY_S, topic_events
from tests.dagster.groups import group

ORDERS = dg.AssetKey(["g", "kafka", "topic_orders"])


def topic(name="orders", *ends):
    return TableView(name, f"bronze/{name}", ends=dict(enumerate(ends or (10, 20))))


def look(before=None, now=0.0, *, topics=None):
    return topic_events(group(), LakeSnapshot(tuple(topics or [topic()]), ()), before or {}, now)


def plain(event):
    return {name: value.value for name, value in event.metadata.items() if name != "topics"}


def test_partitions_and_in_time_the_rate():
    (event,), after = look()
    assert event.asset_key == ORDERS
    assert plain(event) == {"partitions": 2, "end_offsets": 30}
    (event,), _ = look(after, 60, topics=[topic("orders", 110, 127)])
    assert plain(event)["records_per_s"] == 3.45, "three digits"


def test_a_topic_is_recorded_seldom_and_at_once_when_it_has_changed():
    """Events stay for days, and there may be hundreds of topics."""
    _, after = look()
    _, after = look(after, 60)
    assert look(after, 120) == ([], after)
    assert look(after, 120, topics=[topic("orders", 1000, 2000)]) == ([], after), "growth is no change"
    assert len(look(after, 120, topics=[topic("orders", 1, 2, 3)])[0]) == 1
    assert len(look(after, 60 + EVERY_S)[0]) == 1


def test_unknown_is_not_zero_and_no_rate_is_below_it():
    (event,), after = look(topics=[topic("orders", 10, None)])
    assert plain(event) == {"partitions": 2}
    (event,), after = look(after, 60)
    assert "records_per_s" not in plain(event)
    (event,), _ = look(after, 120, topics=[topic("orders", 0, 0)])
    assert "records_per_s" not in plain(event), "made anew"
    assert look(topics=[TableView("orders", "bronze/orders")]) == ([], {}), "Kafka does not tell of it"


def test_the_topics_of_a_pattern_are_lines_of_one_asset():
    (event,), _ = look(topics=[topic("flights.a", 1), topic("flights.b", 2, 3)])
    assert plain(event) == {"partitions": 3, "end_offsets": 6}
    assert [line.data for line in event.metadata["topics"].records] == [
        {"topic": "flights.a", "partitions": 1},
        {"topic": "flights.b", "partitions": 2},
    ]
