"""The audit against sinks on a real broker: the right one is clean, and what only brokers and tables tell is named.

Each way to be wrong, and how it is named: `core/lake/rule/test_audit.py`.
"""

import threading

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from kgs_core.errors import ConfigError
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.lake.audit.audit_kafka_log import LogReading
from kgs_core.lake.rule import Fault
from kgs_core.model import OffsetRange, TopicPartition
from kgs_core.ports import CommitOutcome
from tests.system.small_sink import BAD, GOOD, SmallSink, send, settings_for, transactional
from tests.topics import delete_records, delete_topic

FAULTS = (Fault.LOST, Fault.DOUBLED, Fault.AHEAD, Fault.FOREIGN, Fault.CHANGED, Fault.CONTRADICTION)


@pytest.fixture
def settings(kafka, tmp_path, topic_prefix):
    return settings_for(kafka, tmp_path / "lake", topic_prefix)


@pytest.fixture
def topic(admin, topic_prefix):
    name = f"{topic_prefix}a"
    admin.create_topic(name, 2)
    return name


@pytest.fixture
def sink(settings, topic):
    return SmallSink(settings, topic)


def audited(settings, *, with_log=True):
    """The only table."""
    [table] = audit_lake(settings, with_log=with_log).tables
    return table


def faults(table):
    return {fault.value: count for fault in FAULTS if (count := table.count(fault))}


def said(table):
    return [str(finding) for partition in table.partitions for finding in partition.findings]


def assert_clean(table):
    assert (said(table), table.ok) == ([], True)


def test_right_sink_is_clean_with_its_dead_letters(kafka, settings, topic, sink):
    send(kafka, topic, *[GOOD] * 5, BAD, GOOD, BAD)
    send(kafka, topic, *[GOOD] * 3, partition=1)
    for _ in range(3):
        sink.ingest()
        send(kafka, topic, GOOD, BAD)
    table = audited(settings)
    assert_clean(table)
    assert (table.rows, table.dead_letters) == (11, 4)
    assert [(p.stored.start, p.stored.position) for p in table.partitions] == [(0, 12), (0, 3)]
    assert_clean(audited(settings, with_log=False))


def test_many_files_checkpoints_and_compaction_are_clean(kafka, settings, topic, sink):
    send(kafka, topic, *[GOOD] * 40)
    for _ in range(40):
        sink.ingest(batch_bytes=1)
    sink.handle().optimize.compact()
    sink.handle().create_checkpoint()
    table = audited(settings)
    assert_clean(table)
    assert table.rows == 40


def test_table_is_clean_at_every_moment_of_its_filling(kafka, settings, topic, sink):
    """Rows, dead letters and positions are read of fitting versions, whatever is committed in between."""
    send(kafka, topic, *[GOOD, BAD] * 60)
    done = threading.Event()

    def fill():
        try:
            while sink.table.positions({0}).next_offset[0] < 120:
                sink.ingest(batch_bytes=len(GOOD + BAD))
        finally:
            done.set()

    filling = threading.Thread(target=fill)
    filling.start()
    seen = set()
    while not done.is_set():
        table = audited(settings)
        assert_clean(table)
        seen.add(table.rows)
    filling.join()
    assert audited(settings).rows == 60
    assert len(seen) > 3


class KilledError(Exception):
    pass


def test_killed_between_dead_letters_and_rows_is_clean(kafka, settings, topic, sink, monkeypatch):
    def die(name):
        raise KilledError(name)

    send(kafka, topic, GOOD, BAD, GOOD)
    monkeypatch.setattr("kgs_core.lake.topics.topic_table.failpoint", die)
    with pytest.raises(KilledError, match="after-dead-letter-commit"):
        sink.ingest()
    monkeypatch.undo()
    table = audited(settings)
    assert_clean(table)
    assert (table.rows, table.dead_letters) == (0, 1)
    sink.ingest()
    assert_clean(audited(settings))


def test_commit_without_compare_is_named(kafka, settings, topic, sink):
    send(kafka, topic, *[GOOD] * 7)
    first, second = sink.read(), SmallSink(settings, topic).read()
    sink.commit_blindly(first)
    sink.commit_blindly(second)
    table = audited(settings)
    assert faults(table) == {"doubled": 7}
    assert said(table) == ["doubled 7: 0-6 (rows)"]


def test_positions_first_is_named(kafka, settings, topic, sink):
    send(kafka, topic, *[GOOD] * 3)
    sink.ingest()
    send(kafka, topic, *[GOOD] * 4)
    sink.commit_positions_only(sink.read())
    send(kafka, topic, GOOD)
    sink.ingest()
    assert said(audited(settings)) == ["lost 4: 3-6 (in the log)"]
    assert said(audited(settings, with_log=False)) == ["lost 4: 3-6 (log not read)"]


