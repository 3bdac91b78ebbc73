"""Partitions that cannot be read on: said every time, nothing behind it taken, no neighbour's record missed."""

import itertools

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.cimpl import Message
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.adapters.ingest.fetch import FetchSession, SilentError, UnreadableError
from kgs_core.adapters.ingest.fetch_client import trouble_of
from kgs_core.adapters.kafka.client_config import reading_client
from kgs_core.consumer.round.stops import StopCause
from kgs_core.model import OffsetRange, TopicPartition

FETCH = 1  # number of the request
NUMBER = itertools.count()
CRC = KafkaError(KafkaError._BAD_MSG, "MessageSet at offset 2 failed CRC32C check")


@pytest.fixture
def session(kafka):
    session = FetchSession(reading_client(kafka.settings()))
    yield session
    session.close()


@pytest.fixture
def topic(kafka):
    """A topic whose two partitions hold offsets 0 to 4."""
    name = f"trouble-{next(NUMBER)}"
    kafka.topic(name, 2)
    for partition, _ in itertools.product((0, 1), range(5)):
        kafka.produce(name, b"x", partition=partition)
    kafka.flush()
    return name


def gathered(session, start):
    """What one round brings; a new client needs a moment."""
    for _ in range(5):
        fetched = session.gather(start, 1000, 0.3, 3.0)
        if fetched.troubles or fetched.ranges:
            return fetched
    raise AssertionError("nothing came")


def test_offset_that_is_not_there_is_reported_every_time_that_it_is_asked_for(session, topic):
    good, bad = TopicPartition(topic, 0), TopicPartition(topic, 1)
    at = 0
    for _ in range(3):
        fetched = gathered(session, {good: at, bad: 40})
        assert fetched.troubles[bad][0] is StopCause.OUT_OF_RANGE
        assert bad not in fetched.ranges
        at = fetched.ranges[good].end if good in fetched.ranges else at
    while at < 5:
        at = gathered(session, {good: at}).ranges[good].end


def test_lost_partition_is_read_once_its_offset_is_there(session, topic, kafka):
    tp = TopicPartition(topic, 0)
    assert tp in gathered(session, {tp: 6}).troubles
    for _ in range(3):
        kafka.produce(topic, b"new")
    kafka.flush()
    assert gathered(session, {tp: 6}).ranges[tp].start == 6


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        ("TOPIC_AUTHORIZATION_FAILED", StopCause.DENIED),
        ("MSG_SIZE_TOO_LARGE", StopCause.DENIED),
        ("UNSUPPORTED_COMPRESSION_TYPE", StopCause.DENIED),
        ("INVALID_MSG", StopCause.CORRUPT),
    ],
)
def test_refusal_is_reported_every_time_and_ends_when_its_cause_ends(session, topic, kafka, error, trouble):
    tp = TopicPartition(topic, 0)
    for _ in range(2):
        kafka.fail(FETCH, *[getattr(KafkaError, error)] * 100)
        found, words = gathered(session, {tp: 0}).troubles[tp]
        kafka.stop_failing(FETCH)
        assert found is trouble
        assert words
    assert gathered(session, {tp: 0}).ranges[tp].start == 0


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        ("_AUTO_OFFSET_RESET", StopCause.OUT_OF_RANGE),
        ("_LOG_TRUNCATION", StopCause.OUT_OF_RANGE),
        ("_BAD_MSG", StopCause.CORRUPT),
        ("_BAD_COMPRESSION", StopCause.CORRUPT),
        ("_NOT_IMPLEMENTED", StopCause.CORRUPT),
        ("_TRANSPORT", None),
        ("_PARTITION_EOF", None),
        ("LEADER_NOT_AVAILABLE", None),
        ("UNKNOWN_TOPIC_OR_PART", None),
    ],
)
def test_what_an_error_means(error, trouble):
    assert trouble_of(KafkaError(getattr(KafkaError, error))) is trouble


