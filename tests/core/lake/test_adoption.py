"""Tables that change hands: what the old side has in flight is refused, and a kill in between is mended by a repeat.

Kafka is from memory, tables are real.
"""

import pytest

from kgs_core.errors import ConfigError, UnsafeError
from kgs_core.lake.delta import delta_lake
from kgs_core.lake.delta.delta_log import load_transactions
from kgs_core.lake.files.intent_store import IntentStore, encode_intent
from kgs_core.lake.handover import adoption
from kgs_core.lake.rule.combining import CommitIntent
from kgs_core.ports import CommitOutcome
from tests.core.lake.changing_hands import MemoryKafka, adopt, clean, move, planned, put_kafka, settings_of
from tests.failpoints import KilledError
from tests.sink import Sink

pytestmark = pytest.mark.usefixtures("memory_kafka")


@pytest.fixture
def sink(storage):
    """Twelve records of partition 0 read, with two dead letters; of partition 1, none."""
    sink = Sink(storage).started(2)
    sink.ingest({0: (0, 12)})
    return sink


def test_renamed_group_goes_on_and_the_old_name_is_refused(storage, sink):
    late = sink.read({0: (12, 20)})
    sink.table.accept_gap(1, 0, 5)
    assert adopt(storage) == ["t_dead_letters", "t"]
    heir = Sink(storage, group="h")
    assert heir.table.is_started(2)
    assert dict(heir.table.positions({0, 1}).next_offset) == {0: 12, 1: 5}
    assert sink.table.commit(late) is CommitOutcome.REFUSED
    for use in (lambda: sink.table.positions({0}), lambda: sink.table.stored_position(0)):
        with pytest.raises(UnsafeError, match="group g has handed over its positions of topic t, id id1"):
            use()
    with pytest.raises(UnsafeError, match="group h fills it"):
        sink.table.fix_start({2: 0})  # a partition that came later
    assert heir.ingest({0: (12, 30), 1: (5, 9)}) is CommitOutcome.COMMITTED
    table = clean(storage, "h")
    assert [p.stored.gaps for p in table.partitions] == [(), ((0, 5),)]
    assert (len(heir.rows()), len(heir.rows("t_dead_letters"))) == (28, 6)
    assert clean(storage, "g").notes == (
        "handed over to group h by kgs adopt: audit it with that group's configuration",
    )


def test_adoption_is_reported_once_and_can_be_taken_back(storage, sink):
    assert adopt(storage)
    assert adopt(storage) == []
    Sink(storage, group="h").ingest({0: (12, 20)})
    assert adopt(storage, "h", "g") == ["t_dead_letters", "t"]
    assert sink.ingest({0: (20, 30)}) is CommitOutcome.COMMITTED
    assert Sink(storage).assert_exact(2) == {0: 30, 1: 0}
    clean(storage, "g")


def test_dead_letters_before_a_kill_are_not_written_again_by_the_heir(storage, sink):
    assert sink.table._commit_dead_letters(sink.read({0: (12, 20)})) is CommitOutcome.COMMITTED
    adopt(storage)
    heir = Sink(storage, group="h")
    assert heir.ingest({0: (12, 25)}) is CommitOutcome.COMMITTED
    assert heir.assert_exact(2) == {0: 25, 1: 0}


def test_what_a_killed_consumer_left_to_be_committed_lands_under_no_heir(storage, sink):
    """Of a partition that had no dead letter, so that no position in their table tells whose it is."""
    batch = sink.read({1: (0, 8)})
    table = delta_lake.DeltaLake(sink.lake).open("t_dead_letters")
    position = sink.ids.position(1)
    left = CommitIntent({position: None}, {position: 8}, [batch.dead_letters], looked_at=99)
    IntentStore(storage, "t_dead_letters").put("left.json", encode_intent(left))
    assert table.versions([position]) == {position: None}
    adopt(storage)
    heir = Sink(storage, group="h", commit="combined")
    assert heir.ingest({1: (0, 8)}) is CommitOutcome.COMMITTED
    assert heir.assert_exact(2) == {0: 12, 1: 8}


@pytest.mark.parametrize("at", [1, 2])
def test_adoption_that_was_killed_is_finished_by_the_next(storage, sink, killer, at):
    killer["adopted"] = at
    with pytest.raises(KilledError):
        adopt(storage)
    stale = at == 1
    if stale:  # the dead letters have changed hands, the rows have not: neither side writes a dead letter twice
        with pytest.raises(UnsafeError, match="handed over"):
            Sink(storage).table.positions({0})
        with pytest.raises(UnsafeError, match="group g fills it"):
            Sink(storage, group="h").started(2)
    assert adopt(storage) == (["t"] if stale else [])
    heir = Sink(storage, group="h")
    assert heir.ingest({0: (12, 20)}) is CommitOutcome.COMMITTED
    assert heir.assert_exact(2) == {0: 20, 1: 0}
    clean(storage, "h")


def test_names_that_cannot_be_adopted(storage, sink):
    with pytest.raises(ConfigError, match="is this configuration's own group"):
        adoption.GroupAdoption(settings_of(storage, "g"), "g")
    with pytest.raises(ConfigError, match=r"--from-group x: no table under .* was filled by it"):
        adopt(storage, "x", "g")
    with pytest.raises(ConfigError, match="--topic u: no rule"):
        adoption.GroupAdoption(settings_of(storage, "h"), "g").pending(["u"])


