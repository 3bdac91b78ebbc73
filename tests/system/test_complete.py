"""Complete until when, on a real broker: what is said at any moment, against all records that there are in the end.

Needs a broker: open and aborted transactions, ends of logs and times of records are its own.
"""

import random
from datetime import UTC, datetime

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ClientTopicPartition

from kgs_core.kafka.client_config import reading_client
from kgs_core.lake.topics.complete import CompleteView, versions_of
from kgs_core.model import TopicPartition
from tests.system.small_sink import BAD, GOOD, SmallSink, settings_for, transactional
from tests.topics import delete_records
from tests.waiting import wait_until

LATENESS_S = 2.0
PARTITIONS = 3


def now_ms():
    return int(datetime.now(UTC).timestamp() * 1000)  # noqa: TID251 - compared with the times of records


def settings_of(kafka, root, prefix):
    settings = settings_for(kafka, root, prefix)
    rule = settings.topics[0]
    hours = type(rule).model_fields["complete_hours"].annotation.__args__[0](since="2026-11-01", lateness_s=LATENESS_S)
    return settings.model_copy(update={"topics": (rule.model_copy(update={"complete_hours": hours}),)})


def every_record(settings, topic):
    """(partition, offset, timestamp) of every committed record."""
    consumer = Consumer(reading_client(settings))
    consumer.assign([ClientTopicPartition(topic, p, 0) for p in range(PARTITIONS)])
    found, open_ = [], set(range(PARTITIONS))
    while open_:
        message = consumer.poll(10)
        assert message is not None
        if message.error() is not None:
            open_.discard(message.partition())
        else:
            found.append((message.partition(), message.offset(), message.timestamp()[1]))
    consumer.close()
    return found


def in_table(sink, version):
    """(partition, offset) of rows."""
    table = sink.handle()
    table.load_as_version(version)
    rows = table.to_pyarrow_table(columns=["_partition", "_offset"])
    return set(zip(rows["_partition"].to_pylist(), rows["_offset"].to_pylist(), strict=True))


class Story:
    """A topic that is written, within transactions and without, read now and then, and asked about."""

    def __init__(self, kafka, admin, topic, sink, view):
        self.admin, self.topic, self.sink, self.view = admin, topic, sink, view
        self.plain = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        self.within, self.is_open = transactional(kafka, topic), False
        self.chance = random.Random(5)
        self.said = []

    def produce(self, producer=None):
        producer = producer or self.plain
        stamp = now_ms() - self.chance.randrange(int(LATENESS_S * 900))
        producer.produce(self.topic, GOOD, partition=self.chance.randrange(PARTITIONS), timestamp=stamp)
        assert producer.flush(10) == 0

    def transact(self):
        if not self.is_open:
            self.within.begin_transaction()
            self.produce(self.within)
        else:
            (self.within.commit_transaction if self.chance.random() < 0.7 else self.within.abort_transaction)(30)
        self.is_open = not self.is_open

    def read(self, batch_bytes=None):
        ends = self.admin.offsets(self.sink.tps, "latest", committed_reads=True)
        at = self.sink.table.positions(set(range(PARTITIONS))).next_offset
        if any(ends[tp] > at[tp.partition] for tp in self.sink.tps):
            self.sink.ingest(batch_bytes=batch_bytes or self.chance.choice([1, 1_000_000]))
            return True
        return False

    def read_all(self):
        """No transaction may be open; Kafka writes their markers when it has answered."""
        ends, tps = self.admin.offsets, self.sink.tps
        wait_until(lambda: ends(tps, "latest", committed_reads=True) == ends(tps, "latest"), 10, "no open transaction")
        while self.read(1_000_000):
            pass

    def ask(self):
        snapshot, [found] = self.view.look()
        if found.until_ms is not None:
            self.said.append((snapshot.tables[0].version, found.until_ms))
        return found


def test_no_record_that_was_said_to_be_there_is_missing(kafka, admin, topic_prefix, tmp_path):
    topic = f"{topic_prefix}a"
    admin.create_topic(topic, PARTITIONS)
    settings = settings_of(kafka, tmp_path / "lake", topic_prefix)
    with CompleteView(settings, asked_for=True) as view:
        story = Story(kafka, admin, topic, SmallSink(settings, topic), view)
        for _ in range(90):
            story.chance.choice([story.produce, story.transact, story.read, story.read, story.ask])()
        if story.is_open:
            story.transact()
        records = every_record(settings, topic)
        there = {version: in_table(story.sink, version) for version, _ in story.said}
        missing = [
            (until, record)
            for version, until in story.said
            for record in records
            if record[2] < until and record[:2] not in there[version]
        ]
        assert missing == []
        assert len({until for _, until in story.said}) > 5

        # Once all is read, the time is that of the question
        for tp in story.sink.tps:
            story.plain.produce(topic, GOOD, partition=tp.partition)
        assert story.plain.flush(10) == 0
        story.read_all()
        story.within.begin_transaction()
        written = now_ms() - 60_000
        story.within.produce(topic, GOOD, partition=1, timestamp=written)
        assert story.within.flush(10) == 0
        found = story.ask()
        assert (found.until_ms, found.held_by) == (written - LATENESS_S * 1000, TopicPartition(topic, 1)), "not visible"
        # A consumer may end between the last record of a transaction and its marker
        story.within.commit_transaction(30)
        story.read_all()
        ends = admin.offsets(story.sink.tps, "latest")
        view._lake._positions = lambda _: {p: ends[TopicPartition(topic, p)] - (p == 1) for p in range(PARTITIONS)}
        before = now_ms()
        found = story.ask()
        assert before <= found.until_ms + LATENESS_S * 1000 <= now_ms()
        assert found.held_by is None


def test_late_rows_are_those_of_complete_hours_and_records_deleted_unread_end_it(kafka, admin, topic_prefix, tmp_path):
    topic = f"{topic_prefix}b"
    admin.create_topic(topic, PARTITIONS)
    settings = settings_of(kafka, tmp_path / "lake", topic_prefix)
    sink = SmallSink(settings, topic)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    hour_ago = now_ms() - 3_600_000

    def send(partition, stamp, value=GOOD):
        producer.produce(topic, value, partition=partition, timestamp=stamp)
        assert producer.flush(10) == 0

    with CompleteView(settings) as view:
        send(0, hour_ago)
        sink.ingest()
        snapshot, [found] = view.look()
        [table] = snapshot.tables
        (name, before), until = versions_of([table]).popitem(), found.until_ms
        assert view.late_rows(name, before, until) == {}
        send(0, hour_ago + 1)
        send(1, hour_ago + 2)
        send(2, until + 60_000)
        send(2, hour_ago + 3, BAD)
        while sum(sink.table.positions(set(range(PARTITIONS))).next_offset.values()) < 5:
            sink.ingest()
        view.look()
        assert view.late_rows(name, before, until).total() == 2
        assert view.with_lateness([found])[0].learnt.rows == 4

        send(1, now_ms())
        delete_records(admin, {TopicPartition(topic, 1): 2})
        [found] = wait_until(lambda: [f for f in view.look()[1] if f.problem], 10, "records to be gone")
        assert f"{topic}:1: offsets 1 to 1 were deleted before they were read" in found.problem
        assert found.until_ms is None
