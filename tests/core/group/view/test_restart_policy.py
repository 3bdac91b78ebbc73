"""Who is started, who has to wait and who is quarantined. Defaults: 120 s to report, 3 attempts, 5 s of back-off."""

from dataclasses import replace
from random import Random

import pytest

from kgs_core.config.packing import PackingSettings
from kgs_core.group.controller.state import ControllerState, Options
from kgs_core.group.protocol import (
    DesiredState,
    Ending,
    Heartbeat,
    Incarnation,
    Member,
    Phase,
    Received,
    Report,
    Starting,
)
from kgs_core.group.view.lifetimes import LONG_LIFE_S, Lifetime, take_lives
from kgs_core.group.view.restart_policy import History, Refusal, Starts, plan_starts, retry_after_s
from kgs_core.model import ConsumerId
from kgs_core.ports import Run
from tests.processes import a_process

TWO = ConsumerId(2)


def run(age_s, *, over=True, handle="run-1", consumer=TWO, exit_code=None):
    return Run(consumer, handle, age_s, over, exit_code)


def failed(*ages_s):
    """Runs that ended before their first report."""
    return [run(age_s, handle=f"run-{age_s}") for age_s in ages_s]


def life(lived_s, *, handle="run-1", ended=False, consumer=TWO, name="x"):
    return {Incarnation(name): Lifetime(Member(consumer, Incarnation(name)), handle, 0, round(lived_s * 1000), ended)}


def failures_of(*consumers, attempts, end_s, lived_s=60.0):
    """Each has joined and failed `attempts` times, the last time `end_s` ago."""
    runs, lives = [], {}
    for consumer in consumers:
        for n in range(attempts):
            handle = f"{consumer}/{n}"
            age_s = end_s + lived_s + 100 * (attempts - 1 - n)
            runs.append(run(age_s, handle=handle, consumer=ConsumerId(consumer), exit_code=1))
            ended = life(lived_s, handle=handle, ended=True, consumer=ConsumerId(consumer), name=handle)
            lives |= {i: replace(found, ending=Ending.FAILED, why="boom") for i, found in ended.items()}
    return History(runs=runs, lives=lives)


@pytest.fixture
def starts(membership):
    return lambda history=None, wanted=(TWO,), **changes: plan_starts(
        wanted, history or History(), membership(**changes)
    )


def test_who_is_wanted_and_not_there_is_started(starts):
    assert starts(wanted=(3, 1)) == Starts(launch=(1, 3))


def test_nobody_is_started_who_is_not_wanted(starts):
    assert starts(History(runs=failed(500)), wanted=()).launch == ()


@pytest.mark.parametrize("lives", [{}, life(50)], ids=["starting", "living"])
def test_nobody_is_started_beside_a_run_of_theirs(starts, lives):
    found = starts(History(runs=[run(60, over=False)], lives=lives))
    assert (found.launch, found.running) == ((), {TWO})


def test_nobody_is_started_who_reports_although_no_run_is_known(starts):
    """Dagster's database is lost, and nobody is doubled for it."""
    assert starts(History(present=frozenset({TWO}))).launch == ()


def test_a_launch_counts_before_the_fleet_shows_its_run(starts):
    found = starts(History(launched={TWO: 3.0}))
    assert (found.launch, found.starting) == ((), {TWO})


def test_a_run_is_starting_until_its_first_report(starts):
    assert starts(History(runs=[run(60, over=False)])).starting == {TWO}
    assert starts(History(runs=[run(60, over=False)], lives=life(1))).starting == frozenset()


@pytest.mark.parametrize(("age_s", "overdue"), [(120, set()), (121, {"run-1"})])
def test_a_run_has_so_long_for_its_first_report(starts, age_s, overdue):
    found = starts(History(runs=[run(age_s, over=False)]))
    assert found.overdue == overdue
    assert bool(found.failures) == bool(overdue)
    assert found.launch == ()


@pytest.mark.parametrize(
    ("ages_s", "wait_s"),
    [([4], 1), ([20, 3], 7), ([6], None), ([40, 11], None)],
    ids=["first failure waits 5 s", "second waits 10 s", "5 s are over", "10 s are over"],
)
def test_each_failure_waits_twice_as_long_as_the_last(starts, ages_s, wait_s):
    found = starts(History(runs=failed(*ages_s)))
    assert found.waiting == ({} if wait_s is None else {TWO: wait_s})
    assert found.launch == (() if wait_s else (TWO,))


