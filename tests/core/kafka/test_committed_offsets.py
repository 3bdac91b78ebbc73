"""The group's offsets: what Kafka does not say is not "nothing", and what was set back is set right again."""

from threading import Event
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from kgs_core.errors import PermanentError, TransientError
from kgs_core.kafka import committed_offsets
from kgs_core.kafka.committed_offsets import GroupOffsets
from kgs_core.lake.rule.first_start import BEGINS_ANEW, GroupOffset
from kgs_core.model import TopicId, TopicPartition
from tests.waiting import wait_until

ID = TopicId("id")
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class FakeConsumer:
    """The group's coordinator, with errors on demand."""

    def __init__(self, _: object) -> None:
        self.stored: dict[tuple[str, int], int] = {}
        self.marks: dict[tuple[str, int], str] = {}
        self.errors: dict[tuple[str, int], KafkaError] = {}
        self.failure: KafkaError | None = None
        self.is_passing = False  # the failure is of the next question alone
        self.is_idle, self.is_closed = Event(), False
        self.is_idle.set()

    def committed(self, wanted, timeout):
        assert timeout > 0
        if self.failure is not None:
            failure, self.failure = self.failure, None if self.is_passing else self.failure
            raise KafkaException(failure)
        keys = [(p.topic, p.partition) for p in wanted]
        return [
            SimpleNamespace(
                topic=t,
                partition=p,
                offset=self.stored.get((t, p), -1001),
                error=self.errors.get((t, p)),
                metadata=self.marks.get((t, p)),
            )
            for t, p in keys
        ]

    def commit(self, offsets, asynchronous):
        assert not asynchronous
        self.is_idle.wait()
        self.stored |= {(p.topic, p.partition): p.offset for p in offsets}
        self.marks |= {(p.topic, p.partition): p.metadata for p in offsets}

    def close(self) -> None:
        assert self.is_idle.is_set(), "librdkafka's close would never return"
        self.is_closed = True


@pytest.fixture
def offsets(monkeypatch):
    monkeypatch.setattr(committed_offsets, "Consumer", FakeConsumer)
    monkeypatch.setattr(committed_offsets, "INTERVAL_S", 3600.0)  # steps are made by the test
    monkeypatch.setattr(committed_offsets, "TIMEOUT_S", 1.0)
    offsets = GroupOffsets({"bootstrap.servers": "b:9092"}, "g")
    yield offsets
    offsets.close()


def test_the_end_does_not_wait_for_a_commit_without_an_answer(offsets, monkeypatch):
    monkeypatch.setattr(committed_offsets, "TIMEOUT_S", 0.05)
    client = offsets._made.get()
    client.is_idle.clear()
    offsets.report(ID, "t", {A: 100})
    offsets.close()
    assert not client.is_closed
    client.is_idle.set()
    wait_until(lambda: client.is_closed, 5, "the client is closed once it has its answer")


def test_a_coordinator_that_has_not_loaded_the_group_yet_is_asked_again(offsets):
    """A new group's first question: whoever asks but once (a command, a benchmark) ended with it."""
    client = offsets._made.get()
    client.stored["t", 0], client.failure, client.is_passing = 7, KafkaError(KafkaError.NOT_COORDINATOR), True
    assert offsets.committed([A]) == {A: GroupOffset(7)}


def test_partition_without_a_commit_is_absent(offsets):
    offsets._made.get().stored["t", 0] = 7
    assert offsets.committed([A, B]) == {A: GroupOffset(7)}


@pytest.mark.parametrize(
    ("code", "kind"),
    [(KafkaError.NOT_COORDINATOR, TransientError), (KafkaError.TOPIC_AUTHORIZATION_FAILED, PermanentError)],
)
def test_an_error_of_one_partition_is_not_nothing_committed(offsets, code, kind):
    """`start: committed` would begin at the earliest offset, for good."""
    offsets._made.get().stored["t", 0] = 7
    offsets._made.get().errors["t", 1] = KafkaError(code)
    with pytest.raises(kind, match="offsets that group g has committed for t:1"):
        offsets.committed([A, B])


