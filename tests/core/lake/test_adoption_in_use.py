"""Tables that change hands while the old side still reads: what it has in flight harms neither side."""

import pytest

from kgs_core.errors import UnsafeError
from kgs_core.lake.handover import adoption, migration
from kgs_core.lake.topics import topic_table
from kgs_core.ports import CommitOutcome
from tests.core.lake.changing_hands import MemoryKafka, adopt, adopting, clean, move, planned, put_kafka, settings_of
from tests.failpoints import KilledError
from tests.meanwhile import before
from tests.sink import Sink

pytestmark = pytest.mark.usefixtures("memory_kafka")


def is_of_rows(stored, *_):
    """Asked about the own table: it alone has starts."""
    return any(app.endswith("/start") for app in stored)


def letters_of(sink, partition):
    return sorted(row["_offset"] for row in sink.rows("t_dead_letters") if row["_partition"] == partition)


@pytest.mark.parametrize("letters_before", [True, False])
@pytest.mark.parametrize("moved", ["group", "topic"])
def test_who_reads_on_writes_no_first_dead_letter_of_a_partition(storage, monkeypatch, letters_before, moved):
    """Neither had one of partition 1 yet; its batch was read before the tables changed hands."""
    old = Sink(storage).started(2)
    old.ingest({0: (0, 12 if letters_before else 3)})
    batch = old.read({1: (0, 8)})
    if moved == "group":
        adopt(storage)
        heir = Sink(storage, group="h")
    else:
        put_kafka(monkeypatch, MemoryKafka("id2"))
        move(storage)
        heir = Sink(storage, topic_id="id2")
    assert old.table.commit(batch) is CommitOutcome.REFUSED
    with pytest.raises(UnsafeError, match="handed over"):
        old.table.positions({1})
    assert heir.ingest({1: (0, 8)}) is CommitOutcome.COMMITTED
    assert letters_of(heir, 1) == [4]
    clean(storage, "h" if moved == "group" else "g")
    if moved == "group":
        adopt(storage, "h", "g")  # and back
        assert heir.table.commit(batch) is CommitOutcome.REFUSED
        assert Sink(storage).ingest({1: (8, 12)}) is CommitOutcome.COMMITTED
        clean(storage, "g")


def begin(old, killer=None):
    """Partition 2 appears, and the old side reads its first records, one of them bad; with `killer` it is killed."""
    old.table.fix_start({2: 0})
    if killer is None:
        assert old.ingest({2: (0, 8)}) is CommitOutcome.COMMITTED
        return
    killer["after-dead-letter-commit"] = 1
    with pytest.raises(KilledError):
        old.ingest({2: (0, 8)})


@pytest.mark.parametrize("is_killed", [False, True], ids=["all of it landed", "only its dead letter landed"])
@pytest.mark.parametrize("is_late", [False, True], ids=["between two tables", "when the rows' table is about to move"])
def test_a_partition_that_begins_while_tables_change_hands_moves_with_its_dead_letters(
    storage, monkeypatch, killer, is_late, is_killed
):
    old = Sink(storage).started(2)
    old.ingest({0: (0, 12)})
    found, (letters, rows) = adopting(settings_of(storage, "h"))
    found.carry_out(letters)

    def begins():
        begin(old, killer if is_killed else None)

    left = before(monkeypatch, adoption, "hand_over", begins, is_of_rows) if is_late else begins()
    found.carry_out(rows)
    assert not left
    heir = Sink(storage, group="h")
    assert heir.ingest({0: (12, 20), 2: (0 if is_killed else 8, 20)}) is CommitOutcome.COMMITTED
    assert letters_of(heir, 2) == [4, 9, 14, 19]
    clean(storage, "h")
    with pytest.raises(UnsafeError, match="group h fills it"):
        old.table.fix_start({3: 0})
    assert adopt(storage) == []


def test_the_old_side_begins_no_partition_that_it_asked_for_before_the_table_changed_hands(storage, monkeypatch):
    old = Sink(storage).started(1)
    refuse = topic_table.refuse_other_groups

    def slow(*given):
        monkeypatch.setattr(topic_table, "refuse_other_groups", refuse)
        found = refuse(*given)
        adopt(storage)
        return found

    monkeypatch.setattr(topic_table, "refuse_other_groups", slow)
    with pytest.raises(UnsafeError, match="group h fills it"):
        old.table.fix_start({1: 0})
    assert clean(storage, "h").ok