def test_after_three_failures_in_a_row_it_is_quarantined(starts):
    assert starts(History(runs=failed(60, 40))).quarantined == frozenset()
    found = starts(History(runs=failed(60, 40, 20)))
    assert (found.quarantined, found.launch, found.failures) == ({TWO}, (), {TWO: 3})


def test_who_was_quarantined_is_tried_again_after_ten_times_the_longest_back_off(starts, membership):
    """5, 10, 20 s; ten times the last, and the time that a start may take."""
    assert retry_after_s(membership()) == 320
    assert starts(History(runs=failed(500, 400, 319))).quarantined == {TWO}
    found = starts(History(runs=failed(500, 400, 321)))
    assert (found.quarantined, found.launch) == (frozenset(), (TWO,))


def test_one_more_failure_quarantines_it_again(starts):
    assert starts(History(runs=failed(900, 800, 700, 10))).quarantined == {TWO}


def test_while_it_is_tried_again_it_is_not_quarantined(starts):
    found = starts(History(runs=[*failed(900, 800, 700), run(10, over=False, handle="again")]))
    assert (found.quarantined, found.starting) == (frozenset(), {TWO})


@pytest.mark.parametrize("lives", [life(120), life(5, ended=True)], ids=["it lived for a while", "it ended in order"])
def test_what_ended_well_is_no_failure(starts, lives):
    found = starts(History(runs=[run(200)], lives=lives))
    assert (found.failures, found.launch) == ({}, (TWO,))


def test_a_death_soon_after_the_first_report_is_a_failed_start(starts):
    """Else one that always dies after ten seconds would be started, and its partitions moved, for ever."""
    assert starts(History(runs=[run(200)], lives=life(119))).failures == {TWO: 1}


@pytest.mark.parametrize(
    ("attempts", "end_s", "wait_s"), [(1, 2, 3), (2, 2, 8), (3, 2, 318)], ids=["5 s", "10 s", "quarantined"]
)
def test_an_error_of_its_own_is_a_failed_start_however_it_said_so(starts, attempts, end_s, wait_s):
    """Without the reason it was started again at once, for ever. The wait counts from its last word."""
    found = starts(failures_of(2, attempts=attempts, end_s=end_s, lived_s=200))
    assert (found.failures, found.waiting, found.launch) == ({TWO: attempts}, {TWO: wait_s}, ())
    assert found.quarantined == ({TWO} if attempts == 3 else frozenset())
    assert found.why == {TWO: "boom"}


def test_one_that_has_read_well_for_long_and_then_fails_is_not_quarantined(starts):
    runs, lives = failed(LONG_LIFE_S + 300, LONG_LIFE_S + 200), life(LONG_LIFE_S, handle="long", ended=True)
    lives = {i: replace(found, ending=Ending.FAILED, why="boom") for i, found in lives.items()}
    found = starts(History(runs=[*runs, run(LONG_LIFE_S + 20, handle="long", exit_code=1)], lives=lives))
    assert (found.failures, found.launch) == ({}, (TWO,))


@pytest.mark.parametrize("ending", [Ending.ASKED, Ending.RETIRED, Ending.SUPERSEDED])
def test_whoever_was_told_to_end_has_not_failed(starts, ending):
    lives = {i: replace(found, ending=ending) for i, found in life(5, ended=True).items()}
    assert starts(History(runs=[run(10, exit_code=0)], lives=lives)).failures == {}


@pytest.mark.parametrize(("exit_code", "failures"), [(0, {}), (None, {}), (1, {TWO: 1})])
def test_last_word_of_an_older_kgs_gives_no_reason_so_the_status_counts(starts, exit_code, failures):
    found = starts(History(runs=[run(10, exit_code=exit_code)], lives=life(5, ended=True)))
    assert found.failures == failures


def test_a_run_that_ended_well_and_whose_reports_have_expired_did_not_fail(starts):
    """A controller that is started anew reads the last minutes of reports only."""
    assert starts(History(runs=[run(900, exit_code=0)])).failures == {}
    told = History(runs=[run(900, exit_code=0)], stopped=frozenset({"run-1"}))
    assert starts(told).failures == {TWO: 1}, "it was too slow, and was told to end for it"


