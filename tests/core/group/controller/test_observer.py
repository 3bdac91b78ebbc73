"""Observers without the right to write keep a group going, whenever they begin, and ask for no idle run."""

from random import Random

import pytest

from kgs_core.group.controller.state import Result
from kgs_core.group.protocol import RunState
from kgs_core.model import ConsumerId
from tests.core.group.controller.watched_group import WatchedGroup, options
from tests.world.chance import FaultRates

FOUR = {"a": 50, "b": 50, "c": 50, "d": 50}


@pytest.fixture
def group():
    group = WatchedGroup.of(options(), **FOUR)
    group.settle()
    return group


def results(group):
    return [run.state.outcome.result for run in group.world.controllers if run.state.outcome]


def test_a_group_comes_up_by_one_run_and_a_launch_of_each_consumer(group):
    assert group.readers() == [1, 2]
    assert len(group.asked) == 1
    assert len(group.world.fleet.started) == 2
    assert results(group) == [Result.CONVERGED]


def test_a_group_at_rest_is_asked_nothing_also_where_there_is_no_better_packing(group):
    group.rounds(400)  # the sentinel's timeout comes by at 300 s
    assert len(group.asked) == 1
    assert group.world.fleet.started == list(group.world.fleet.processes.values())


def test_growth_asks_at_once_and_starts_who_is_missing_while_the_run_goes_on(group):
    group.speeds(a=90, b=90, c=50, d=50)
    group.until(lambda: len(group.asked) == 2, 6)
    assert "above consumer_capacity" in group.asked[-1][1]
    group.until(lambda: len(group.world.fleet.started) == 3)
    assert group.run is not None, "it waits for the new consumer"
    group.settle()
    assert group.readers() == [1, 2, 3]
    assert len(group.asked) == 2


def test_more_growth_while_a_run_waits_does_not_keep_its_consumers_from_being_started(group):
    """Else the run would wait for consumers that nobody starts, until its time is over."""
    group.speeds(a=90, b=90, c=50, d=50)
    group.until(lambda: group.run is not None)
    group.speeds(a=90, b=90, c=90, d=90)
    group.until(lambda: group.readers() == [1, 2, 3, 4], 60)
    assert Result.TIMED_OUT not in results(group)


@pytest.mark.parametrize("suspect_after_s", [30, 90])
def test_when_everybody_is_silent_somebody_notices(suspect_after_s):
    """Nobody's report tells how old the others are; and 90 s are more than two observers live."""
    group = WatchedGroup.of(options(suspect_after_s=suspect_after_s), a=50)
    group.settle()
    group.world.reading(ConsumerId(1)).is_frozen = True
    since = group.now
    group.until(lambda: group.readers() == [1, 2], 300)
    assert group.now - since < suspect_after_s + 60


def test_a_wrong_clock_makes_no_suspects(group):
    """An hour ahead of the brokers': whoever is heard lives."""
    group.world.view()
    watch = group.observer(ahead_ms=3_600_000)
    for _ in range(20):
        group.round()
        watch = watch.read(group.world.topics.everything(), group.now)
        assert watch.state.suspects() == frozenset()


def test_silence_after_a_pause_of_the_observer_counts_from_anew(group):
    watch = group.observer()
    watch = watch.read((), group.now + 60)
    assert watch.state.suspects() == frozenset()


def test_an_end_in_order_needs_no_run_of_its_own_for_its_tombstone():
    """Its run would find nothing else to do; the next one records the death along with what it is for."""
    group = WatchedGroup.of(options(), **FOUR)
    group.settle()
    group.speeds(a=20, b=20, c=20, d=20)
    group.until(lambda: len(group.asked) == 2, 400)
    group.world.fleet.is_blind = True  # the process is gone only after the run
    group.until(lambda: len(results(group)) == 2)
    group.world.fleet.is_blind = False
    group.rounds(250)
    assert len(group.world.fleet.living()) == 1
    assert len(group.asked) == 2
    group.rounds(150)
    assert [reason.split(":")[0] for _, reason in group.asked[2:]] == ["ended processes are to be recorded"]


def test_people_are_heard(group):
    group.world.set_desired_state(RunState.PAUSED)
    group.until(lambda: group.readers() == [])
    group.rounds(60)
    assert len(group.world.fleet.living()) == 2
    group.world.set_desired_state(RunState.RUNNING)
    group.settle()
    assert group.readers() == [1, 2]
    group.world.set_desired_state(RunState.STOPPED)
    group.until(lambda: group.world.fleet.living() == [])
    asked = len(group.asked)
    group.rounds(100)
    assert group.world.fleet.living() == []
    assert len(group.asked) == asked


def test_a_run_that_nobody_wants_is_ended_and_its_end_is_no_failure(group):
    stray = group.world.fleet.add(ConsumerId(7))
    stray.started_at += 20  # it takes its time to come up
    group.until(lambda: not stray.lives)
    assert group.stopped == [stray.handle]
    group.speeds(**dict.fromkeys("abcdefg", 90))
    group.until(lambda: group.world.fleet.of(ConsumerId(7)) != [], 60)


def test_an_observer_that_never_was_told_of_the_fleet_starts_nobody(group):
    group.world.reading(ConsumerId(1)).kill()
    watch = group.observer()
    assert watch.recommend(group.now)[1].launch == ()


def test_what_was_read_is_named_by_offset_and_age(group):
    watch = group.observer(ahead_ms=4000)
    newest = group.world.topics.logs[("controller.metadata", 0)][-1]
    assert (watch.newest_report.offset, watch.newest_report.at) == (
        newest.offset,
        pytest.approx(newest.timestamp_ms / 1000 - 4),
    )
    assert watch.target_offset == group.world.topics.logs[("consumer.metadata", 0)][-1].offset
    assert watch.read((), group.now + 1).newest_report == watch.newest_report


TROUBLE = FaultRates(late=0.2, doubled=0.1, report_lost=0.05, write_lost=0.05, write_unsure=0.05, start_fails=0.1)


@pytest.mark.parametrize("seed", range(12))
def test_through_troubles_the_group_comes_to_rest(seed):
    """Consumers die and freeze, runs are killed, Dagster is restarted; nothing is started twice."""
    random = Random(seed)
    membership = {"suspect_after_s": 6, "start_timeout_s": 10}
    group = WatchedGroup.of(options(spares=seed % 2, **membership), seed, **FOUR)
    group.world.chance.trouble = TROUBLE
    for _ in range(150):
        if random.random() < 0.12:
            mischief(group, random)
        group.round()
    group.world.heal()
    group.world.set_desired_state(RunState.RUNNING)
    group.settle(400)
    assert {p for process in group.world.fleet.living() for p in process.owned} == group.world.load.speeds.keys()


def mischief(group, random):
    living = group.world.fleet.living()
    match random.randrange(6):
        case 0 if living:
            random.choice(living).kill()
        case 1 if living:
            one = random.choice(living)
            one.is_frozen = not one.is_frozen
        case 2 if group.run is not None:
            group.run.kill()
        case 3:
            group.restart()
        case 4:
            group.speeds(**{name: random.randrange(1, 90) for name in "abcdef"[: random.randrange(3, 7)]})
        case 5:
            group.world.set_desired_state(random.choice((RunState.RUNNING, RunState.PAUSED)))
        case _:
            pass
