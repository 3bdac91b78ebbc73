"""Several topics in one table: each has positions, rows and dead letters of its own, whatever the others do."""

import threading
from contextlib import suppress

import pytest

from kgs_core.config import resolve_tables
from kgs_core.errors import TransientError, UnsafeError
from kgs_core.ingest.opening import topic_opener
from kgs_core.ingest.opening.topic_opener import TopicOpener
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.lake.delta.delta_lake import DeltaLake
from kgs_core.lake.derived.materialize import materialize_lake
from kgs_core.lake.rule import Fault
from kgs_core.lake.topics.discovery import find_tables
from kgs_core.model import TopicId
from kgs_core.ports import CommitOutcome
from tests.core.lake.changing_hands import MemoryKafka, adopting, carry_out
from tests.group_offsets import MemoryOffsets
from tests.kgs_yaml import LONGS, kgs_yaml
from tests.meanwhile import at_once
from tests.sink import FakeRecord, Sink

RULE = {"pattern": "[a-z]", "table": "t", **LONGS}


def settings_of(storage, *topics, group="g", **more):
    return kgs_yaml(storage.root, *(topics or [RULE | more]), group=group)


def sinks_of(storage, topics="ab", partitions=2, **more):
    return [Sink(storage, topic=t, topic_id=f"id-{t}", **more).started(partitions) for t in topics]


def filled(storage):
    """Two topics with ten records each."""
    sinks = sinks_of(storage)
    for sink in sinks:
        sink.ingest({0: (0, 10)})
    return sinks


def audited(storage, **more):
    return {table.topic: table for table in audit_lake(settings_of(storage, **more), with_log=False).tables}


@pytest.mark.parametrize("commit", ["direct", "combined", "auto"])
def test_topics_of_one_consumer_commit_side_by_side(storage, commit):
    """Twelve of them in threads of one process, as a round has them; a second process commits to the same topics."""
    topics = "abcdefghijkl"
    sinks = sinks_of(storage, topics, partitions=1, commit=commit)
    lake = DeltaLake(sinks[0].lake)
    for sink in sinks:
        sink.table._rows = lake.table("t", sink.table.schema)
    problems = []

    def ingest(sink):
        try:
            done = 0
            for _ in range(100):
                if done == 6:
                    return
                at = sink.position(0)
                with suppress(TransientError):  # outrun again and again: a consumer tries again, too
                    # Two of a topic may refuse each other once: one's dead letters the other, whose rows then the one
                    done += sink.ingest({0: (at, at + 5)}) is CommitOutcome.COMMITTED
            problems.append(f"{done} of 6")
        except Exception as e:  # noqa: BLE001 - told by the assertion
            problems.append(e)

    others = [Sink(storage, topic=t, topic_id=f"id-{t}", commit=commit) for t in topics[:3]]
    threads = [threading.Thread(target=ingest, args=[sink]) for sink in (*sinks, *others)]
    at_once(threads)
    assert problems == []
    assert all(sink.assert_exact(1)[0] >= 30 for sink in sinks)
    assert all(table.ok for table in audited(storage).values())


def test_the_audit_names_the_topic_whose_rows_are_wrong(storage):
    a, b = filled(storage)
    doubled = a.read({0: (0, 4)}, {0: 10})
    b.delta().commit({}, {}, doubled.files)
    found = audited(storage)
    assert found["a"].count(Fault.DOUBLED) == 4
    assert found["b"].ok


def test_rows_that_no_topic_of_the_table_has_read_are_foreign_once(storage):
    a, _ = filled(storage)
    nobody = Sink(storage, topic="c", topic_id="id-of-nobody")
    a.delta().commit({}, {}, nobody.read({0: (0, 4)}, {0: None}).files)
    found = audited(storage)
    assert [found[topic].count(Fault.FOREIGN) for topic in "ab"] == [4, 0]


def test_a_topic_that_is_left_out_is_no_fault_of_the_others(storage):
    filled(storage)
    (only,) = audit_lake(settings_of(storage), with_log=False, topics=["a"]).tables
    assert only.ok
    assert only.notes == ("the table also has rows of b: not audited here",)
    former = audit_lake(settings_of(storage, {"topic": "a", "table": "t"}), with_log=False)
    assert former.ok


def test_topics_that_only_the_table_still_knows_are_found(storage):
    sinks_of(storage, "abc")
    lake = DeltaLake(settings_of(storage).lake)
    assert [spec.topic for spec in find_tables(settings_of(storage), lake, ["a", "d"], None)] == ["a", "b", "c", "d"]
    by_name = settings_of(storage, {"topic": "a", "table": "t"}, {"pattern": "[b-z]", "table": "t"})
    assert [spec.topic for spec in find_tables(by_name, lake, ["a"], None)] == ["a", "b", "c"]


def test_a_table_changes_hands_with_all_its_topics(storage, memory_kafka):
    a, b = sinks_of(storage)
    a.ingest({0: (0, 10)})
    held = b.read({0: (0, 4)})
    carry_out(*adopting(settings_of(storage, {"topic": "a", "table": "t"}, group="h")))  # b has no rule any more
    with pytest.raises(UnsafeError, match="has handed over its positions of topic a"):
        a.position(0)
    heirs = sinks_of(storage, group="h")
    assert b.table.commit(held) is CommitOutcome.REFUSED
    heirs[0].ingest({0: (10, 20)})
    heirs[1].ingest({0: (0, 10)})
    assert [sink.assert_exact(2)[0] for sink in heirs] == [20, 10]
    assert all(t.ok for t in audit_lake(settings_of(storage, group="h"), with_log=False).tables)