def test_nobody_is_started_while_one_number_after_the_other_joins_and_fails(starts):
    """What they read may be what ends them. Each number that is quarantined makes everybody's start twice as late."""
    one = failures_of(2, attempts=3, end_s=39)
    assert (starts(one, wanted=(2, 7)).launch, starts(one, wanted=(2, 7)).held_s) == ((), 1)
    assert starts(failures_of(2, attempts=3, end_s=41), wanted=(2, 7)).launch == (7,)
    assert starts(failures_of(2, 3, attempts=3, end_s=41), wanted=(7,)).held_s == 39
    assert starts(failures_of(2, 3, 4, 5, 6, attempts=3, end_s=41), wanted=(7,)).held_s == 320 - 41
    assert starts(failures_of(2, attempts=2, end_s=1), wanted=(7,)).launch == (7,), "as long as none is quarantined"


@pytest.mark.parametrize("lived_s", [60, 4000], ids=["soon", "late"])
def test_who_died_without_a_word_is_started_again_though_others_keep_failing(starts, lived_s):
    """A death is answered at once: what ends the others has not ended this one, so it has not read it."""
    failing = failures_of(2, 3, 4, 5, 6, attempts=3, end_s=41)
    mine = {"handle": "run-7", "consumer": ConsumerId(7)}
    killed = replace(
        failing,
        runs=[*failing.runs, run(lived_s + 10, exit_code=1, **mine)],
        lives=failing.lives | life(lived_s, name="7a", **mine),
    )
    found = starts(killed, wanted=(7, 8))
    assert (found.launch, found.held_s > 0) == ((7,), True), "8 is a new number, and might be given what ends them"
    ended = replace(killed, lives=failing.lives | life(lived_s, name="7a", ended=True, **mine))
    assert starts(ended, wanted=(7, 8)).launch == (), "it ended by itself"


def test_numbers_that_never_join_hold_up_nobody_else(starts):
    assert starts(History(runs=failed(60, 40, 20)), wanted=(2, 7)).launch == (7,)


def test_a_start_that_went_well_ends_the_row(starts):
    runs = [*failed(900, 800), run(400, handle="good"), *failed(3)]
    found = starts(History(runs=runs, lives=life(300, handle="good")))
    assert found.failures == {TWO: 1}


def test_a_refused_start_counts_as_a_failure(starts):
    history = History(runs=failed(60, 40), refusals=[Refusal(TWO, 20.0)])
    assert starts(history).quarantined == {TWO}


def test_a_run_that_was_ended_because_nobody_wanted_it_did_not_fail(starts):
    found = starts(History(runs=failed(2), excused=frozenset({"run-2"})))
    assert (found.failures, found.launch) == ({}, (TWO,))


def test_a_consumer_that_reports_is_not_quarantined(starts):
    assert starts(History(runs=failed(60, 40, 20), present=frozenset({TWO}))).quarantined == frozenset()


def test_a_report_without_a_run_belongs_to_any_run_of_its_consumer(starts):
    """Better than to end a run that lives, because its reports do not name it."""
    assert starts(History(runs=[run(500, over=False)], lives=life(400, handle=""))).overdue == frozenset()


def test_consumers_are_counted_one_by_one(starts):
    runs = [*failed(60, 40, 20), run(3, handle="other", consumer=ConsumerId(3))]
    found = starts(History(runs=runs), wanted=(1, 2, 3))
    assert (found.launch, found.quarantined, found.waiting.keys()) == ((1,), {2}, {2, 3})


def report(sequence, phase=Phase.READING):
    process = a_process(run_id="run-1")
    return Report(Member(TWO, Incarnation("x")), sequence, phase, 0.0, None, process, None, frozenset())


def test_a_life_goes_from_the_first_report_to_the_last_sign(starts):
    beat = Heartbeat(Member(TWO, Incarnation("x")), 2, Phase.READING, 0.0, None)
    lives = take_lives({}, [Received(report(1), 0, 1_000), Received(beat, 1, 4_000)], 0.0)
    assert lives == {"x": Lifetime(Member(TWO, Incarnation("x")), "run-1", 1_000, 4_000)}
    lives = take_lives(lives, [Received(report(1), 0, 1_000), Received(report(3, Phase.ENDED), 2, 6_000)], 0.0)
    assert lives == {"x": Lifetime(Member(TWO, Incarnation("x")), "run-1", 1_000, 6_000, ended=True)}


