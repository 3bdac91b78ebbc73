"""A byte that has changed on a broker's disk. Only a real broker serves a segment as it lies there, unchecked."""

import os

import pytest
from confluent_kafka import Producer

from kgs_core.ingest.fetch import fetch_sessions
from kgs_core.ingest.fetch.fetch_client import UnreadableError
from kgs_core.ingest.fetch.session import NativeFetchSession
from kgs_core.ingest.fetch.topic_records import NO_EPOCH
from kgs_core.ingest.round.questions import ReadResult
from kgs_core.ingest.round.stops import StopCause
from kgs_core.ingest.worker.arrow_task import ArrowRequest, TaskContext, read_round
from kgs_core.kafka.client_config import reading_client
from kgs_core.lake.files.storage import Storage
from kgs_core.model import OffsetRange, TopicPartition
from tests.system.small_sink import settings_for
from tests.topic_jobs import topic_job

BATCHES = [b"first" * 10, b"second" * 10, b"third" * 10]
IN_EACH = 4
CORRUPT_AT = IN_EACH  # the second batch
LINGER_MS = 60_000  # until then, or until it is flushed, a producer puts all into one batch


@pytest.fixture(params=["none", "gzip"])
def topic(request, kafka, admin, topic_prefix):
    """Two partitions of three batches each; a byte of the second batch of partition 0 is not what it was."""
    name = f"{topic_prefix}corrupt"
    admin.create_topic(name, 2)
    for value in BATCHES:
        producer = Producer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "compression.type": request.param,
                "linger.ms": LINGER_MS,
                "enable.idempotence": True,  # a batch that is sent again on a busy machine stands there once
            }
        )
        for partition in (0, 1):
            for _ in range(IN_EACH):
                producer.produce(name, value, partition=partition)
        assert producer.flush(30) == 0
    (segment,) = (kafka.nodes[0].data / f"{name}-0").glob("*.log")
    content = bytearray(segment.read_bytes())
    (_, second, _) = batch_starts(content)
    at = second + 70  # behind the header of 61 bytes
    with segment.open("r+b") as file:
        file.seek(at)
        file.write(bytes([content[at] ^ 1]))
    return name


def batch_starts(log):
    """Where each batch begins: 8 bytes of offset, 4 of the length of what follows."""
    starts, at = [], 0
    while at < len(log):
        starts.append(at)
        at += 12 + int.from_bytes(log[at + 8 : at + 12], "big")
    return starts


@pytest.fixture
def context(kafka, tmp_path, topic_prefix):
    config = reading_client(settings_for(kafka, tmp_path, topic_prefix))
    yield TaskContext(config, Storage(str(tmp_path)), None)
    fetch_sessions.close_sessions()


def test_batch_that_fails_its_check_stops_its_partition_there(topic, context, admin):
    broken, well = TopicPartition(topic, 0), TopicPartition(topic, 1)
    os.mkdir(context.storage.path(topic))
    job = topic_job({"topic": topic}, topic_id=admin.topic_ids([topic])[topic])
    position, found = {broken: 0, well: 0}, ReadResult()
    for _ in range(10):  # as long as it takes to begin, and then again and again with the partition that is broken
        result = read_round(ArrowRequest(context, {topic: job}, position, 1 << 20, 0.2, 2.0))
        for batch in result.batches:
            position |= {TopicPartition(topic, p): r.end for p, r in batch.ranges.items()}
        found.troubles |= result.troubles
        assert result.troubles or not found.troubles, "it was said once only"
    assert position == {broken: CORRUPT_AT, well: IN_EACH * len(BATCHES)}
    ((tp, (cause, words)),) = found.troubles.items()
    assert (tp, cause) == (broken, StopCause.CORRUPT)
    assert f"offset {CORRUPT_AT} " in words
    assert "CRC" in words


def test_exact_range_over_a_batch_that_fails_its_check_names_the_partition(topic, context):
    client = NativeFetchSession(context.client)
    broken, well = TopicPartition(topic, 0), TopicPartition(topic, 1)
    whole = OffsetRange(0, IN_EACH * len(BATCHES))
    with pytest.raises(UnreadableError) as raised:
        list(client.read_exact({broken: whole, well: whole}, 10.0))
    assert {tp: cause for tp, (cause, _) in raised.value.troubles.items()} == {broken: StopCause.CORRUPT}
    rows = [row for each in client.read_exact({well: whole}, 10.0) for row in each.of(topic).values.to_pylist()]
    assert rows == [value for value in BATCHES for _ in range(IN_EACH)]
    client.close()


def test_known_epochs_are_no_trouble_where_the_log_is_what_it_was(kafka, admin, topic_prefix, context):
    """The mock cluster's epochs are as one thinks them to be; a real broker's must not stop anybody either."""
    name = f"{topic_prefix}epochs"
    admin.create_topic(name, 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for _ in range(IN_EACH):
        producer.produce(name, b"x", partition=0)
    assert producer.flush(30) == 0
    tp, client = TopicPartition(name, 0), NativeFetchSession(context.client)
    (fetched,) = client.read_exact({tp: OffsetRange(0, IN_EACH)}, 10.0)
    epoch = int(fetched.of(name).epochs[-1])
    assert epoch != NO_EPOCH
    client.epochs = {tp: epoch}
    for start in (1, IN_EACH - 1):
        (fetched,) = client.read_exact({tp: OffsetRange(start, IN_EACH)}, 10.0)
        assert fetched.of(name).offsets.tolist() == list(range(start, IN_EACH))
    assert list(client.read_exact({tp: OffsetRange(IN_EACH, IN_EACH)}, 10.0)) == []
    client.close()