def test_log_that_was_truncated_and_has_grown_again_is_lost_if_the_epoch_is_known(session, kafka):
    """Read to 10 in the first epoch, of which the log now has 5; the rest belongs to the next."""
    topic = f"truncated-{next(NUMBER)}"
    kafka.topic(topic)
    for records in (5, 15):
        for _ in range(records):
            kafka.produce(topic, b"x")
        kafka.flush()
        kafka.new_epoch(topic)
    tp = TopicPartition(topic, 0)
    (first, *_, last) = gathered(session, {tp: 0}).topics[topic].epochs.tolist()
    assert first < last
    session.epochs = {tp: first}
    trouble, words = gathered(session, {tp: 10}).troubles[tp]
    assert trouble is StopCause.OUT_OF_RANGE
    assert "truncat" in words
    assert gathered(session, {tp: 5}).ranges[tp].start == 5  # where the epoch ends, nothing is missing
    session.epochs = {tp: last}
    assert gathered(session, {tp: 10}).ranges[tp].start == 10


class Client:
    """librdkafka's side of it: after `assign`, what each log has from its offset on, in this order of partitions.

    A log is a list of offsets and errors; an error that has been told is passed over, as librdkafka does.
    """

    def __init__(self, logs, turns=()):
        self.logs = logs
        self.turns = turns
        self.waiting = []

    def assign(self, positions):
        queues = {p.partition: self.events(p.partition, p.offset) for p in positions}
        order = [p for p in self.turns if p in queues] + [p for p in queues for _ in queues[p]]
        self.waiting = [queues[p].pop(0) for p in order if queues[p]]

    def incremental_assign(self, positions):
        waiting = self.waiting
        self.assign(positions)
        self.waiting = waiting + self.waiting

    def incremental_unassign(self, positions):
        gone = {p.partition for p in positions}
        self.waiting = [event for event in self.waiting if event.partition() not in gone]

    def events(self, partition, start):
        found, at = [], 0
        for entry in self.logs[partition]:
            if isinstance(entry, KafkaError):
                found.append(Message(topic="t", partition=partition, offset=at, error=entry))
            elif entry >= start:
                found.append(Message(topic="t", partition=partition, offset=entry, value=b"x"))
            at = entry + 1 if isinstance(entry, int) else at
        return found

    def list_topics(self, *_, **__):
        pass

    def consume(self, count, _):
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        return taken


def places(fetched):
    """Partition and offset of each record."""
    return fetched.of("t").places(range(len(fetched.of("t"))))


def scripted(logs, turns=()):
    session = object.__new__(FetchSession)
    session.__dict__ |= {
        "_next": {},
        "_gathering_since": None,
        "_record_bytes": 1.0,
        "_are_small_waiting": False,
        "_passed_bytes": 0,
        "_waited_s": 0.0,
    }
    session._consumer = session._client = Client(logs, turns)
    session._drop_held()
    return session


def test_nothing_behind_a_batch_that_fails_its_check_is_taken():
    session = scripted({0: [0, 1, CRC, 7, 8], 1: [0, 1, 2, 3]})
    broken, well = TopicPartition("t", 0), TopicPartition("t", 1)
    fetched = session.gather({broken: 0, well: 0}, 1000, 0.0, 1.0)
    assert fetched.ranges == {broken: OffsetRange(0, 2), well: OffsetRange(0, 4)}
    assert places(fetched) == [(0, 0), (0, 1), *((1, n) for n in range(4))]
    assert fetched.troubles == {broken: (StopCause.CORRUPT, CRC.str())}
    again = session.gather({broken: 2, well: 4}, 1000, 0.0, 0.01)
    assert again.troubles == {broken: (StopCause.CORRUPT, CRC.str())}
    assert again.ranges == {}


