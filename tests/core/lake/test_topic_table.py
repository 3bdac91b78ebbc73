"""One topic's two tables: starts, positions, dead letters that are written once, accepted losses."""

import multiprocessing
import os
import sys
from dataclasses import replace

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction

from kgs_core.errors import PortError, TransientError, UnsafeError
from kgs_core.lake.delta.delta_log import load_transactions
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.positions import AppIds
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.topic_table import earlier_topic_ids
from kgs_core.model import OffsetRange, TopicId
from kgs_core.ports import CommitOutcome
from tests.meanwhile import at_once
from tests.sink import EPOCH_EVERY, Sink


def test_rows_and_dead_letters_land_and_the_position_moves(sink):
    assert sink.ingest({0: (0, 12), 1: (0, 7)}) is CommitOutcome.COMMITTED
    assert sink.assert_exact(2) == {0: 12, 1: 7}
    assert sink.table.positions({0, 1}).dead_letter_marks == {0: 12, 1: 7}


def test_range_without_records_moves_the_position_alone(sink):
    """Transactions leave offsets without records; a position that stayed before them would never pass."""
    batch = replace(sink.read({0: (0, 1)}), files=())
    assert sink.table.commit(batch) is CommitOutcome.COMMITTED
    assert sink.position(0) == 1
    assert sink.files() == []


@pytest.mark.parametrize(
    ("rival", "ours", "outcome"),
    [
        ({0: (0, 10)}, {0: (0, 10)}, CommitOutcome.REFUSED),
        ({0: (0, 10)}, {0: (0, 20)}, CommitOutcome.REFUSED),
        ({0: (0, 10)}, {0: (0, 5)}, CommitOutcome.REFUSED),
        ({0: (0, 10)}, {0: (0, 8), 1: (0, 8)}, CommitOutcome.REFUSED),
        ({0: (0, 10)}, {1: (0, 8)}, CommitOutcome.COMMITTED),
        ({0: (0, 10)}, {0: (10, 18)}, CommitOutcome.COMMITTED),
        ({0: (0, 10)}, {0: (12, 18)}, CommitOutcome.REFUSED),
    ],
)
def test_batch_of_a_stale_owner(storage, sink, rival, ours, outcome):
    zombie = Sink(storage)
    batch = zombie.read(ours)
    sink.ingest(rival)
    if ours == {0: (10, 18)}:
        batch = zombie.read(ours)  # read with the rival's dead letters known
    assert zombie.table.commit(batch) is outcome
    sink.assert_exact(2)


def test_dead_letters_filtered_by_a_mark_that_has_moved_since_are_refused(storage, sink):
    other = Sink(storage)
    batch = sink.read({0: (0, 30)})
    killed = other.read({0: (0, 10)})
    assert other.table._commit_dead_letters(killed) is CommitOutcome.COMMITTED
    assert sink.table.commit(batch) is CommitOutcome.REFUSED
    assert sink.ingest({0: (0, 30)}) is CommitOutcome.COMMITTED
    assert sink.assert_exact(2) == {0: 30, 1: 0}


def test_first_start_fixes_all_partitions_for_good(storage):
    sink = Sink(storage)
    sink.table.open()
    assert not sink.table.is_started(2)
    sink.table.fix_start({0: 5, 1: 9})
    Sink(storage).table.fix_start({0: 100, 1: 100})
    assert sink.table.is_started(2)
    assert dict(sink.table.positions({0, 1}).next_offset) == {0: 5, 1: 9}
    stored = load_transactions(storage, "t")
    starts = {"g/t@id1/0": 5, "g/t@id1/0/start": 5, "g/t@id1/1": 9, "g/t@id1/1/start": 9}
    assert stored == starts | {"kgs/starts": 1}


def test_partition_that_appears_later_starts_at_zero(sink):
    sink.ingest({0: (0, 10)})
    assert dict(sink.table.positions({0, 2}).next_offset) == {0: 10, 2: 0}
    assert load_transactions(sink.storage, "t")["g/t@id1/2/start"] == 0


def test_position_without_a_start_is_an_error_and_no_endless_loop(storage):
    sink = Sink(storage)
    sink.table.open()
    properties = CommitProperties(app_transactions=[Transaction("g/t@id1/0", 7)])
    handle = DeltaTable(storage.uri("t"))
    handle.create_write_transaction([], "append", sink.table.schema, commit_properties=properties)
    with pytest.raises(UnsafeError, match="t:0 has a position without a start"):
        sink.table.fix_start({0: 0})


def _start(root, offset, barrier):
    sink = Sink(Storage(root))
    barrier.wait()
    sink.table.open()
    sink.table.fix_start({0: offset, 1: offset})
    sys.stdout.flush()
    os._exit(0)


def test_consumers_that_start_at_once_agree_on_one_start(storage):
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    starters = [context.Process(target=_start, args=(storage.root, offset, barrier)) for offset in (3, 8)]
    at_once(starters, 60)
    assert [s.exitcode for s in starters] == [0, 0]
    found = dict(Sink(storage).table.positions({0, 1}).next_offset)
    assert found in ({0: 3, 1: 3}, {0: 8, 1: 8})


