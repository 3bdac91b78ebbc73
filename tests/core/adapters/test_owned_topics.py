"""Topics that come, go and fail under a consumer; real tables in a folder, Kafka from memory."""

import pytest

from kgs_core.adapters.kafka_admin import TopicDescription
from kgs_core.adapters.owned_topics import NO_RULE, NO_TOPIC, NOT_YET, OwnedTopics
from kgs_core.adapters.storage import Storage
from kgs_core.adapters.topic_opening import TopicOpener
from kgs_core.config import parse_settings
from kgs_core.errors import PermanentError, TransientError, UnsafeError
from kgs_core.model import OffsetRange, TopicBatch, TopicId, TopicPartition

YAML = """
group: g
kafka: {{bootstrap_servers: "127.0.0.1:9"}}
lake: {{root: {root}}}
topics: [{{pattern: "t.*"}}, {{topic: broken, transform_arrow: "nothing:here"}}]
"""


class MemoryKafka:
    """Topics by name, and whether their leaders answer."""

    def __init__(self):
        self.topics = {}
        self.away = set()
        self.denied = set()
        self.is_away = False
        self.asked = 0

    def make(self, topic, partitions=4, topic_id="id"):
        self.topics[topic] = TopicDescription(TopicId(f"{topic_id}-{topic}"), partitions)

    def list_topics(self):
        return sorted(self.topics)

    def describe(self, topics):
        self.asked += 1
        if set(topics) & self.denied:
            raise PermanentError("denied")
        if self.is_away:
            raise TransientError("no answer")
        return {topic: self.topics[topic] for topic in topics if topic in self.topics}

    def offsets(self, tps, which):
        assert which == "earliest"
        if {tp.topic for tp in tps} & self.away:
            raise TransientError("no leader", retry_after_s=3)
        return dict.fromkeys(tps, 0)


@pytest.fixture
def kafka():
    kafka = MemoryKafka()
    kafka.make("t1")
    kafka.make("t2")
    return kafka


@pytest.fixture
def topics(kafka, tmp_path):
    settings = parse_settings(YAML.format(root=tmp_path).encode(), "kgs.yaml", {})
    opener = TopicOpener(settings, Storage(settings.lake.root), kafka, None, None)
    return OwnedTopics(settings, kafka, opener)


def share(**wanted):
    return lambda topic, count: frozenset(p for p in wanted.get(topic, ()) if p < count)


def tps(**wanted):
    return {TopicPartition(topic, p) for topic, partitions in wanted.items() for p in partitions}


def commit(topics, topic, partition, start, end):
    state = topics.states[topic]
    batch = TopicBatch(topic, state.table.ids.topic_id, {partition: OffsetRange(start, end)}, None)
    state.table.commit(batch)


def test_topic_is_opened_when_first_needed_and_owned_ones_are_read_from_the_table(topics):
    assert topics.refresh({"t1", "t2"}, share(t1=[0, 1])) is None
    assert set(topics.states) == {"t1", "t2"}, "one that is only coming is opened, too"
    assert topics.positions() == {TopicPartition("t1", 0): 0, TopicPartition("t1", 1): 0}
    assert topics.reasons(tps(t1=[0, 1])) == {}


def test_open_topic_gives_more_without_asking_kafka_and_a_new_partition_only_after(topics, kafka):
    topics.refresh({"t1"}, share(t1=[0]))
    asked = kafka.asked
    assert topics.own("t1", frozenset({0, 3}))
    assert topics.own("t1", frozenset({0, 4})) is False
    assert topics.own("t2", frozenset({0})) is False
    assert kafka.asked == asked
    assert topics.states["t1"].owned == {0, 3}


def test_position_is_never_kept_from_an_earlier_ownership(topics):
    topics.refresh({"t1"}, share(t1=[0, 1]))
    topics.let_go(tps(t1=[1]), set())
    assert 0 not in topics.states["t1"].positions
    commit(topics, "t1", 0, 0, 70)  # the new owner's
    topics.own("t1", frozenset({0, 1}))
    assert topics.positions()[TopicPartition("t1", 0)] == 70


