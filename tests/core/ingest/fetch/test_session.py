"""The native fetch against the one with Python objects: the same log, the same result; and whose the messages are."""

import itertools
import random
import time

import numpy as np
import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as KafkaPosition

from kgs_core.ingest.fetch.session import address_of
from kgs_core.model import OffsetRange, TopicPartition
from tests.object_fetch import ObjectFetchSession

FETCH = 1  # number of the request


def gathered(session, start, batch_bytes=1 << 20):
    """What one round brings; a new client needs a moment."""
    for _ in range(5):
        fetched = session.gather(start, batch_bytes, 0.5, 3.0)
        if fetched.troubles or fetched.ranges:
            return fetched
    raise AssertionError("nothing came")


def read_all(session, start, ends, batch_bytes=1 << 20):
    """Rounds until all partitions are read; every record by its place, and the rounds' sizes."""
    rows, rounds, at = {}, [], dict(start)
    while any(at[tp] < end for tp, end in ends.items()):
        fetched = gathered(session, at, batch_bytes)
        assert fetched.records == sum(len(found) for found in fetched.topics.values())
        assert fetched.consumed_bytes == sum(found.consumed_bytes for found in fetched.topics.values())
        for name, found in fetched.topics.items():
            found.origin.validate(full=True)
            found.values.validate(full=True)
            facts = zip(found.values.to_pylist(), found.origin.to_pylist(), found.epochs.tolist(), strict=True)
            for i, (value, origin, epoch) in enumerate(facts):
                place = (name, origin.pop("_partition"), origin.pop("_offset"))
                assert place not in rows
                rows[place] = (value, *origin.values(), epoch, found.faults.get(i))
        for tp, span in fetched.ranges.items():
            assert span.start == at[tp]
            at[tp] = span.end
        rounds.append(fetched)
    return rows, rounds


def produce_all_sorts(kafka, name, partition, codec, seed):
    """Records with all that one may have or lack."""
    source = random.Random(seed)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "compression.type": codec, "linger.ms": 50})
    for i in range(400):
        value = source.choice([None, b"", b"x", source.randbytes(source.randrange(2000)), b"\xff\0" * 50])
        key = source.choice([None, None, b"", b"k", source.randbytes(20), f"schlüssel {i}".encode()])
        more = source.choice(
            [
                None,
                [],
                [("a", b"1")],
                [("a", None), ("a", b""), ("", b"x"), ("größe", source.randbytes(100)), ("text", "ß")],
            ]
        )
        producer.produce(name, value, key, partition, timestamp=source.choice([0, 1_700_000_000_000 + i]), headers=more)
    assert producer.flush(10) == 0


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_record_is_what_the_objects_say(kafka, opened, topic, codec):
    names = [topic(2), topic(1)]
    start = {TopicPartition(names[0], 0): 0, TopicPartition(names[0], 1): 0, TopicPartition(names[1], 0): 0}
    for seed, tp in enumerate(start):
        produce_all_sorts(kafka, tp.topic, tp.partition, codec, seed)
    ends = dict.fromkeys(start, 400)
    native, _ = read_all(opened(), start, ends)
    objects, _ = read_all(opened(ObjectFetchSession), start, ends)
    assert len(native) == 1200
    assert native == objects


@pytest.mark.parametrize("what", [{"header": (b"caf\xe9", b"v")}, {"ms": 1_700_000_000_000_000_000}, {"ms": -1}])
def test_frame_that_no_column_takes_is_told_alike(kafka, opened, topic, what):
    name = topic()
    for more in ({}, what, {"header": (b"key", b"v")}, what, {}):
        kafka.produce(name, b"v", **more)
    kafka.flush()
    start = {TopicPartition(name, 0): 0}
    ends = {TopicPartition(name, 0): 5}
    native, _ = read_all(opened(), start, ends)
    assert native == read_all(opened(ObjectFetchSession), start, ends)[0]
    assert len(native) == 5


@pytest.mark.parametrize("batch_bytes", [1, 100, 101, 1000, 10**6])
def test_one_partition_is_cut_into_the_same_batches(kafka, opened, topic, batch_bytes):
    name = topic()
    for size in (10, 100, 1, 50, 50, 51, 300, 0, 99, 2, 500):
        kafka.produce(name, b"x" * size)
    kafka.flush()
    start, ends = {TopicPartition(name, 0): 0}, {TopicPartition(name, 0): 11}
    native = [r.ranges for r in read_all(opened(), start, ends, batch_bytes)[1]]
    assert native == [r.ranges for r in read_all(opened(ObjectFetchSession), start, ends, batch_bytes)[1]]


