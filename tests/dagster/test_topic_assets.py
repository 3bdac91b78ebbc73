"""What is recorded of Kafka's topics."""

import dagster as dg
import pytest

from kgs_core.errors import PermanentError, TransientError
from kgs_core.lake.topics.stats import LakeSnapshot, TableView
from kgs_dagster.assets.topics import EVERY_S, retention_text, retentions_of, topic_events
from tests.dagster.groups import group

ORDERS = dg.AssetKey(["g", "kafka", "topic_orders"])


def topic(name="orders", *ends):
    return TableView(name, f"bronze/{name}", ends=dict(enumerate(ends or (10, 20))))


def look(before=None, now=0.0, *, topics=None, kept=None):
    return topic_events(group(), LakeSnapshot(tuple(topics or [topic()]), ()), kept or {}, before or {}, now)


def plain(event):
    return {name: value.value for name, value in event.metadata.items() if name != "topics"}


def test_partitions_retention_and_in_time_the_rate():
    (event,), after = look(kept={"orders": "7 days"})
    assert event.asset_key == ORDERS
    assert plain(event) == {"partitions": 2, "end_offsets": 30, "retention": "7 days"}
    (event,), _ = look(after, 60, topics=[topic("orders", 110, 127)], kept={"orders": "7 days"})
    assert plain(event)["records_per_s"] == 3.45, "three digits"


def test_a_topic_is_recorded_seldom_and_at_once_when_it_has_changed():
    """Events stay for days, and there may be hundreds of topics."""
    _, after = look(kept={"orders": "7 days"})
    _, after = look(after, 60, kept={"orders": "7 days"})
    assert look(after, 120, kept={"orders": "7 days"}) == ([], after)
    assert look(after, 120, topics=[topic("orders", 1000, 2000)]) == ([], after), "growth is no change"
    assert len(look(after, 120, topics=[topic("orders", 1, 2, 3)])[0]) == 1
    assert len(look(after, 120, kept={"orders": "1 h"})[0]) == 1
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
    (event,), _ = look(topics=[topic("flights.a", 1), topic("flights.b", 2, 3)], kept={"flights.a": "1 h"})
    assert plain(event) == {"partitions": 3, "end_offsets": 6, "retention": "1 h"}
    assert [line.data for line in event.metadata["topics"].records] == [
        {"topic": "flights.a", "partitions": 1},
        {"topic": "flights.b", "partitions": 2},
    ]


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"retention.ms": "604800000", "retention.bytes": "-1"}, "7 days"),
        ({"retention.ms": "5400000", "retention.bytes": "2000000000"}, "1.5 h or 2000 MB a partition"),
        ({"retention.ms": "-1"}, "for ever"),
        ({"cleanup.policy": "compact", "retention.ms": "1"}, "compacted"),
        ({"cleanup.policy": "compact,delete", "retention.ms": "60000"}, "1 min, compacted"),
        ({}, "for ever"),
    ],
)
def test_retention_is_shown_in_words(config, told):
    assert retention_text(config) == told


def test_what_kafka_refuses_to_tell_of_one_topic_costs_the_others_nothing_and_while_it_is_away_it_is_asked_once():
    """A wait for each of some hundred topics would be a tick that never ends."""
    asked = []

    def config_of(name):
        asked.append(name)
        if name == "secret":
            raise PermanentError("no right")
        if name == "away":
            raise TransientError("no answer")
        return {"retention.ms": "1000"}

    assert retentions_of(["secret", "orders", "away", "never", "asked"], config_of) == {"orders": "1 s"}
    assert asked == ["secret", "orders", "away"]
