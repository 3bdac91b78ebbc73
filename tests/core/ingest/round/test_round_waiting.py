"""A record that cannot be judged while a registry does not answer."""

from kgs_core.ingest.round.progress import TablePositions
from kgs_core.ingest.round.questions import AskPositions, AskTopicIds, Commit, Landed, TopicIds
from kgs_core.ingest.round.stops import StopCause
from tests.core.ingest.round.test_round_table import A0, ID, answer, batch, reading, stops


def test_record_that_waits_for_a_registry_lets_pass_what_stands_before_it_and_is_read_again():
    here = reading(batches=[batch("a"), batch("b")], waiting={A0: (5, "the registry does not answer")})
    here = answer(here, AskTopicIds, TopicIds({"a": ID, "b": ID}))
    here = answer(answer(here, Commit, Landed(committed=True)), Commit, Landed(committed=True))
    stop = here.at.topics["a"].stops[0]
    assert (stop.cause, stop.position, stop.reason) == (StopCause.NO_ANSWER, 5, "the registry does not answer")
    assert stop.look_at is not None
    assert here.at.topics["b"].positions == {0: 5}
    refused = reading(batches=[batch("a")], waiting={A0: (5, "the registry does not answer")})
    refused = answer(refused, AskTopicIds, TopicIds({"a": ID}))
    refused = answer(answer(refused, Commit, Landed(committed=False)), AskPositions, TablePositions({0: 9, 1: 0}))
    assert stops(refused) == {}, "another consumer has read past it"


def test_record_that_waits_behind_what_was_read_stops_nothing():
    here = reading(batches=[batch("b")], waiting={A0: (3, "behind what was read")})
    here = answer(answer(here, AskTopicIds, TopicIds({"b": ID})), Commit, Landed(committed=True))
    assert stops(here) == {}