def test_topic_made_again_has_positions_of_its_own(storage, sink):
    sink.ingest({0: (0, 10)})
    again = Sink(storage, topic_id="id2")
    assert not again.table.is_started(2)
    assert earlier_topic_ids(open_lake(again.lake), "t", again.ids) == ["id1"]
    again.table.fix_start({0: 0, 1: 0})
    assert again.position(0) == 0
    assert sink.position(0) == 10
    assert earlier_topic_ids(open_lake(again.lake), "t", AppIds("other", "t", TopicId("id3"))) == []


def test_position_carries_the_leader_epoch_of_the_record_before_it(sink):
    sink.ingest({0: (0, 10), 1: (0, 7)})
    assert sink.table.positions({0, 1}).leader_epochs == {0: 0, 1: 0}
    sink.ingest({0: (10, EPOCH_EVERY + 1)})
    assert sink.table.positions({0, 1}).leader_epochs == {0: 1, 1: 0}


@pytest.mark.parametrize("way", ["a range that ends behind its last record", "a writer that knows no epochs", "a loss"])
def test_epoch_is_unknown_at_a_position_that_no_record_ends_at(sink, way):
    """An epoch whose end lies before the position would be taken for a truncated log."""
    sink.ingest({0: (0, 10)})
    if way == "a loss":
        sink.table.accept_gap(0, 10, 25)
    else:
        batch = sink.read({0: (10, 11)})
        behind = {"ranges": {0: OffsetRange(10, 25)}} if way.startswith("a range") else {}
        assert sink.table.commit(replace(batch, leader_epochs={}, **behind)) is CommitOutcome.COMMITTED
    assert sink.table.positions({0}).leader_epochs == {}
    start = sink.position(0)
    sink.ingest({0: (start, start + 1)})
    assert sink.table.positions({0}).leader_epochs == {0: 0}


def test_epochs_refuse_no_commit(storage, sink):
    """Neither that of a neighbour's partition, nor one that is lower than before (the cluster was made anew)."""
    other = Sink(storage)
    ours, theirs = sink.read({0: (0, 10)}), other.read({1: (0, 10)})
    assert sink.table.commit(replace(ours, leader_epochs={0: 7})) is CommitOutcome.COMMITTED
    assert other.table.commit(replace(theirs, leader_epochs={1: 3})) is CommitOutcome.COMMITTED
    assert sink.table.commit(replace(sink.read({0: (10, 20)}), leader_epochs={0: 2})) is CommitOutcome.COMMITTED
    assert sink.table.positions({0, 1}).leader_epochs == {0: 2, 1: 3}
    assert other.table.commit(replace(ours, leader_epochs={0: 2})) is CommitOutcome.REFUSED


def test_accepted_loss_moves_the_position_once_and_refuses_the_batch_in_flight(storage, sink):
    sink.ingest({0: (0, 10)})
    batch = Sink(storage).read({0: (10, 20)})
    assert sink.table.accept_gap(0, 10, 25) is CommitOutcome.COMMITTED
    assert sink.table.accept_gap(0, 10, 25) is CommitOutcome.REFUSED
    assert Sink(storage).table.commit(batch) is CommitOutcome.REFUSED
    assert (sink.table.stored_position(0), sink.table.stored_position(7)) == (25, None)
    assert load_transactions(storage, "t")["g/t@id1/0/gap/10"] == 25
    assert sink.ingest({0: (25, 30)}) is CommitOutcome.COMMITTED


@pytest.mark.parametrize("start", [0, 9, 11])
def test_loss_that_does_not_begin_at_the_position_is_refused(sink, start):
    sink.ingest({0: (0, 10)})
    assert sink.table.accept_gap(0, start, 25) is CommitOutcome.REFUSED
    assert sink.table.stored_position(0) == 10
    assert f"g/t@id1/0/gap/{start}" not in load_transactions(sink.storage, "t")


@pytest.mark.parametrize("rule", [{}, {"partition_by": ["n"]}], ids=["plain", "partitioned"])
def test_nothing_is_made_in_the_place_of_a_lake_that_was_moved(tmp_path, rule):
    """Moved back by `mv`, the lake would lie within it."""
    lake = tmp_path / "lake"
    sink = Sink(Storage(str(lake)), table="bronze/t", **rule).started(1)
    batch = sink.read({0: (0, 10)})
    lake.rename(tmp_path / "moved")
    with pytest.raises(TransientError, match=r"table bronze/t: cannot write .*moved, deleted or not mounted: bring it"):
        sink.read({0: (10, 13)}, {})
    with pytest.raises(TransientError, match=r"table bronze/t_dead_letters: cannot write .*bring it back"):
        sink.read({0: (14, 15)}, {})
    with pytest.raises(PortError):
        sink.table.commit(batch)
    assert os.listdir(tmp_path) == ["moved"]
    (tmp_path / "moved").rename(lake)
    assert sink.ingest({0: (0, 10)}) is CommitOutcome.COMMITTED
