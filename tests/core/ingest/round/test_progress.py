"""One topic's progress, call by call."""

from dataclasses import replace

import pytest

from kgs_core.ingest.round.stops import StopCause
from kgs_core.lake.rule.batch import TablePositions, TopicBatch
from kgs_core.model import OffsetRange
from kgs_core.ports import FileWritten
from tests.core.ingest.round.round_world import ID, progress


def test_moved_position_ends_every_stop():
    stopped = progress("a", 2).stopped({0: "bad record", 1: "bad record"}, StopCause.BAD_RECORD, 0.0)
    assert stopped.owning(frozenset({0, 1}), TablePositions({0: 1, 1: 0})).active == {0: 1}


def test_leader_epoch_of_before_does_not_outlive_a_batch_without_one():
    state = progress("a", 1)
    read = TopicBatch("a", ID, {0: OffsetRange(0, 5)}, (), records=5, leader_epochs={0: 3})
    markers_only = TopicBatch("a", ID, {0: OffsetRange(5, 6)}, ())
    assert state.advanced(read).at.leader_epochs == {0: 3}
    assert state.advanced(read).advanced(markers_only).at.leader_epochs == {}


def test_partition_that_was_given_up_brings_nothing_back():
    state = progress("a", 2).owning(frozenset({0, 1}), TablePositions({0: 0, 1: 0}, {0: 4, 1: 6}, {0: 3, 1: 7}))
    given_up = state.stopped({0: "bad record"}, StopCause.BAD_RECORD, 0.0).without({0})
    assert (given_up.owned, given_up.stops, given_up.tries) == ({1}, {}, {})
    assert given_up.at == TablePositions({1: 0}, {1: 6}, {1: 7})


def test_dead_letters_that_were_written_are_not_written_again():
    """Up to the end of the batch that had some; a mark that lies behind that already stays."""
    state = progress("a", 3).owning(frozenset({0, 1, 2}), TablePositions({0: 0, 1: 0, 2: 0}, {1: 9}))
    ranges = {0: OffsetRange(0, 5), 1: OffsetRange(0, 5)}
    assert state.advanced(TopicBatch("a", ID, ranges, ())).at.dead_letter_marks == {0: None, 1: 9, 2: None}
    some = TopicBatch("a", ID, ranges, (), dead_letters=FileWritten("bad.parquet", 100, 1, "{}"))
    assert state.advanced(some).at.dead_letter_marks == {0: 5, 1: 9, 2: None}


def test_bytes_per_record_follow_what_is_read():
    state = progress("a", 1)
    assert state.bytes_per_record == 1000.0
    read = TopicBatch("a", ID, {0: OffsetRange(0, 5)}, (), records=5, consumed_bytes=10_000)
    assert state.advanced(read).bytes_per_record == pytest.approx(0.7 * 1000 + 0.3 * 2000)
    markers_only = TopicBatch("a", ID, {0: OffsetRange(0, 5)}, ())
    assert state.advanced(markers_only).bytes_per_record == 1000.0


def test_share_of_bad_records_forgets_what_is_older_than_a_thousand():
    state = progress("a", 1)
    assert state.bad_share is None
    for at, bad in ((0, 600), (600, 0), (1200, 0)):
        read = TopicBatch("a", ID, {0: OffsetRange(at, at + 600)}, (), records=600, bad_records=bad)
        state = state.advanced(read)
    assert state.bad_share == 0.0
    assert state.recent == ((600, 0), (600, 0))


def test_whoever_saw_that_a_cause_may_be_gone_has_all_but_bad_records_and_trials_looked_at():
    state = progress("a", 3).stopped({0: "bad record"}, StopCause.BAD_RECORD, 0.0)
    state = state.stopped({1: "corrupt", 2: "corrupt"}, StopCause.CORRUPT, 0.0).on_trial([2], 15.0)
    assert state.due(1.0) == set()
    at_once = state.looking_at_once(1.0)
    assert at_once.due(1.0) == {1}
    assert at_once.stops == state.stops | {1: replace(state.stops[1], look_at=1.0)}