# The derived table


def key(record):
    return b"k%d" % (record.at % 3)


def latest(storage, order):
    done = []
    materialize_lake(settings_of(storage, newest_rows={"table": "latest", "order": order}), done.append)
    return done


def test_offsets_of_several_topics_are_not_compared(storage, monkeypatch):
    monkeypatch.setattr(FakeRecord, "key", key)
    filled(storage)
    (found,) = latest(storage, "offset")
    assert found.problem == (
        "table t: is filled from a, b, whose offsets cannot be compared: set newest_rows: order: timestamp, or put "
        "the topic_column into its key"
    )


def newest(sink):
    return {row["_key"]: (row["_topic_id"], row["_offset"]) for row in sink.rows("latest")}


def test_the_newest_by_time_of_all_topics(storage, monkeypatch):
    monkeypatch.setattr(FakeRecord, "key", key)
    a, b = sinks_of(storage)
    b.ingest({0: (0, 4)})
    a.ingest({0: (0, 10)})
    (found,) = latest(storage, "timestamp")
    assert (found.problem, found.rows) == ("", 12)
    assert newest(a) == {b"k0": ("id-a", 6), b"k1": ("id-a", 7), b"k2": ("id-a", 8)}
    b.ingest({0: (4, 9)})
    latest(storage, "timestamp")
    # At the same time the topic's id decides, in whatever order they come
    assert newest(a) == {b"k0": ("id-b", 6), b"k1": ("id-b", 7), b"k2": ("id-b", 8)}


# A first start in a table of others


@pytest.fixture
def opened(storage):
    def open_topic(topic="b", **rule):
        settings = settings_of(storage, *({"topic": name, "table": "t", "format": "json", **rule} for name in "ab"))
        opener = TopicOpener(settings, DeltaLake(settings.lake), MemoryKafka(), MemoryOffsets(), None)
        return opener.open(resolve_tables(settings, [topic])[topic], TopicId(f"id-{topic}"), 1)

    return open_topic


def test_a_topic_with_other_columns_does_not_begin(storage, opened):
    Sink(storage, topic="a", topic_id="id-a").started(1)
    with pytest.raises(UnsafeError) as refused:
        opened(schema={"n": "string", "m": "int"})
    assert str(refused.value) == (
        "topic b: table t is filled from a, and the columns do not agree: m is missing; n is int64, wanted string: "
        "give the topic another table, or the same columns"
    )
    with pytest.raises(UnsafeError, match="n is int64, wanted string: give"):
        opened(schema={"n": "string", "m": "int"}, evolve="add_columns")
    assert DeltaLake(Sink(storage).lake).open("t").schema.names == Sink(storage).table.schema.names
    assert not any("id-b" in app for app in DeltaLake(Sink(storage).lake).all_versions("t"))


@pytest.mark.parametrize("has_begun", [True, False])
def test_of_two_topics_that_begin_at_once_with_other_columns_one_does_not(storage, opened, monkeypatch, has_begun):
    look = topic_opener.refuse_unlike_columns

    def outrun(*given, is_made):
        look(*given, is_made=is_made)
        if not is_made:
            a = Sink(storage, topic="a", topic_id="id-a")
            a.table.open()
            if has_begun:
                a.started(1)

    monkeypatch.setattr(topic_opener, "refuse_unlike_columns", outrun)
    with pytest.raises(UnsafeError, match=r"filled from (a|another topic), .* n is int64, wanted string: give"):
        opened(schema={"n": "string"}, evolve="add_columns")
    assert not any("id-b" in app for app in DeltaLake(Sink(storage).lake).all_versions("t"))
    monkeypatch.undo()
    opened(schema={"n": "long"}, evolve="add_columns")  # mended


def test_columns_that_one_topic_adds_are_null_for_the_other(storage, opened):
    a = Sink(storage, topic="a", topic_id="id-a").started(1)
    a.ingest({0: (0, 10)})
    opened(schema={"n": "long", "m": "int"}, evolve="add_columns")
    b = Sink(storage, topic="b", topic_id="id-b", schema={"n": "long", "m": "int"}, evolve="add_columns")
    b.ingest({0: (0, 10)})
    a.ingest({0: (10, 20)})
    assert (a.assert_exact(1), b.assert_exact(1)) == ({0: 20}, {0: 10})
    assert all(table.ok for table in audited(storage).values())


def test_the_topic_is_a_column_where_it_is_asked_for(storage):
    for sink in sinks_of(storage, topic_column="source", partition_by=["source"]):
        sink.ingest({0: (0, 10)})
        sink.ingest({0: (10, 20)})
    found = {path.split("/")[0] for path in Sink(storage).files("t")}
    assert found == {"source=a", "source=b"}
    assert all(t.ok for t in audited(storage, topic_column="source", partition_by=["source"]).values())