def test_a_coordinator_that_does_not_answer_is_passing_trouble(offsets):
    offsets._made.get().failure = KafkaError(KafkaError._TIMED_OUT)
    with pytest.raises(TransientError, match="Kafka b:9092: offsets that group g has committed"):
        offsets.committed([A])


def test_what_a_stopped_process_set_back_is_sent_again(offsets):
    offsets.report(ID, "t", {A: 100, B: 50})
    offsets._send()
    offsets._made.get().stored["t", 0] = 30  # between its look and its commit it was stopped; ours came in between
    offsets._send()
    assert offsets._made.get().stored["t", 0] == 30  # nothing new to send
    offsets._look()
    offsets._send()
    assert offsets._made.get().stored == {("t", 0): 100, ("t", 1): 50}


def test_what_a_successor_sent_is_not_set_back(offsets):
    offsets.report(ID, "t", {A: 100})
    offsets._made.get().stored["t", 0], offsets._made.get().marks["t", 0] = 200, f"kgs:{ID}:t"
    offsets._send()
    offsets._look()
    offsets._send()
    assert offsets._made.get().stored["t", 0] == 200


@pytest.mark.parametrize("theirs", ["", "kgs:another:t", "kgs:id:another"])
def test_a_higher_offset_of_another_topic_id_or_tool_does_not_count(offsets, theirs):
    offsets._made.get().stored["t", 0], offsets._made.get().marks["t", 0] = 200, theirs
    offsets.report(ID, "t", {A: 100})
    offsets._send()
    assert offsets.committed([A]) == {A: GroupOffset(100, ID, "t")}


@pytest.mark.parametrize("looks_first", [False, True])
def test_what_begins_anew_stays_so_until_the_new_table_has_a_position(offsets, looks_first):
    """Consumers that wait for the table that is gone go on committing its positions."""
    offsets.report(ID, "t", {A: 100, B: 50})
    offsets._send()
    offsets.begin_anew({A: 3, TopicPartition("t", 2): 3})
    anew = {
        A: GroupOffset(100, BEGINS_ANEW),
        B: GroupOffset(50, ID, "t"),
        TopicPartition("t", 2): GroupOffset(3, BEGINS_ANEW),
    }
    if looks_first:
        offsets._look()
        offsets._sent = {}  # now and then all is sent again
    offsets._send()
    assert offsets.committed(anew) == anew
    offsets.report(ID, "t", {A: 4})
    offsets._send()
    assert offsets.committed([A]) == {A: GroupOffset(4, ID, "t")}


def test_what_a_successor_with_another_table_sent_stays(offsets):
    """After `kgs replace` with another table in the rule, the new one is behind the old one for a while."""
    offsets.report(ID, "t", {A: 100})
    offsets._send()
    offsets._made.get().stored["t", 0], offsets._made.get().marks["t", 0] = 7, f"kgs:{ID}:t_v2"
    offsets._look()
    offsets._send()
    assert offsets.committed([A]) == {A: GroupOffset(7, ID, "t_v2")}


def test_trouble_is_counted_and_sent_later(offsets):
    offsets.report(ID, "t", {A: 100})
    offsets._made.get().failure = KafkaError(KafkaError._TIMED_OUT)
    offsets._try(offsets._send)
    assert (offsets.failures, offsets._made.get().stored) == (1, {})
    offsets._made.get().failure = None
    offsets._try(offsets._send)
    assert offsets._made.get().stored["t", 0] == 100


@pytest.mark.parametrize(
    ("code", "said", "unsaid"),
    [
        (KafkaError._TRANSPORT, "check that the brokers are up", "used elsewhere"),
        (KafkaError.COORDINATOR_NOT_AVAILABLE, "tried again", "used elsewhere"),
        (KafkaError.UNKNOWN_MEMBER_ID, "is group.id g used elsewhere?", "tried again"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "grant this user the right", "used elsewhere"),
    ],
)
def test_the_cause_is_named_and_no_other(offsets, caplog, code, said, unsaid):
    offsets.report(ID, "t", {A: 7})
    offsets._made.get().failure = KafkaError(code)
    offsets._try(offsets._send)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("group offsets not committed: Kafka b:9092: ")
    assert said in line
    assert unsaid not in line