def test_rows_of_another_topic_are_named(kafka, admin, settings, topic, sink, topic_prefix):
    other = f"{topic_prefix}b"
    admin.create_topic(other, 1)
    send(kafka, topic, GOOD)
    send(kafka, other, *[GOOD] * 2)
    sink.ingest()
    stranger = SmallSink(settings, other)
    stranger.spec = sink.spec
    stranger.commit_blindly(stranger.read())
    ours, theirs = audit_lake(settings).tables
    assert said(ours) == ["foreign 2: 0-1 (rows of a partition or topic id that the table has no position of)"]
    assert_clean(theirs)


def test_uncommitted_reads_are_named(kafka, settings, topic, sink):
    producer = transactional(kafka, topic)
    producer.begin_transaction()
    producer.produce(topic, GOOD, partition=0)
    producer.flush()
    producer.abort_transaction()
    send(kafka, topic, GOOD)
    assert sink.table.commit(sink.read(isolation="read_uncommitted")) is CommitOutcome.COMMITTED
    assert said(audited(settings)) == ["foreign 1: 0 (rows where the log has no record)"]


def test_aborted_transactions_are_clean(kafka, settings, topic, sink):
    producer = transactional(kafka, topic)
    for abort in (False, True, False, True, True):
        producer.begin_transaction()
        for value in (GOOD, BAD, GOOD):
            producer.produce(topic, value, partition=0)
        producer.flush()
        producer.abort_transaction() if abort else producer.commit_transaction()
    sink.ingest()
    table = audited(settings)
    assert_clean(table)
    assert (table.rows, table.dead_letters) == (4, 2)
    producer.begin_transaction()  # left open
    producer.produce(topic, GOOD, partition=0)
    producer.flush()
    assert_clean(audited(settings))
    producer.abort_transaction()
    # only the log can tell a marker from a loss
    assert set(faults(audited(settings, with_log=False))) == {"lost"}


def test_log_deleted_after_reading_explains_nothing_any_more(kafka, admin, settings, topic, sink):
    send(kafka, topic, *[GOOD] * 10)
    sink.ingest()
    delete_records(admin, {TopicPartition(topic, 0): 6})
    assert_clean(audited(settings))
    sink.without_rows_of(2, 3, 8)
    assert said(audited(settings)) == ["lost 1: 8 (in the log)", "lost 2: 2-3 (log no longer there)"]


def test_log_deleted_while_it_is_read_shortens_what_is_compared(kafka, admin, settings, topic):
    send(kafka, topic, *[GOOD] * 10)
    delete_records(admin, {TopicPartition(topic, 0): 6})
    reading = LogReading(settings, admin, topic, {0: OffsetRange(2, 9)}, lambda _: None)
    told = []
    [(span, offsets)] = reading.run(lambda *progress: told.append(progress)).values()
    assert told[-1] == (7, 7)
    assert (span, list(offsets)) == (OffsetRange(6, 9), [6, 7, 8])


def test_accepted_gap_is_clean_and_shown(kafka, admin, settings, topic, sink):
    send(kafka, topic, *[GOOD] * 3)
    sink.ingest()
    send(kafka, topic, *[GOOD] * 5)
    delete_records(admin, {TopicPartition(topic, 0): 6})
    assert sink.table.accept_gap(0, 3, 6) is CommitOutcome.COMMITTED
    sink.ingest()
    table = audited(settings)
    assert_clean(table)
    assert table.rows == 5
    assert table.partitions[0].stored.gaps == (OffsetRange(3, 6),)


def test_topic_that_is_gone_is_audited_by_the_table_alone(kafka, admin, settings, topic, sink):
    send(kafka, topic, *[GOOD] * 3, BAD)
    sink.ingest()
    delete_topic(admin, topic)
    table = audited(settings)
    assert_clean(table)
    assert (table.topic, table.rows, table.dead_letters) == (topic, 3, 1)
    assert "gone" in table.notes[0]
    admin.create_topic(topic, 2)
    send(kafka, topic, GOOD)
    again = SmallSink(settings, topic)
    again.ingest()
    table = audited(settings)
    assert_clean(table)
    assert (table.rows, len(table.partitions)) == (4, 4)
    assert "earlier topics" in table.notes[0]


def test_topics_without_a_table_and_wrong_names(settings, topic, tmp_path):
    table = audited(settings)
    assert_clean(table)
    assert (table.version, table.notes) == (None, ("no table yet",))
    with pytest.raises(ConfigError, match="no such topic, and no table of it"):
        audit_lake(settings, topics=[f"{topic}x"])
    with pytest.raises(ConfigError, match="no rule in 'topics' fits"):
        audit_lake(settings, topics=["something.else"])
    write_deltalake(f"{settings.lake.root}/bronze/{topic}", pa.table({"a": [1]}))
    assert "kgs did not make it" in audited(settings).problem
