"""`kgs audit --values` against rows on a real broker: right ones are clean, changed ones are named."""

from dataclasses import replace

import pyarrow as pa

from kgs_core.ingest.replay.audit_values import audit_values
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.rule import Fault
from kgs_core.ports import CommitOutcome
from tests.system.small_sink import BAD, GOOD, send, transactional
from tests.system.test_audit import assert_clean, audited, faults, said, settings, sink, topic

__all__ = ["settings", "sink", "topic"]


def audited_with_values(settings):
    """The only table."""
    [table] = audit_values(settings, audit_lake(settings)).tables
    return table


def test_values_of_right_rows_are_those_of_their_records(kafka, settings, topic, sink):
    """In whatever files they are, beside dead letters, aborted records and markers, and below the position only."""
    send(kafka, topic, GOOD, BAD, b'{"n": null}', b"{}", b'{"n": -7, "other": 1}')
    send(kafka, topic, *[GOOD] * 3, partition=1)
    sink.ingest()
    producer = transactional(kafka, topic)
    for end in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        producer.produce(topic, b'{"n": 5}', partition=0)
        producer.flush()
        end(20)
    sink.ingest()
    sink.handle().optimize.compact()
    send(kafka, topic, GOOD)
    table = audited_with_values(settings)
    assert_clean(table)
    assert (table.compared, table.count(Fault.CHANGED)) == (8, 0)


def test_values_that_somebody_changed_are_named(kafka, settings, topic, sink):
    """A number, a null in the place of a value, a time; rows of other partitions are right."""
    send(kafka, topic, *[b'{"n": %d}' % n for n in range(6)])
    send(kafka, topic, *[GOOD] * 2, partition=1)
    sink.ingest()
    table = sink.handle()
    table.alter.set_table_properties({"delta.appendOnly": "false"})
    for offset, column, value in ((1, "n", "8"), (2, "n", "null"), (4, "_timestamp", "null")):
        table.update(updates={column: value}, predicate=f"_partition = 0 and _offset = {offset}")
    assert_clean(audited(settings))  # every offset is there once
    found = audited_with_values(settings)
    assert faults(found) == {"changed": 3}
    assert said(found) == ["changed 3: 1-2, 4 (not what the rule makes of the record)"]


def test_rows_of_another_record_at_the_same_offset_are_named(kafka, settings, topic, sink, admin):
    """As after an unclean election, whose log gives offsets a second time: the audit of offsets finds nothing."""
    send(kafka, topic, *[b'{"n": %d}' % n for n in range(4)])
    batch = sink.read()
    rows = pa.Table.from_pylist(
        [{"_topic_id": sink.ids.topic_id, "_partition": 0, "_offset": o, "n": 100} for o in range(4)], sink.schema
    )
    file = write_table(sink.storage, sink.spec.table, rows.to_batches(), sink.schema)
    assert sink.table.commit(replace(batch, files=(file,))) is CommitOutcome.COMMITTED
    assert_clean(audited(settings))
    assert faults(audited_with_values(settings)) == {"changed": 4}