def test_stop_of_a_partition_that_was_given_up_is_forgotten(topics):
    topics.refresh({"t1"}, share(t1=[0, 1]))
    topics.states["t1"].stop({0: "poison"})
    assert topics.reasons(tps(t1=[0, 1])) == {TopicPartition("t1", 0): "poison"}
    topics.let_go(tps(t1=[1]), set())
    assert topics.states["t1"].stopped == {}
    topics.own("t1", frozenset({0, 1}))
    assert topics.reasons(tps(t1=[0, 1])) == {}


def test_topic_without_any_partition_is_closed(topics):
    topics.refresh({"t1", "t2"}, share(t1=[0], t2=[0]))
    topics.let_go(tps(t1=[0]), set())
    assert set(topics.states) == {"t1"}
    topics.let_go(set(), tps(t1=[0]))
    assert set(topics.states) == {"t1"}, "it is coming"


def test_topics_that_cannot_be_read_have_their_reasons_and_hold_up_no_other(topics, kafka):
    kafka.make("broken")
    kafka.make("other")
    kafka.away.add("t2")
    wanted = {"t1": [0, 9], "t2": [0], "broken": [0], "other": [0], "gone": [0]}
    assert topics.refresh(set(wanted), share(**wanted)) == 3, "only the one without a leader is worth another try soon"
    reasons = topics.reasons(tps(**wanted))
    assert TopicPartition("t1", 0) not in reasons
    assert reasons[TopicPartition("t1", 9)] == NO_TOPIC
    assert reasons[TopicPartition("t2", 0)] == "no leader"
    assert "nothing" in reasons[TopicPartition("broken", 0)]
    assert NO_RULE in reasons[TopicPartition("other", 0)]
    assert NO_TOPIC in reasons[TopicPartition("gone", 0)]
    kafka.away.clear()
    assert topics.refresh({"t2"}, share(**wanted)) is None
    assert TopicPartition("t2", 0) not in topics.reasons(tps(**wanted))


def test_topic_that_is_refused_to_us_holds_up_no_other(topics, kafka):
    kafka.denied.add("t2")
    topics.refresh({"t1", "t2"}, share(t1=[0], t2=[0]))
    assert topics.reasons(tps(t1=[0], t2=[0])) == {TopicPartition("t2", 0): "denied"}


def test_what_could_not_be_asked_for_is_not_said_to_be_missing(topics, kafka):
    kafka.is_away = True
    with pytest.raises(TransientError):
        topics.refresh({"t1"}, share(t1=[0]))
    assert topics.reasons(tps(t1=[0])) == {TopicPartition("t1", 0): NOT_YET}


def test_topic_made_again_stops_what_is_owned_and_what_is_given_later(topics, kafka):
    topics.refresh({"t1"}, share(t1=[0]))
    kafka.make("t1", topic_id="other")
    topics.refresh({"t1"}, share(t1=[0, 1]))
    assert topics.own("t1", frozenset({0, 1})) is False
    reasons = topics.reasons(tps(t1=[0, 1]))
    assert all("created again" in reason for reason in reasons.values())
    assert len(reasons) == 2


def test_topic_that_vanished_stops(topics, kafka):
    topics.refresh({"t1"}, share(t1=[0]))
    del kafka.topics["t1"]
    topics.refresh({"t1"}, share(t1=[0]))
    assert "it was deleted" in topics.reasons(tps(t1=[0]))[TopicPartition("t1", 0)]


def test_fixed_share_is_refused_at_first_and_left_out_later(topics, kafka):
    kafka.make("t3")
    topics.refresh_all(share(t3=[0]), first=True)
    commit(topics, "t3", 0, 0, 5)
    topics.states.clear()
    kafka.make("t3", topic_id="other")
    with pytest.raises(UnsafeError):
        topics.refresh_all(share(t3=[0]), first=True)
    topics.refresh_all(share(t3=[0], t1=[0]), first=False)
    assert topics.states["t1"].owned == {0}
    assert "t3" not in topics.states
