"""What each answer does to a round, case by case."""

import pytest

from kgs_core.errors import ProtocolError
from kgs_core.ingest.round.machine import answered, begin
from kgs_core.ingest.round.questions import (
    AskEnds,
    AskLogs,
    AskPositions,
    AskTopicIds,
    Commit,
    Ends,
    Landed,
    Logs,
    ReadBatch,
    ReadResult,
    TopicIds,
    Trouble,
)
from kgs_core.ingest.round.state import RoundLimits
from kgs_core.ingest.round.stops import TRIAL_S, StopCause, StoppedPartition, look_after_s
from kgs_core.lake.rule.batch import TablePositions, TopicBatch
from kgs_core.model import OffsetRange, TopicId, TopicPartition
from tests.core.ingest.round.round_consumer import Consumer
from tests.core.ingest.round.round_world import ID, World, progress

KINDS = {
    Ends: AskEnds, Logs: AskLogs, TopicIds: AskTopicIds, TablePositions: AskPositions, ReadResult: ReadBatch,
    Landed: Commit,
}  # fmt: skip
SAME, BOTH = TopicIds({"a": ID}), TopicIds({"a": ID, "b": ID})
STANDS, LANDED = TablePositions({0: 0, 1: 0}), Landed(committed=True)
TPS = A0, A1, _ = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def consumer(*, uses_dataframe=False):
    topics = {"a": progress("a", 2, uses_dataframe=uses_dataframe), "b": progress("b", 1)}
    return Consumer.starting(topics, World(dict.fromkeys(TPS, 9), dict.fromkeys(TPS, 0)))


def answer(here, *answers):
    """With its questions answered in turn; what is wrong with a question is (kind of question, Trouble)."""
    for each in answers:
        kind, given = each if isinstance(each, tuple) else (KINDS[type(each)], each)
        number = next(n for n, q in here.at.open.items() if isinstance(q, kind))
        here = here.given(number, here.world, given)
    return here


def asks(here):
    return [type(q) for q in here.at.open.values()]


def stops(here):
    return {TopicPartition(t.topic, p): s.cause for t in here.at.topics.values() for p, s in t.stops.items()}


def first_stop(here):
    return here.at.topics["a"].stops[0]


def batch(topic, **more):
    return TopicBatch(topic, ID, {0: OffsetRange(0, 5)}, (), records=5, **more)


def reading(*answers, **trouble):
    return answer(consumer(), ReadResult(**trouble), *answers)


def lost(*answers, after_s=5.0):
    """Partition 0 of `a` was out of range, and nothing more could be learnt of it; some seconds later."""
    nothing = (AskLogs, Trouble("")), (AskTopicIds, Trouble(""))
    return answer(
        reading(*nothing, troubles={A0: (StopCause.OUT_OF_RANGE, "out of range")}).next_round(after_s), *answers
    )


@pytest.mark.parametrize(
    ("trouble", "stopped"),
    [
        ({"troubles": {A0: (StopCause.OUT_OF_RANGE, "out of range")}}, {A0: StopCause.OUT_OF_RANGE}),
        ({"troubles": {A0: (StopCause.CORRUPT, "bad CRC")}}, {A0: StopCause.CORRUPT}),
        ({"troubles": {A0: (StopCause.DENIED, "not authorized")}}, {A0: StopCause.DENIED}),
        ({"troubles": {A0: (StopCause.NO_ANSWER, "nothing came")}}, {A0: StopCause.NO_ANSWER}),
        ({"failed": {"a": "the transform raised"}}, {A0: StopCause.TOPIC_FAILED, A1: StopCause.TOPIC_FAILED}),
        ({"unavailable": {"a": "disk full"}}, {A0: StopCause.NO_ANSWER, A1: StopCause.NO_ANSWER}),
        ({"stopped": {A0: (0, "not JSON")}}, {A0: StopCause.BAD_RECORD}),
        ({"stopped": {A0: (3, "behind what was read")}}, {}),
        ({"waiting": {A0: (3, "behind what was read")}}, {}),
        ({"failed": {"foreign": "of a topic that was given up meanwhile"}}, {}),
    ],
)
def test_trouble_stops_what_it_is_about_and_the_neighbour_is_committed(trouble, stopped):
    here = reading(batches=[batch("b")], **trouble)
    assert {k: v for k, v in stops(here).items() if v is not StopCause.BAD_RECORD} == {
        k: v for k, v in stopped.items() if v is not StopCause.BAD_RECORD
    }, "at once: whatever is asked about it may go wrong"
    if AskLogs in asks(here):
        here = answer(here, Logs({A0: Trouble("no answer")}))
    here = answer(here, BOTH, LANDED)
    assert stops(here) == stopped
    assert here.at.topics["b"].positions == {0: 5}
    assert not here.at.open