def test_an_offset_that_is_given_twice_is_taken_once():
    tp, every = TopicPartition("t", 0), [0, 1, 0, 1, 2]
    twice = lambda *_: [Message(topic="t", partition=0, offset=n, value=b"x") for n in every]  # noqa: E731
    for exact in (False, True):
        session = scripted({0: []})
        session._client.events = twice
        if exact:
            (chunk,) = session.read_exact({tp: OffsetRange(0, 3)}, 1.0)
            assert [m.offset() for m in chunk] == [0, 1, 2]
        else:
            assert places(session.gather({tp: 0}, 1000, 0.0, 1.0)) == [(0, 0), (0, 1), (0, 2)]


def test_exact_ranges_name_the_partition_and_miss_nothing_of_the_others_afterwards():
    session = scripted({0: [CRC, 7], 1: [0, 1]}, turns=(0, 1, 1))
    broken, well = TopicPartition("t", 0), TopicPartition("t", 1)
    with pytest.raises(UnreadableError) as raised:
        list(session.read_exact({broken: OffsetRange(0, 8), well: OffsetRange(0, 0)}, 1.0))
    assert (raised.value.tp, raised.value.trouble) == (broken, StopCause.CORRUPT)
    (chunk,) = session.read_exact({well: OffsetRange(0, 2)}, 1.0)
    assert [m.offset() for m in chunk] == [0, 1]


def test_exact_range_of_which_nothing_comes_names_the_partitions_that_are_silent():
    session = scripted({0: [0], 1: [0, 1]})
    silent, well = TopicPartition("t", 0), TopicPartition("t", 1)
    with pytest.raises(SilentError, match="t:0: 1 to 7") as raised:
        list(session.read_exact({silent: OffsetRange(0, 8), well: OffsetRange(0, 2)}, 0.01))
    assert raised.value.tps == (silent,)


LOG = st.lists(st.integers(1, 3), max_size=6).map(lambda steps: list(itertools.accumulate(steps)))
LOGS = st.fixed_dictionaries(
    {p: st.tuples(LOG, st.none() | st.integers(0, 6)).map(lambda it: with_error(*it)) for p in range(3)}
)


def with_error(log, at):
    return log if at is None else [*log[:at], CRC, *log[at:]]


@given(LOGS, st.lists(st.integers(0, 2), max_size=20), st.integers(1, 6), st.booleans())
def test_every_record_before_a_trouble_is_taken_once_and_none_behind_it(logs, turns, batch_bytes, exact):
    """A driver that stops whatever is in trouble, as far as the others can be read."""
    session = scripted(logs, turns)
    position = {TopicPartition("t", p): 0 for p in logs}
    rows = {tp: [] for tp in position}
    stopped = set()
    for _ in range(40):
        start = {tp: at for tp, at in position.items() if tp not in stopped}
        troubles = read_exact(session, logs, start, rows, position) if exact else {}
        if not exact:
            fetched = session.gather(start, batch_bytes, 0.0, 0.0)
            troubles = fetched.troubles
            for partition, offset in places(fetched):
                rows[TopicPartition("t", partition)].append(offset)
            position |= {tp: r.end for tp, r in fetched.ranges.items()}
        stopped |= troubles.keys()
    for tp, found in rows.items():
        log = logs[tp.partition]
        wanted = list(itertools.takewhile(lambda entry: entry is not CRC, log))
        assert found == wanted[: len(found)]
        if exact and CRC in log:  # a range with the trouble in it is given up whole
            continue
        assert found == wanted


def read_exact(session, logs, start, rows, position):
    ends = {tp: max((o + 1 for o in logs[tp.partition] if o is not CRC), default=0) for tp in start}
    taken = []
    try:
        for chunk in session.read_exact({tp: OffsetRange(at, max(at, ends[tp])) for tp, at in start.items()}, 0.1, 1):
            taken += chunk
    except UnreadableError as e:
        return {e.tp: e}
    for message in taken:
        rows[TopicPartition("t", message.partition())].append(message.offset())
    position |= {tp: max(at, ends[tp]) for tp, at in start.items()}
    return {}
