"""Topics that come, go and fail under a consumer; real tables in a folder, Kafka from memory."""

import time

import pytest

from kgs_core.errors import PermanentError, TransientError, UnsafeError
from kgs_core.ingest.opening.owned_topics import MISSING_AGAIN_S, NO_RULE, NO_TOPIC, NOT_YET, OwnedTopics
from kgs_core.ingest.opening.topic_opener import TopicOpener
from kgs_core.kafka.topic_description import TopicDescription
from kgs_core.lake.rule.batch import TopicBatch
from kgs_core.lake.rule.positions import AppIds
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.topic_table import TopicTable
from kgs_core.model import OffsetRange, TopicId, TopicPartition
from tests.group_offsets import MemoryOffsets
from tests.kgs_yaml import kgs_yaml


class MemoryKafka:
    """Topics by name, and whether their leaders answer."""

    def __init__(self, *topics):
        self.topics = {}
        self.away = set()
        self.denied = set()
        self.is_away = False
        self.asked = 0
        self.group = MemoryOffsets()
        for topic in topics:
            self.make(topic)

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
    return MemoryKafka("t1", "t2")


@pytest.fixture
def topics(kafka, tmp_path):
    return consumer(kafka, tmp_path)


def consumer(kafka, root):
    broken = {"topic": "broken", "transform_arrow": "nothing:here"}
    settings = kgs_yaml(root, {"pattern": "t.*"}, broken)
    opener = TopicOpener(settings, open_lake(settings.lake), kafka, kafka.group, None)
    return OwnedTopics(settings, kafka, opener)


def share(**wanted):
    return lambda topic, count: frozenset(p for p in wanted.get(topic, ()) if p < count)


def own(topics, topic, *partitions):
    """As the batch loop does: asked beside the round, and taken in."""
    wanted = share(**{topic: partitions})
    is_known = topics.own(topic, frozenset(partitions), wanted)
    topics.take_in(wanted, 30.0)
    return is_known


def tps(**wanted):
    return {TopicPartition(topic, p) for topic, partitions in wanted.items() for p in partitions}


def commit(topics, topic, partition, start, end):
    state = topics.states[topic]
    batch = TopicBatch(topic, state.table.ids.topic_id, {partition: OffsetRange(start, end)}, ())
    state.table.commit(batch)


def test_topic_is_opened_when_first_needed_and_owned_ones_are_read_from_the_table(topics):
    assert topics.refresh({"t1", "t2"}, share(t1=[0, 1])) is None
    assert set(topics.states) == {"t1", "t2"}, "one that is only coming is opened, too"
    assert topics.positions() == {TopicPartition("t1", 0): 0, TopicPartition("t1", 1): 0}
    assert topics.reasons(tps(t1=[0, 1])) == {}


def test_open_topic_gives_more_without_asking_kafka_and_a_new_partition_only_after(topics, kafka):
    topics.refresh({"t1"}, share(t1=[0]))
    asked = kafka.asked
    assert own(topics, "t1", 0, 3)
    assert own(topics, "t1", 0, 4) is False
    assert own(topics, "t2", 0) is False
    assert kafka.asked == asked
    assert topics.states["t1"].progress.owned == {0, 3}


def test_position_is_never_kept_from_an_earlier_ownership(topics):
    topics.refresh({"t1"}, share(t1=[0, 1]))
    topics.let_go(tps(t1=[1]), set())
    assert 0 not in topics.states["t1"].progress.positions
    commit(topics, "t1", 0, 0, 70)  # the new owner's
    own(topics, "t1", 0, 1)
    assert topics.positions()[TopicPartition("t1", 0)] == 70


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
    assert topics.refresh(set(wanted), share(**wanted)) == MISSING_AGAIN_S, "a broker's metadata may lag"
    assert topics.refresh(set(wanted), share(**wanted)) is None
    assert topics.retries._at["t2"] > time.monotonic() + 3, "only the one without a leader is worth another try soon"
    assert [t for t in wanted if t in topics.retries._at] == ["t2"]
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


def test_what_comes_can_be_read_once_its_topic_is_open_and_is_reported_as_unreadable_with_the_reason(topics, kafka):
    kafka.make("broken")
    kafka.make("other")
    pending = tps(t1=[0, 9], broken=[0], other=[0], gone=[0])
    assert topics.openable(pending) == frozenset()
    assert {topics.problem_of(tp) for tp in pending} == {None}, "nobody has looked yet"
    topics.refresh({tp.topic for tp in pending}, share())
    assert topics.openable(pending) == tps(t1=[0])
    assert topics.problem_of(TopicPartition("t1", 9)) == NO_TOPIC
    assert "nothing" in topics.problem_of(TopicPartition("broken", 0))
    assert NO_RULE in topics.problem_of(TopicPartition("other", 0))
    assert NO_TOPIC in topics.problem_of(TopicPartition("gone", 0))
    kafka.denied.add("t1")
    topics.refresh({"t1"}, share())
    assert topics.openable(pending) == frozenset(), "what was open and is refused now cannot be read either"