def test_what_kafka_says_once_stays_known_when_the_question_about_it_fails():
    restarted = Trouble("a broker is being restarted")
    here = reading(
        (AskLogs, restarted), (AskTopicIds, restarted), troubles={A0: (StopCause.OUT_OF_RANGE, "offset out of range")}
    )
    stop = first_stop(here)
    assert (stop.reason, stop.look_at) == ("offset out of range", look_after_s(StopCause.OUT_OF_RANGE, 1))


@pytest.mark.parametrize(("log", "words"), [((4, 9), "offsets 0 to 3 were deleted"), ((0, 9), "offset out of range")])
def test_reason_follows_from_what_the_log_has(log, words):
    assert (
        words
        in first_stop(
            reading(Logs({A0: log}), SAME, troubles={A0: (StopCause.OUT_OF_RANGE, "offset out of range")})
        ).reason
    )


def test_unknown_topic_needs_its_second_look_whatever_was_wrong_before():
    """After any earlier stop of any partition one answer of a broker that lags was told as "it was deleted"."""
    read = [TopicBatch("a", ID, {1: OffsetRange(0, 5)}, (), records=5)]
    expected = {A0: StopCause.CORRUPT, A1: StopCause.NO_ANSWER}
    here = reading(TopicIds({"a": None}), troubles={A0: (StopCause.CORRUPT, "bad CRC")}, batches=read)
    assert stops(here) == expected
    here = answer(here.next_round(1.0), STANDS, SAME, ReadResult(batches=read), TopicIds({"a": None}))
    assert stops(here) == expected, "it was there in between"


def test_topic_of_another_id_is_not_committed_and_stops_whole():
    here = reading(TopicIds({"a": TopicId("new"), "b": ID}), batches=[batch("a"), batch("b")])
    assert [q.batch.topic for q in here.at.open.values()] == ["b"]
    assert stops(here) == {A0: StopCause.OTHER_TOPIC, A1: StopCause.OTHER_TOPIC}


def test_topic_that_is_unknown_for_one_look_only_waits_for_the_second():
    here = reading(TopicIds({"a": None}), batches=[batch("a")])
    assert stops(here) == {A0: StopCause.NO_ANSWER}
    assert not here.at.topics["a"].reported_stops
    here = answer(here.next_round(1.0), STANDS)
    assert stops(answer(here, TopicIds({"a": None}))) == {A0: StopCause.OTHER_TOPIC, A1: StopCause.OTHER_TOPIC}
    assert answer(here, SAME).at.topics["a"].active == {0: 0, 1: 0}


@pytest.mark.parametrize(
    ("given", "asked", "stopped"),
    [
        (Landed(committed=False), [AskPositions], {}),
        (Trouble("no answer: it may have landed"), [AskPositions], {}),
        (Trouble("appendOnly was unset", StopCause.TABLE), [], {A0: StopCause.TABLE, A1: StopCause.TABLE}),
        (Trouble("denied", StopCause.DENIED), [], {A0: StopCause.DENIED, A1: StopCause.DENIED}),
    ],
)
def test_commit_that_did_not_land_moves_nothing(given, asked, stopped):
    here = reading(SAME, (Commit, given), batches=[batch("a")])
    assert asks(here) == asked
    assert stops(here) == stopped
    assert here.at.topics["a"].positions[0] == 0
    assert set(here.at.refused) == {"a"}


