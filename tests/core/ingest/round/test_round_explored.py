"""Every answer to every question, in every order, to a depth: what holds of a consumer's rounds, whatever happens.

Depth counts answers, events outside (a late commit lands, another consumer commits), and rounds that are parted. A
round asks two to six questions, so 18 is four to eight rounds. `make soak` goes deeper.
"""

import gc
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kgs_core.ingest.round.ahead import foresee
from kgs_core.ingest.round.machine import answered
from kgs_core.ingest.round.questions import AddColumns, Commit, Landed, ReadBatch, Trouble, topic_of
from kgs_core.ingest.round.state import Round
from kgs_core.ingest.round.stops import StopCause
from kgs_core.model import TopicPartition
from tests.core.ingest.round.round_consumer import Consumer
from tests.core.ingest.round.round_world import SICK, WELL, World, events, every_answer, progress

ROUND_S = 4.0
"""Between rounds: a first look is due after one or two of them, a trial is over after two."""
LONG_S = 400.0
"""Longer than the longest look."""
CALM_ROUNDS = 5


@pytest.fixture
def collector_paused() -> Iterator[None]:
    """Ten thousands of states are kept, none is garbage, and the collector would walk over them again and again."""
    gc.disable()
    yield
    gc.enable()


def consumer(*, uses_dataframe: bool, partitions: int = 1, reads_ahead: bool = False) -> Consumer:
    topics = {t: progress(t, partitions, uses_dataframe=uses_dataframe) for t in (SICK, WELL)}
    tps = [TopicPartition(t, p) for t in topics for p in range(partitions)]
    world = World(dict.fromkeys(tps, 2), dict.fromkeys(tps, 0), rivals=1)
    return Consumer.starting(topics, replace(world, most=1) if reads_ahead else world)


def late_steps(here: Consumer) -> Iterator[Consumer]:
    for aside in here.asides:
        for number, question in aside.open.items():
            for world, answer in every_answer(here.world, question):
                yield here.given_late(aside, number, world, answer)
    if (parted := here.parted()).at is not here.at:
        yield parted


def readings_ahead(here: Consumer) -> Iterator[Consumer]:
    if here.ahead is None and (ahead := foresee(here.at)) is not None:
        for world, answer in every_answer(here.world, ahead.question):
            yield here.reading_ahead(ahead, world, answer)


def steps(here: Consumer, *, is_patient: bool, reads_ahead: bool = False) -> Iterator[Consumer]:
    if (ready := here.answered_ahead()) is not None:
        yield ready
        return
    if not is_patient:
        yield from late_steps(here)
    if reads_ahead:
        yield from readings_ahead(here)
    if not here.at.open:
        yield here.next_round(ROUND_S)
        return
    for world in events(here.world):
        yield replace(here, world=world)
    for number, question in here.at.open.items():  # in any order
        for world, answer in every_answer(here.world, question):
            yield here.given(number, world, answer)


def check(here: Consumer) -> None:
    for topic in here.topics.values():
        assert topic.owned == topic.active.keys() | topic.stops.keys()
        for p, stop in topic.stops.items():
            assert stop.reason
            assert (stop.look_at is None) == (stop.cause is StopCause.BAD_RECORD)
            # Nothing is passed over: what the consumer believes to be in the table is there.
            assert topic.positions[p] <= here.world.lake[TopicPartition(topic.topic, p)]
        for p, position in topic.positions.items():
            assert position <= here.world.lake[TopicPartition(topic.topic, p)]
    for question in here.at.open.values():
        assert not (here.distrusted and isinstance(question, Commit | AddColumns) and topic_of(question) == SICK)
    for at in (here.at, *here.asides):
        check_questions(at, here.now)
    for aside in here.asides:
        assert not any(isinstance(question, ReadBatch) for question in aside.open.values())


def check_questions(at: Round, now: float) -> None:
    for number in range(at.asked + 2):  # late, twice, and of a question that was never asked
        if number not in at.open:
            assert answered(at, number, Landed(committed=True), now) is at
            assert answered(at, number, Trouble("late"), now) is at


def check_after_round(here: Consumer, ends_well: dict[object, int], *, is_every_turn: bool) -> None:
    """Once nothing is wrong any more, all is in the table after `CALM_ROUNDS`.

    Args:
        here: at the end of a round.
        ends_well: beginning of a calm round -> the fewest rounds, it among them, after which that was found; added to.
        is_every_turn: every round reads every topic.
    """
    assert not here.topics[WELL].stops
    if is_every_turn and WELL in here.at.topics:  # also where the table of the other one never answers
        assert all(here.world.lake[tp] == end for tp, end in here.world.ends.items() if tp.topic == WELL)
    calm, passed = here, {}
    for left in range(CALM_ROUNDS, 0, -1):
        calm = calm.calmed(LONG_S)
        key = calm.key()
        if ends_well.get(key, left + 1) <= left:
            break
        passed[key] = left
        calm = calm.calm_round(LONG_S)
    else:
        check_all_is_read(here, calm)
    ends_well |= passed


def check_all_is_read(here: Consumer, calm: Consumer) -> None:
    assert calm.at.topics.keys() == {SICK, WELL}
    for topic in calm.at.topics.values():
        for p in topic.owned:
            tp = TopicPartition(topic.topic, p)
            where = (topic, calm.world, here.topics[topic.topic], here.world)
            assert topic.positions[p] == calm.world.lake[tp] == calm.world.range_of(tp, 0).end, where
            assert {s.cause for s in topic.stops.values()} <= {StopCause.BAD_RECORD}
            assert bool(topic.stops.get(p)) == (tp == (SICK, 0) and here.world.bad is not None)


def to_depths(shallow: int, deep: int, *course: bool | int) -> list[object]:
    """A course to a depth that a few seconds are enough for, and to one that takes several times as long."""
    uses_dataframe, partitions, *rest = course
    return [
        pytest.param(uses_dataframe, partitions, depth, *rest, marks=marks)
        for depth, marks in ((shallow, ()), (deep, pytest.mark.soak))
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("collector_paused")
@pytest.mark.parametrize(
    ("uses_dataframe", "partitions", "depth", "is_patient", "reads_ahead"),
    [
        *to_depths(15, 18, False, 1, True, False),
        *to_depths(15, 18, True, 1, True, False),
        *to_depths(10, 12, False, 2, True, False),
        *to_depths(10, 13, False, 1, False, False),
        *to_depths(10, 13, True, 1, False, False),
        *to_depths(10, 12, False, 1, True, True),
        *to_depths(8, 10, False, 2, True, True),
        *to_depths(7, 10, False, 1, False, True),
    ],
)
def test_whatever_is_answered(
    uses_dataframe: bool, partitions: int, depth: int, is_patient: bool, reads_ahead: bool
) -> None:
    start = consumer(uses_dataframe=uses_dataframe, partitions=partitions, reads_ahead=reads_ahead)
    seen, layer, rounds, used = {start.key()}, [start], 0, 0
    ends_well: dict[object, int] = {}
    for _ in range(depth):
        following = []
        for here in layer:
            for after in steps(here, is_patient=is_patient, reads_ahead=reads_ahead):
                used += here.ahead is not None and after.ahead is None and len(after.at.result.batches)
                if (key := after.key()) in seen:
                    continue
                seen.add(key)
                check(after)
                if not after.at.open:
                    rounds += 1
                    check_after_round(after, ends_well, is_every_turn=not uses_dataframe and not reads_ahead)
                following.append(after)
        layer = following
    print(f"{len(seen)} states, {rounds} ends of rounds, {used} batches that were read ahead")
    assert rounds > 100
    assert bool(used) == reads_ahead
