"""What a consumer says of topics with too many bad records: once, and only while they are its own."""

import logging

import pytest

from kgs_core.ingest.opening.topic_state import TopicState
from kgs_core.ingest.round.progress import SHARE_RECORDS
from kgs_core.lake.rule.batch import TopicBatch
from kgs_core.model import OffsetRange
from kgs_core.runtime.throughput_log import BadTopics
from tests.sink import Sink


@pytest.fixture
def state(tmp_path):
    """Topic `t`, of which every fifth record is no JSON, with three partitions of ours."""
    from kgs_core.lake.files.storage import Storage

    state = TopicState(Sink(Storage(str(tmp_path))).started(3).table)
    state.own(frozenset({0, 1, 2}))
    return state


def read(state, records, bad, partition=0):
    begin = state.progress.positions[partition]
    ranges = {partition: OffsetRange(begin, begin + records)}
    ids = state.table.ids
    batch = TopicBatch(ids.topic, ids.topic_id, ranges, (), records=records, bad_records=bad)
    state.progress = state.progress.advanced(batch)


def logged(caplog):
    found = [(r.levelname, r.getMessage().split(" topic=")[0]) for r in caplog.records]
    caplog.clear()
    return found


@pytest.fixture
def bad(caplog):
    caplog.set_level(logging.INFO, "kgs_core.runtime.throughput_log")
    return BadTopics()


BEGINS, ENDS = [("WARNING", "too many bad records")], [("INFO", "few bad records again")]


def test_it_is_logged_when_it_begins_and_when_it_ends_and_not_with_every_batch(state, bad, caplog):
    bad.look([state])
    assert (bad.shares, logged(caplog)) == ({}, [])
    for _ in range(5):
        read(state, 400, 400)
        bad.look([state])
    assert (bad.shares, logged(caplog)) == ({"t": 1.0}, BEGINS)
    for _ in range(5):
        read(state, 400, 0)
        bad.look([state])
    assert (bad.shares, logged(caplog)) == ({}, ENDS)


def test_the_line_names_topic_share_limit_and_table(state, bad, caplog):
    read(state, 100, 75)
    bad.look([state])
    (line,) = [r.getMessage() for r in caplog.records]
    assert line == (
        "too many bad records topic=t share=0.750 max=0.500 dead_letters=t_dead_letters: fix the rule or the producer"
    )


def test_who_has_let_it_go_says_nothing_and_forgets_what_was_read(state, bad, caplog):
    read(state, 2000, 2000)
    bad.look([state])
    state.give_up(frozenset({0, 1}))
    bad.look([state])
    assert bad.shares == {"t": 1.0}, "one partition is still ours"
    state.give_up(frozenset({2}))
    bad.look([state])
    assert (bad.shares, logged(caplog)) == ({}, BEGINS)
    state.own(frozenset({1}))
    bad.look([state])
    assert bad.shares == {}, "what it was like before is no news of what it is like now"
    read(state, 3, 3, partition=1)
    bad.look([state])
    assert (bad.shares, logged(caplog)) == ({"t": 1.0}, BEGINS)


def test_after_a_move_the_first_thousand_records_tell(state, bad):
    for _ in range(SHARE_RECORDS // 100):
        read(state, 100, 60)
    bad.look([state])
    assert bad.shares == {"t": 0.6}


def test_a_batch_counts_its_bad_records_whether_their_dead_letters_are_new_or_not(tmp_path):
    """A batch that is read again after a crash has its dead letters in the lake already."""
    from kgs_core.lake.files.storage import Storage

    sink = Sink(Storage(str(tmp_path))).started(1)
    first = sink.read({0: (0, 50)})
    sink.table.commit(first)
    again = sink.read({0: (0, 50)}, {0: 50})
    assert (first.records, first.bad_records, again.bad_records) == (50, 10, 10)
    assert (first.dead_letters is None, again.dead_letters) == (False, None)