def test_fixed_share_is_read_on_while_kafka_does_not_answer(topics, kafka):
    """Each round of the static mode began with a refresh that raised: nothing was read, though the leaders answered."""
    topics.refresh_all(share(t1=[0]), first=True)
    kafka.is_away = True
    topics.refresh_all(share(t1=[0]), first=False)
    assert topics.positions() == {TopicPartition("t1", 0): 0}


def test_fixed_share_is_read_on_beside_a_new_topic_that_cannot_be(topics, kafka):
    """Its table would be that of another topic, or it is refused to us: the whole consumer ended."""
    topics.refresh_all(share(t1=[0], t2=[0]), first=True)
    kafka.make("t1_dead_letters")
    kafka.denied.add("t2")
    topics.refresh_all(share(t1=[0, 1], t2=[0], t1_dead_letters=[0]), first=False)
    assert topics.states["t1"].progress.active == {0: 0, 1: 0}
    assert "collision" in topics.problems["t1_dead_letters"]
    assert topics.problems["t2"] == "denied"


@pytest.mark.parametrize("error", [SystemExit("no licence"), ValueError("a checkpoint that is no Parquet file")])
def test_whatever_keeps_a_topic_from_being_opened_holds_up_no_other(topics, monkeypatch, error):
    """Five such rounds ended the consumer, and the one that took its partitions over, too."""
    opened = TopicOpener.open

    def open_(opener, spec, *more):
        if spec.topic == "t1":
            raise error
        return opened(opener, spec, *more)

    monkeypatch.setattr(TopicOpener, "open", open_)
    topics.refresh({"t1", "t2"}, share(t1=[0], t2=[0]))
    assert "t1" in topics.retries._at
    (reason,) = topics.reasons(tps(t1=[0], t2=[0])).values()
    assert f"{type(error).__name__}: {error}" in reason
    topics.refresh_all(share(t1=[0], t2=[1]), first=False)
    assert topics.positions() == {TopicPartition("t2", 1): 0}


def test_what_could_not_be_asked_for_is_not_reported_as_missing(topics, kafka):
    kafka.is_away = True
    assert topics.refresh({"t1"}, share(t1=[0])) == 1.0, "asked again soon; what is open is read meanwhile"
    assert topics.reasons(tps(t1=[0])) == {TopicPartition("t1", 0): NOT_YET}


def test_topic_made_again_stops_what_is_owned_and_what_is_given_later(topics, kafka):
    topics.refresh({"t1"}, share(t1=[0]))
    kafka.make("t1", topic_id="other")
    topics.refresh({"t1"}, share(t1=[0, 1]))
    assert own(topics, "t1", 0, 1) is False
    reasons = topics.reasons(tps(t1=[0, 1]))
    assert all("created again" in reason for reason in reasons.values())
    assert len(reasons) == 2


def test_topic_that_vanished_stops_at_the_second_look_and_goes_on_when_it_is_back(topics, kafka):
    here = TopicPartition("t1", 0)
    topics.refresh({"t1"}, share(t1=[0]))
    there = kafka.topics.pop("t1")
    topics.refresh({"t1"}, share(t1=[0]))
    assert topics.states["t1"].progress.active == {}
    assert topics.reasons({here}) == {}, "a broker whose metadata lags says so, too"
    topics.states["t1"].progress = topics.states["t1"].progress.looking_at_once(0.0)
    topics.refresh({"t1"}, share(t1=[0]))
    assert "it was deleted" in topics.reasons({here})[here]
    kafka.topics["t1"] = there
    topics.refresh({"t1"}, share(t1=[0]))
    progress = topics.states["t1"].progress
    assert progress.due(time.monotonic()) == {0}, "the next round looks at it at once"
    assert topics.problems == {}


def test_topic_made_again_is_read_once_that_is_accepted(topics, kafka):
    topics.refresh({"t1"}, share(t1=[0]))
    kafka.make("t1", topic_id="other")
    topics.refresh({"t1"}, share(t1=[0]))
    state = topics.states["t1"]
    ids = AppIds("g", "t1", TopicId("other-t1"))
    table = TopicTable(topics._opener._lake, state.table.spec, ids, state.table.schema)
    table.open()
    table.fix_start(dict.fromkeys(range(4), 0))  # what `kgs accept-topic` does
    topics.refresh({"t1"}, share(t1=[0]))
    assert topics.states["t1"].progress.topic_id == "other-t1"
    assert topics.states["t1"].progress.active == {0: 0}
    assert topics.reasons(tps(t1=[0])) == {}


def test_fixed_share_is_refused_at_first_and_left_out_later(topics, kafka):
    kafka.make("t3")
    topics.refresh_all(share(t3=[0]), first=True)
    commit(topics, "t3", 0, 0, 5)
    topics.states.clear()
    kafka.make("t3", topic_id="other")
    with pytest.raises(UnsafeError):
        topics.refresh_all(share(t3=[0]), first=True)
    topics.refresh_all(share(t3=[0], t1=[0]), first=False)
    assert topics.states["t1"].progress.owned == {0}
    assert "t3" not in topics.states