def test_a_life_remembers_why_it_ends():
    last = replace(report(3, Phase.ENDED), ending=Ending.FAILED, why="boom")
    lives = take_lives({}, [Received(report(1), 0, 1_000), Received(last, 1, 4_000)], 0.0)
    assert [(found.ending, found.why, found.ended) for found in lives.values()] == [(Ending.FAILED, "boom", True)]


WAITS = Starting(Member(TWO, Incarnation("x")), a_process(run_id="run-1"), "no space left")


def test_a_start_that_waits_for_passing_trouble_is_neither_overdue_nor_failed(starts):
    lives = take_lives({}, [Received(WAITS, 0, 1_000)], 0.0)
    found = starts(History(runs=[run(5_000, over=False)], lives=lives))
    assert (found.overdue, found.failures, found.starting, found.launch) == (frozenset(), {}, {TWO}, ())
    assert found.trouble == {TWO: "no space left"}
    assert starts(History(runs=[run(5_000, exit_code=0)], lives=lives)).failures == {}, "it was asked to end"
    assert starts(History(runs=[run(5_000, exit_code=1)], lives=lives)).failures == {TWO: 1}


@pytest.mark.parametrize(("silent_s", "is_stuck"), [(299, False), (301, True)])
def test_a_start_that_waited_and_has_fallen_silent_is_overdue(starts, membership, silent_s, is_stuck):
    """A frozen process (SIGSTOP) says nothing, and would have its number for ever."""
    later = Received(DesiredState("running", "somebody", 0), 1, 1_000)
    options = Options(PackingSettings(), membership(), lambda: Random(0))
    known = ControllerState(options, 0.0, lives=take_lives({}, [Received(WAITS, 0, 1_000), later], 50.0))
    known = replace(known, runs=(run(400, over=False),), read_at=50.0 + silent_s, runs_at=50.0 + silent_s)
    found = known.starts(known.read_at)
    assert (found.overdue == {"run-1"}, found.starting == {TWO}) == (is_stuck, not is_stuck)
    deaf = replace(known, silence_counts_from=known.read_at + 1)
    assert deaf.starts(deaf.read_at).overdue == frozenset(), "the controller itself may have been frozen"


def test_whoever_waited_and_has_joined_lives_from_its_first_report_on(starts):
    lives = take_lives({}, [Received(WAITS, 0, 1_000), Received(report(1), 1, 9_000), Received(WAITS, 2, 9_500)], 0.0)
    assert lives == {"x": Lifetime(Member(TWO, Incarnation("x")), "run-1", 9_000, 9_000)}
    assert starts(History(runs=[run(60, over=False)], lives=lives)).starting == frozenset()


def test_other_messages_say_nothing_of_lives():
    assert take_lives({}, [Received(DesiredState("running", "somebody", 0), 0, 0)], 0.0) == {}


def test_what_the_fleet_says_of_a_run_that_never_reported_is_passed_on(starts):
    pending = replace(run(60, over=False), why="Unschedulable: 0/1 nodes")
    assert starts(History(runs=[pending])).trouble == {TWO: "Unschedulable: 0/1 nodes"}
    ended = [replace(each, why="ErrImagePull") for each in failed(300, 200)]
    assert starts(History(runs=ended)).why == {TWO: "ErrImagePull"}


def test_a_consumer_knows_better_than_its_fleet_why_it_ended(starts):
    history = failures_of(2, attempts=1, end_s=3.0)
    killed = replace(history, runs=[replace(each, why="Error") for each in history.runs])
    assert starts(killed).why == {TWO: "boom"}


def test_what_the_fleet_says_of_one_run_holds_up_nobody_else(starts):
    """Only who had joined and then failed may have read what ends everybody."""
    runs = [replace(each, why="ErrImagePull") for each in failed(30, 20, 10)]
    found = starts(History(runs=runs), wanted=(TWO, ConsumerId(5)))
    assert (found.quarantined, found.held_s, found.launch) == ({TWO}, 0.0, (5,))