def test_after_a_commit_of_unknown_outcome_the_table_is_asked_until_it_answers():
    here = reading(SAME, (Commit, Trouble("?")), (AskPositions, Trouble("no answer")), batches=[batch("a")])
    assert here.at.topics["a"].active == {}
    here = here.next_round(0.5)
    assert asks(here) == [ReadBatch], "not due yet"
    here = answer(answer(here, ReadResult()).next_round(1.0), SAME, TablePositions({0: 5, 1: 0}))
    assert here.at.topics["a"].active == {0: 5, 1: 0}, "it had landed"


def test_table_that_answers_and_takes_no_commit_waits_with_the_reason_longer_and_longer():
    """It was read again at once, for ever: seconds of every round, a new file each, and nobody was told."""
    full = Commit, Trouble("disk full")
    here = reading(BOTH, full, LANDED, STANDS, batches=[batch("a"), batch("b")])
    stop = first_stop(here)
    assert (stop.reason, stop.cause, stop.look_at) == (
        "disk full", StopCause.NO_ANSWER, look_after_s(StopCause.NO_ANSWER, 1),
    )  # fmt: skip
    assert stops(here) == {A0: StopCause.NO_ANSWER}, "nothing of the other partition was in the batch"
    here = answer(here.next_round(1.0), STANDS, SAME, ReadResult(batches=[batch("a")]), SAME, full, STANDS)
    assert first_stop(here).tries == 2


def test_commit_that_landed_without_an_answer_stops_nothing():
    here = reading(SAME, (Commit, Trouble("?")), TablePositions({0: 5, 1: 0}), batches=[batch("a")])
    assert (stops(here), here.at.topics["a"].active) == ({}, {0: 5, 1: 0})


def test_round_names_the_batches_that_landed_and_no_others():
    here = reading(BOTH, batches=[batch("a"), batch("b")])
    assert answer(here, LANDED, LANDED).at.landed == (batch("a"), batch("b"))
    assert answer(here, (Commit, Trouble("denied", StopCause.DENIED)), LANDED).at.landed == (batch("b"),)


@pytest.mark.parametrize(
    ("trouble", "cause", "words", "is_looked_at"),
    [("stopped", StopCause.BAD_RECORD, "bad record: why", False), ("waiting", StopCause.NO_ANSWER, "why", True)],
    ids=["bad", "cannot be judged while a registry does not answer"],
)
def test_a_record_stops_only_once_what_stands_before_it_is_in_the_table(trouble, cause, words, is_looked_at):
    here = reading(BOTH, batches=[batch("a"), batch("b")], **{trouble: {A0: (5, "why")}})
    landed = answer(here, LANDED, LANDED)
    stop = first_stop(landed)
    assert (stop.cause, stop.position, stop.reason) == (cause, 5, words)
    assert (stop.look_at is not None) == is_looked_at
    assert landed.at.topics["b"].positions == {0: 5}
    refused = answer(here, Landed(committed=False), LANDED, TablePositions({0: 9, 1: 0}))
    assert stops(refused) == {}, "another consumer has read past it"


def test_dataframe_partition_without_a_leader_waits_alone():
    here = answer(consumer(uses_dataframe=True), Ends({A0: Trouble("no leader"), A1: 9}))
    question = next(iter(here.at.open.values()))
    assert question.planned is not None
    assert question.planned.ranges == {1: OffsetRange(0, 9)}
    assert stops(here) == {A0: StopCause.NO_ANSWER}


@pytest.mark.parametrize(("log", "stopped"), [((0, 100), {}), ((0, 90), {A0: StopCause.OUT_OF_RANGE})])
def test_dataframe_position_behind_an_open_transaction_is_not_lost(log, stopped):
    """`start: latest` while a transaction is open: the end for committed reads lies before the position."""
    here = consumer(uses_dataframe=True)
    here = Consumer.starting({"a": here.at.topics["a"].owning(frozenset({0}), TablePositions({0: 100}))}, here.world)
    here = answer(here, Ends({A0: 90}), ReadResult(), Logs({A0: log}), SAME)
    assert stops(here) == stopped
    assert all(stop.reason for stop in here.at.topics["a"].stops.values())


