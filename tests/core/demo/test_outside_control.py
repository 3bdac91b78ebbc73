"""The demonstration on a Kafka that is there: its topics are made, and nobody's records are counted as its own."""

import pytest

from kgs_core.demo import outside_control
from kgs_core.demo.outside_control import create_demo_topics
from kgs_core.demo.replay import PARTITIONS, TOPICS
from kgs_core.errors import ConfigError
from kgs_core.kafka.admin import TopicDescription
from kgs_core.model import TopicId
from tests.configuration import settings_of

ALL = [{"pattern": "flights.*"}]


class Admin:
    """Topics with one partition each, and their ends."""

    def __init__(self, ends):
        self.ends = ends
        self.made = []

    def describe(self, topics):
        return {topic: TopicDescription(TopicId("i"), 1, {0: 1}) for topic in topics if topic in self.ends}

    def offsets(self, tps, which):
        assert which == "latest"
        return {tp: self.ends[tp.topic] for tp in tps}

    def create_topic(self, name, partitions, replication, config):
        self.made.append((name, partitions, replication, config))


@pytest.fixture
def admin(monkeypatch):
    def with_ends(**ends):
        made = Admin({name.replace("_", "."): end for name, end in ends.items()})
        monkeypatch.setattr(outside_control, "admin_of", lambda _: made)
        monkeypatch.setattr(outside_control, "create_topics", lambda of, by: made.made.append((of.group, by)))
        return made

    return with_ends


def settings(topics=ALL, **kafka):
    return settings_of(kafka={"bootstrap_servers": "k:1", **kafka}, topics=topics)


def test_missing_topics_are_made_and_empty_ones_taken(admin):
    asked = admin(flights_ewr=0)
    create_demo_topics(settings())
    assert asked.made == [(topic, PARTITIONS, 1, {}) for topic in TOPICS if topic != "flights.ewr"] + [("g", asked)]


def test_a_topic_with_records_is_refused_before_anything_is_made(admin):
    asked = admin(flights_ewr=0, flights_jfk=7)
    with pytest.raises(ConfigError, match=r"topic 'flights\.jfk' holds records already: delete it and its table"):
        create_demo_topics(settings())
    assert asked.made == []


def test_a_group_that_does_not_read_them_is_refused(admin):
    asked = admin()
    with pytest.raises(ConfigError, match=r"no rule for 'flights\.weather'"):
        create_demo_topics(settings([{"topic": f"flights.{airport}"} for airport in ("ewr", "jfk", "lga")]))
    with pytest.raises(ConfigError, match=r"kafka\.client: the demonstration's generator cannot sign in"):
        create_demo_topics(settings(client={"security.protocol": "SSL"}))
    assert asked.made == []