@pytest.mark.parametrize("is_late", [False, True], ids=["before the tables move", "when the rows are about to move"])
def test_a_partition_that_begins_under_the_old_topic_id_stops_the_migration(storage, monkeypatch, is_late):
    old = Sink(storage).started(2)
    put_kafka(monkeypatch, MemoryKafka("id2", partitions=3))
    moving, plan = planned(settings_of(storage, "g"))

    def begins():
        old.table.fix_start({2: 0})

    left = before(monkeypatch, migration, "close_life", begins, is_of_rows) if is_late else begins()
    with pytest.raises(UnsafeError, match="a consumer still commits to it under the old topic id"):
        moving.carry_out(plan)
    assert not left
    move(storage)
    with pytest.raises(UnsafeError, match="handed over"):
        old.table.positions({2})
    clean(storage, "g")


def test_of_two_adoptions_at_once_the_later_one_finds_all_done(storage):
    Sink(storage).started(2).ingest({0: (0, 12)})
    (first, mine), (second, theirs) = (adopting(settings_of(storage, "h")) for _ in range(2))
    for one, other in zip(mine, theirs, strict=True):
        first.carry_out(one)
        second.carry_out(other)
    assert Sink(storage, group="h").ingest({0: (12, 20)}) is CommitOutcome.COMMITTED
    clean(storage, "h")


def test_of_two_names_that_adopt_at_once_one_is_refused(storage):
    Sink(storage).started(2).ingest({0: (0, 12)})
    (first, (letters, _)), (second, (_, rows)) = (adopting(settings_of(storage, name)) for name in ("h", "i"))
    first.carry_out(letters)
    with pytest.raises(UnsafeError, match="table t_dead_letters: group h also writes it"):
        second.carry_out(rows)
    assert [each.table for each in first.pending(())] == ["t"]


def test_a_topic_moves_though_another_one_of_its_table_begins_a_partition(storage, monkeypatch):
    Sink(storage).started(2)
    other = Sink(storage, topic="u", topic_id="u1").started(1)
    put_kafka(monkeypatch, MemoryKafka("id2"))
    moving, plan = planned(settings_of(storage, "g"))
    before(monkeypatch, migration, "close_life", lambda: other.table.fix_start({1: 0}))
    moving.carry_out(plan)
    assert dict(Sink(storage, topic_id="id2").table.positions({0, 1}).next_offset) == {0: 0, 1: 0}
    assert other.ingest({1: (0, 4)}) is CommitOutcome.COMMITTED


def test_the_audit_of_the_old_name_knows_what_has_changed_hands(storage, monkeypatch):
    """While the dead letters have moved and the rows have not; and of a table that has an ended life, too."""
    Sink(storage).started(2).ingest({0: (0, 12)})
    put_kafka(monkeypatch, MemoryKafka("id2"))
    move(storage)
    Sink(storage, topic_id="id2").ingest({0: (12, 20)})
    found, (letters, rows) = adopting(settings_of(storage, "h"))
    found.carry_out(letters)
    clean(storage, "g")
    found.carry_out(rows)
    assert clean(storage, "g").notes == (
        "handed over to group h by kgs adopt: audit it with that group's configuration",
    )
    clean(storage, "h")


@pytest.mark.parametrize("is_open", [True, False], ids=["read on", "opened anew"])
def test_a_partition_that_appears_in_the_old_cluster_later_is_not_begun(storage, monkeypatch, is_open):
    """Its consumer owns none of those that were closed; the new cluster has its records, too."""
    old = Sink(storage).started(2)
    old.ingest({0: (0, 12)})
    put_kafka(monkeypatch, MemoryKafka("id2", partitions=3))
    move(storage)
    forgotten = old if is_open else Sink(storage)
    with pytest.raises(UnsafeError, match="group g has handed over its positions of topic t, id id1"):
        forgotten.table.positions({2})
    again = Sink(storage, topic_id="id2")
    assert again.ingest({0: (12, 20), 2: (0, 8)}) is CommitOutcome.COMMITTED
    assert [row["_offset"] for row in again.rows() if row["_partition"] == 2] == [0, 1, 2, 3, 5, 6, 7]
    clean(storage, "g")


def test_rows_stay_where_a_dead_letter_lands_beside_them_meanwhile(storage, monkeypatch):
    """Else its mark would stay the old side's, and the heir would write that dead letter again."""
    old = Sink(storage).started(2)
    found, (letters, rows) = adopting(settings_of(storage, "h"))
    found.carry_out(letters)
    begin(old)
    batch = old.read({2: (8, 12)})

    def lands():
        assert old.table._commit_dead_letters(batch) is CommitOutcome.COMMITTED

    due = before(monkeypatch, adoption, "hand_over", lands, lambda *of: not is_of_rows(*of))
    found.carry_out(rows)
    assert not due
    heir = Sink(storage, group="h")
    assert heir.ingest({2: (8, 20)}) is CommitOutcome.COMMITTED
    assert letters_of(heir, 2) == [4, 9, 14, 19]
    clean(storage, "h")