def test_stop_is_read_on_trial_and_over_when_nothing_is_said_against_it():
    here = lost(STANDS, SAME)
    assert here.at.topics["a"].active == {0: 0, 1: 0}
    assert here.at.topics["a"].reported_stops[0].reason == "out of range", "told until it is known to be over"
    assert stops(answer(here, ReadResult()).next_round(TRIAL_S)) == {}
    again = answer(here, ReadResult(troubles={A0: (StopCause.OUT_OF_RANGE, "out of range")}))
    assert first_stop(again).look_at == 5.0 + look_after_s(StopCause.OUT_OF_RANGE, 2)


def test_trial_lasts_until_what_was_read_has_been_worked_on():
    """With a long `wait_time_s` a transform that always fails was told as going on, and as stopped, in turns."""
    wait_s = 30.0
    topic = progress("a", 1).stopped({0: "the transform raised"}, StopCause.TOPIC_FAILED, 0.0)
    at = begin({"a": topic}, RoundLimits(1000, wait_s), 10.0)
    for found in (TablePositions({0: 0}), SAME):
        number = next(n for n, q in at.open.items() if isinstance(q, KINDS[type(found)]))
        at = answered(at, number, found, 10.0)
    assert at.topics["a"].active == {0: 0}
    assert begin(at.topics, at.pace, 10.0 + wait_s).topics["a"].reported_stops
    assert not begin(at.topics, at.pace, 10.0 + wait_s + TRIAL_S).topics["a"].stops


def test_committed_batch_ends_a_stop_at_once():
    here = lost(STANDS, SAME, ReadResult(batches=[batch("a")]), SAME, LANDED)
    assert (stops(here), dict(here.at.topics["a"].tries)) == ({}, {})


def test_look_without_an_answer_is_made_again_later():
    here = lost((AskPositions, Trouble("no answer")), SAME)
    stop = first_stop(here)
    assert (stop.reason, stop.tries, stop.look_at) == ("out of range", 2, 5.0 + look_after_s(StopCause.OUT_OF_RANGE, 2))
    assert here.at.topics["a"].active == {1: 0}


def test_what_is_not_owned_does_not_stop():
    assert progress("a", 1).stopped({0: "x", 7: "x"}, StopCause.CORRUPT, 0.0).stops.keys() == {0}


@pytest.mark.parametrize("cause", list(StopCause))
def test_looks_come_later_and_later_and_never_stop_coming(cause):
    looks = [look_after_s(cause, tries) for tries in range(1, 200)]
    if cause is StopCause.BAD_RECORD:
        assert set(looks) == {None}
    else:
        assert looks == sorted(looks)
        assert looks[0] <= 10.0
        assert looks[-1] == (30.0 if cause is StopCause.NO_ANSWER else 300.0)


def test_passing_trouble_is_reported_only_where_it_lasts():
    told = [StoppedPartition("r", StopCause.NO_ANSWER, 0, 1.0, tries).is_reported for tries in range(1, 6)]
    assert told == [False, False, False, True, True]
    assert StoppedPartition("r", StopCause.TABLE, 0, 1.0, 1).is_reported


def test_known_trouble_is_not_hidden_by_no_answer():
    stopped = progress("a", 1).stopped({0: "transform raised"}, StopCause.TOPIC_FAILED, 0.0)
    again = stopped.stopped({0: "no answer"}, StopCause.NO_ANSWER, 100.0)
    assert (again.stops[0].reason, again.stops[0].tries) == ("transform raised", 2)


@pytest.mark.parametrize("trouble", ["failed", "unavailable"])
def test_trouble_of_a_topic_leaves_alone_what_of_it_was_not_read(trouble):
    """What a person must do about the one (`kgs accept-loss`) was hidden behind the other, for up to five minutes."""
    here = lost(ReadResult(**{trouble: {"a": "the transform raised"}}), after_s=0.1)
    found = [(p, stop.reason) for p, stop in sorted(here.at.topics["a"].stops.items())]
    assert found == [(0, "out of range"), (1, "the transform raised")]


def test_answer_of_another_kind_is_an_error_of_ours():
    here = consumer()
    with pytest.raises(ProtocolError, match="Landed is no answer to ReadBatch"):
        answered(here.at, next(iter(here.at.open)), Landed(committed=True), 0.0)
