"""Both ways to fetch from a real broker: what only a real log has."""

import time

from confluent_kafka import Producer

from kgs_core.ingest.fetch.session import NativeFetchSession
from kgs_core.kafka.client_config import reading_client
from kgs_core.model import TopicPartition
from tests.object_fetch import ObjectFetchSession
from tests.system.small_sink import send, settings_for, transactional
from tests.waiting import wait_until

KINDS = (NativeFetchSession, ObjectFetchSession)


def read_to(kind, config, tp, end, batch_bytes=1 << 20):
    """Offsets and values of a partition from 0 to an end that its ranges reach, and the offset reached."""
    session, at, rows = kind(config), 0, []
    try:
        deadline = time.monotonic() + 30
        while at < end:
            assert time.monotonic() < deadline, f"at {at} of {end}"
            fetched = session.gather({tp: at}, batch_bytes, 0.2, 2.0)
            found = fetched.of(tp.topic)
            rows += zip(found.origin["_offset"].to_pylist(), found.values.to_pylist(), strict=True)
            at = fetched.ranges[tp].end if tp in fetched.ranges else at
    finally:
        session.close()
    return rows, at


def test_markers_and_aborted_records_are_passed_over_and_counted_alike(kafka, admin, topic_prefix, tmp_path):
    """Offsets: 0, 1 committed, 2 marker; 3 aborted, 4 marker; 5 plain; 6 committed, 7 marker at the end."""
    name = f"{topic_prefix}transactions"
    admin.create_topic(name, 1)
    tp = TopicPartition(name, 0)
    producer = transactional(kafka, name)
    for values, commits in (((b"a", b"b"), True), ((b"gone",), False)):
        producer.begin_transaction()
        for value in values:
            producer.produce(name, value, partition=0)
        producer.flush(30)
        (producer.commit_transaction if commits else producer.abort_transaction)(30)
    wait_until(lambda: admin.offsets([tp], "latest") == {tp: 5}, 20, "the marker, which follows Kafka's answer")
    send(kafka, name, b"plain")
    producer.begin_transaction()
    producer.produce(name, b"last", partition=0)
    producer.commit_transaction(30)
    config = reading_client(settings_for(kafka, tmp_path, topic_prefix))
    found = [read_to(kind, config, tp, 8) for kind in KINDS]
    assert found[0] == ([(0, b"a"), (1, b"b"), (5, b"plain"), (6, b"last")], 8)
    assert found[0] == found[1]


def test_what_compaction_has_taken_out_leaves_no_hole_to_wait_for(kafka, admin, topic_prefix, tmp_path):
    name = f"{topic_prefix}compacted"
    policy = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
    admin.create_topic(name, 1, 1, {**policy, "max.compaction.lag.ms": "100"})
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0})
    tp, config = TopicPartition(name, 0), reading_client(settings_for(kafka, tmp_path, topic_prefix))
    deadline, written = time.monotonic() + 90, 0
    while time.monotonic() < deadline:
        for _ in range(5):
            producer.produce(name, b"%d" % written, b"key", partition=0)
            assert producer.flush(30) == 0
            written += 1
        rows, _ = read_to(ObjectFetchSession, config, tp, written)
        if len(rows) < written:
            break
        time.sleep(0.5)
    assert len(rows) < written, "the broker has compacted nothing"
    native, _ = read_to(NativeFetchSession, config, tp, written)
    assert native[-1] == rows[-1] == (written - 1, b"%d" % (written - 1))
    assert len(native) < written