def test_event_of_a_partition_that_is_not_ours_is_nobodys(kafka, opened, topic):
    """As it comes out of the queue when partitions change hands between librdkafka and us."""
    names = [topic(), topic()]
    for name in names:
        kafka.produce(name, b"x")
    kafka.flush()
    ours, theirs = (TopicPartition(name, 0) for name in names)
    session = opened()
    session.gather({ours: 0}, 1 << 20, 3.0, 0.0)
    session._client.assign([KafkaPosition(tp.topic, tp.partition, 0) for tp in (ours, theirs)])
    fetched = gathered(session, {ours: 0})
    assert set(fetched.topics) == {ours.topic}
    assert fetched.ranges == {ours: OffsetRange(0, 1)}


def test_every_message_is_freed_once(kafka, opened, topic, monkeypatch):
    """Taken, passed over, held over into the next batch, dropped with an assignment, dropped at the end."""
    name = topic(2)
    for partition, _ in itertools.product((0, 1), range(40)):
        kafka.produce(name, b"x" * 10, partition=partition)
    kafka.flush()
    session = opened()
    came, freed = [], []
    counted = {"fill": (session._loops["fill"], 1, 2), "free": (session._loops["free"], 1, 2)}
    loops = dict(session._loops)

    def counting(name, first, end):
        def call(messages, *rest):
            held = np.frombuffer(session._messages, np.int64)
            assert messages == address_of(session._messages)
            freed.extend(held[rest[first - 1] : rest[end - 1]].tolist())
            return counted[name][0](messages, *rest)

        return call

    loops |= {name: counting(name, first, end) for name, (_, first, end) in counted.items()}
    session._loops = loops
    consume = session._client.consume

    def consumed(count, timeout_s, into):
        found = consume(count, timeout_s, into)
        place = (into - address_of(session._messages)) // 8
        came.extend(session._messages[place : place + found].tolist())
        return found

    monkeypatch.setattr(session._client, "consume", consumed)
    at = {TopicPartition(name, 0): 0, TopicPartition(name, 1): 60}
    for _ in range(3):
        fetched = gathered(session, at, batch_bytes=95)
        at |= {tp: span.end for tp, span in fetched.ranges.items()}
        at = {tp: o for tp, o in at.items() if tp not in fetched.troubles} or at
    gathered(session, {TopicPartition(name, 1): 3}, batch_bytes=95)
    session.close()
    assert len(came) > 20
    assert sorted(freed) == sorted(came)


def test_partition_that_is_taken_over_is_not_waited_for_as_long_as_others(kafka, opened, topic):
    """Each has been unread since another consumer's last batch; afterwards a batch takes its whole time again."""
    name = topic(2)
    first, second = (TopicPartition(name, partition) for partition in (0, 1))
    for partition, _ in itertools.product((0, 1), range(20)):
        kafka.produce(name, b"x", partition=partition)
    kafka.flush()
    session, at, wait_s = opened(), {first: 0}, 5.0
    waited_s = []
    for taken in (first, second, None):
        if taken is not None:
            at |= {taken: 0}
        else:
            kafka.produce(name, b"x", partition=0)
            kafka.flush()
        began = time.monotonic()
        while not (fetched := session.gather(at, 1 << 20, wait_s, 0.1)).ranges:
            pass
        waited_s.append(time.monotonic() - began)
        at |= {tp: span.end for tp, span in fetched.ranges.items()}
    assert max(waited_s[:2]) < wait_s / 2 < waited_s[2]
    assert at == {first: 21, second: 20}


def test_memory_stays_where_it_was(kafka, opened, topic):
    """Some hundred megabytes through one session."""
    name = topic()
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "compression.type": "lz4"})
    for _ in range(20_000):
        producer.produce(name, b"x" * 1000, b"key", headers=[("a", b"b" * 100)])
        producer.poll(0)
    assert producer.flush(30) == 0
    session, process = opened(), psutil.Process()
    start, ends = {TopicPartition(name, 0): 0}, {TopicPartition(name, 0): 20_000}
    before = 0
    for turn in range(12):
        at = dict(start)
        while at != ends:
            at |= {tp: r.end for tp, r in gathered(session, at, 2_000_000).ranges.items()}
        if turn == 3:
            before = process.memory_info().rss
    assert process.memory_info().rss < before + 40_000_000, "8 turns of 22 MB each"


def test_failure_in_the_middle_of_a_batch_loses_nothing(kafka, opened, topic, monkeypatch):
    name = topic()
    for i in range(10):
        kafka.produce(name, b"%d" % i)
    kafka.flush()
    tp, session = TopicPartition(name, 0), opened()
    with monkeypatch.context() as broken:
        broken.setattr("kgs_core.ingest.fetch.session.TopicColumns", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            gathered(session, {tp: 2})
    assert gathered(session, {tp: 2}).ranges == {tp: OffsetRange(2, 10)}