def test_topic_that_moved_goes_on_at_the_same_offsets(storage, sink, monkeypatch):
    put_kafka(monkeypatch, MemoryKafka("id2", partitions=3, first=0, end=40))
    late = sink.read({0: (12, 20)})
    found = move(storage)
    assert (found.old_id, found.new_id, found.offsets) == ("id1", "id2", {0: 12, 1: 0, 2: 0})
    again = Sink(storage, topic_id="id2")
    assert dict(again.table.positions({0, 1, 2}).next_offset) == {0: 12, 1: 0, 2: 0}
    assert sink.table.commit(late) is CommitOutcome.REFUSED
    with pytest.raises(UnsafeError, match="topic t, id id1"):
        sink.table.positions({0})
    assert again.ingest({0: (12, 30), 2: (0, 4)}) is CommitOutcome.COMMITTED
    table = clean(storage, "g")
    assert [(p.stored.topic_id, p.stored.partition, p.stored.start, p.stored.position) for p in table.partitions] == [
        ("id1", 0, 0, 12),
        ("id1", 1, 0, 0),
        ("id2", 0, 12, 30),
        ("id2", 1, 0, 0),
        ("id2", 2, 0, 4),
    ]
    with pytest.raises(UnsafeError, match="is filled from this topic, id id2, already"):
        move(storage)


def test_offsets_that_are_given_count_before_those_that_are_kept(storage, sink, monkeypatch):
    put_kafka(monkeypatch, MemoryKafka("id2", first=5, end=40))
    assert move(storage, {1: 7, 0: 9}, keep=False).offsets == {0: 9, 1: 7}


@pytest.mark.parametrize(
    ("given", "how", "problem"),
    [
        ({}, {}, r"t:1: offset 0 is not in its log, which has 5 to 39"),
        ({1: 41}, {}, r"t:1: offset 41 is not in its log"),
        ({1: 7}, {"keep": False}, r"t:0: give --keep-offsets, or --offset t:0=OFFSET"),
        ({9: 7}, {}, r"--offset t:9: topic t has the partitions 0 to 1"),
        ({1: 7}, {"old_id": "id7"}, r"filled from topic ids id1: say which: --from-topic-id"),
    ],
)
def test_moves_that_would_skip_or_cannot_be_are_refused(storage, sink, monkeypatch, given, how, problem):
    put_kafka(monkeypatch, MemoryKafka("id2", first=5, end=40))
    before = load_transactions(storage, "t")
    with pytest.raises((UnsafeError, ConfigError), match=problem):
        move(storage, given, **how)
    assert load_transactions(storage, "t") == before


def test_move_while_the_old_cluster_is_still_read_is_refused(storage, sink, monkeypatch):
    put_kafka(monkeypatch, MemoryKafka("id2", end=40))
    moving, found = planned(settings_of(storage, "g"))
    sink.ingest({1: (0, 5)})
    with pytest.raises(UnsafeError, match="a consumer still commits to it under the old topic id"):
        moving.carry_out(found)
    assert "g/t@id2/0" not in load_transactions(storage, "t")


def test_move_killed_between_dead_letters_and_rows_is_finished_by_the_next(storage, sink, killer, monkeypatch):
    put_kafka(monkeypatch, MemoryKafka("id2", end=40))
    killer["adopted"] = 1
    with pytest.raises(KilledError):
        move(storage)
    with pytest.raises(UnsafeError, match="handed over"):
        Sink(storage).table.positions({0})
    assert move(storage).offsets == {0: 12, 1: 0}
    again = Sink(storage, topic_id="id2")
    assert again.ingest({0: (12, 20)}) is CommitOutcome.COMMITTED
    clean(storage, "g")


def test_a_topic_that_was_accepted_anew_is_moved_by_its_id(storage, sink, monkeypatch):
    """`kgs accept-topic` leaves an earlier life that nobody ended: a move must say which one goes on."""
    Sink(storage, topic_id="id2").started(2)
    put_kafka(monkeypatch, MemoryKafka("id3", end=40))
    with pytest.raises(UnsafeError, match="filled from topic ids id1, id2: say which"):
        move(storage)
    assert move(storage, old_id="id2").offsets == {0: 0, 1: 0}


def test_a_topic_that_moves_back_under_its_former_id_is_refused_before_anything_is_written(storage, sink, monkeypatch):
    """Its history there has ended: positions, starts and rows of both times could not be told apart."""
    put_kafka(monkeypatch, MemoryKafka("id2", end=40))
    move(storage)
    away = Sink(storage, topic_id="id2")
    assert away.ingest({0: (12, 20)}) is CommitOutcome.COMMITTED
    put_kafka(monkeypatch, MemoryKafka("id1", end=40))
    with pytest.raises(UnsafeError, match="moved away from this topic, id id1, before: recreate the topic"):
        move(storage)
    assert away.ingest({0: (20, 30)}) is CommitOutcome.COMMITTED
    clean(storage, "g")
