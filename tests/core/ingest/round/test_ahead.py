"""What is read beside the commits of a round, and which of it the next round takes."""

from dataclasses import replace

import pytest

from kgs_core.ingest.round.ahead import foresee
from kgs_core.ingest.round.machine import answered, begin
from kgs_core.ingest.round.questions import Commit, Landed, ReadBatch, ReadResult
from kgs_core.ingest.round.state import Round, Stage
from kgs_core.ingest.round.stops import StopCause
from kgs_core.lake.rule.batch import TablePositions, TopicBatch
from kgs_core.model import OffsetRange, TopicId, TopicPartition
from kgs_core.ports import FileWritten
from tests.core.ingest.round.round_world import ID, PACE, progress

A, A1, B = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
FILE = FileWritten("f", 1, 1, "")


def batch(topic, start, **more):
    return TopicBatch(topic, ID, {0: OffsetRange(start, start + 3)}, (), records=3, **more)


def committing(*, uses_dataframe=False):
    """A round that commits a batch of each of two topics; that of `a` has dead letters and an epoch."""
    topics = {"a": progress("a", 1), "b": progress("b", 1, uses_dataframe=uses_dataframe)}
    batches = (batch("a", 0, dead_letters=FILE, leader_epochs={0: 7}), batch("b", 0))
    at = Round(PACE, topics, stage=Stage.COMMIT, batches=batches, same=frozenset({"a", "b"}))
    return at.asking([Commit(each) for each in batches])


def foreseen(at):
    ahead = foresee(at)
    assert ahead is not None
    return ahead


def reading(topics):
    """A round, where it reads."""
    at = begin(topics, PACE, 0.0)
    (question,) = at.open.values()
    assert isinstance(question, ReadBatch)
    return at, question


def test_the_next_round_asks_what_was_foreseen_and_takes_all_of_the_answer():
    ahead = foreseen(committing())
    assert ahead.question.start == {A: 3, B: 3}
    assert (ahead.at.topics["a"].at.dead_letter_marks, ahead.at.topics["a"].at.leader_epochs) == ({0: 3}, {0: 7})
    at = committing()
    for number in list(at.open):
        at = answered(at, number, Landed(committed=True), 0.0)
    at, question = reading(at.topics)
    assert question == ahead.question
    result = ReadResult(
        [batch("a", 3), batch("b", 3)],
        troubles={B: (StopCause.OUT_OF_RANGE, "gone")},
        failed={"a": "raised"},
        problems={"x"},
    )
    assert ahead.answer(result, at, question, {"a", "b"}) == result


def test_nothing_of_a_topic_whose_batch_did_not_land_is_taken():
    ahead = foreseen(committing())
    topics = {"a": progress("a", 1), "b": ahead.at.topics["b"]}
    at, question = reading(topics)
    result = ReadResult(
        [batch("a", 3), batch("b", 3)], troubles={A: (StopCause.CORRUPT, "bad CRC")}, stopped={B: (3, "bad")}
    )
    assert ahead.answer(result, at, question, {"a", "b"}) == ReadResult([batch("b", 3)], stopped={B: (3, "bad")})


def two_read_ahead(*, has_second):
    """Two partitions of `a`: the batch that was read ahead has both or the first alone; something is said of each."""
    ranges = {0: OffsetRange(3, 6), 1: OffsetRange(3, 6)}
    first = TopicBatch("a", ID, {p: OffsetRange(0, 3) for p in ranges}, None)
    at = Round(PACE, {"a": progress("a", 2)}, stage=Stage.COMMIT, batches=(first,), same=frozenset({"a"}))
    ahead = foreseen(at.asking([Commit(first)]))
    read = ranges if has_second else {0: ranges[0]}
    said = ReadResult(
        [TopicBatch("a", ID, read, None)], stopped={A: (6, "bad"), A1: (3, "bad")}, failed={"a": "raised"}
    )
    return ahead, said


def test_a_partition_that_stops_leaves_a_batch_that_has_nothing_of_it():
    ahead, said = two_read_ahead(has_second=False)
    stopped = ahead.at.topics["a"].stopped({1: "bad record"}, StopCause.BAD_RECORD, 0.0)
    at, question = reading({"a": stopped})
    assert question.start == {A: 3}
    assert ahead.answer(said, at, question, {"a"}) == ReadResult(said.batches, stopped={A: (6, "bad")})


def test_a_batch_with_a_partition_that_stopped_goes_with_all_that_is_said_of_its_others():
    """They are read again, and what is said of them is said again then."""
    ahead, said = two_read_ahead(has_second=True)
    stopped = ahead.at.topics["a"].stopped({1: "bad record"}, StopCause.BAD_RECORD, 0.0)
    assert ahead.answer(said, *reading({"a": stopped}), {"a"}) == ReadResult()


def test_a_partition_that_was_not_foreseen_is_read_by_the_round_after_that():
    ahead, said = two_read_ahead(has_second=True)
    topic = ahead.at.topics["a"]
    more = replace(topic, owned=topic.owned | {2}, at=replace(topic.at, next_offset={**topic.positions, 2: 0}))
    assert ahead.answer(said, *reading({"a": more}), {"a"}) == said


def test_nothing_of_a_topic_that_may_not_be_taken_is_taken():
    ahead, said = two_read_ahead(has_second=True)
    assert ahead.answer(said, *reading(ahead.at.topics), {"b"}) is None


@pytest.mark.parametrize(
    "change",
    [
        {"at": TablePositions({0: 3}, {0: 4}, {0: 7})},
        {"at": TablePositions({0: 3}, {0: 3}, {0: 8})},
        {"at": TablePositions({0: 4}, {0: 3}, {0: 7})},
        {"topic_id": TopicId("another")},
        {"owned": frozenset()},
    ],
)
def test_a_topic_of_which_anything_is_otherwise_than_foreseen_is_read_again(change):
    ahead = foreseen(committing())
    at, question = reading({"a": replace(ahead.at.topics["a"], **change)})
    assert ahead.answer(ReadResult([batch("a", 3)]), at, question, {"a", "b"}) is None


def test_topics_that_take_turns_are_not_read_ahead_and_nothing_is_without_a_commit():
    assert foresee(committing(uses_dataframe=True)) is None
    assert foresee(replace(committing(), open={})) is None
    assert foresee(replace(committing(), is_aside=True)) is None
    assert foresee(begin({"a": progress("a", 1)}, PACE, 0.0)) is None


def test_what_lies_below_the_mark_of_dead_letters_is_read_again():
    """Another owner may have added letters there, and the mark stays where it is."""
    ahead = foreseen(committing())
    topics = {**ahead.at.topics, "a": replace(ahead.at.topics["a"], at=TablePositions({0: 3}, {0: 7}, {0: 7}))}
    ahead = replace(ahead, at=replace(ahead.at, topics=topics))
    result = ReadResult([batch("a", 3), batch("b", 3)])
    assert ahead.answer(result, *reading(topics), {"a", "b"}) == ReadResult([batch("b", 3)])
