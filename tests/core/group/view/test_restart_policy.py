"""Who is started, who has to wait and who is quarantined. Defaults: 120 s to report, 3 attempts, 5 s of back-off."""

from dataclasses import replace
from random import Random

import pytest

from kgs_core.config.packing import PackingSettings
from kgs_core.group.controller.state import ControllerState, KnownRuns, Listening, Options
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
from kgs_core.group.view.restart_policy import History, Starts, plan_starts, retry_after_s
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


GOING_ON = run(60, over=False)
CASES = {
    "who is wanted and not there is started": (History(), {"launch": (2,)}),
    "not beside a run that is starting": (History([GOING_ON]), {"launch": (), "running": {2}, "starting": {2: 60}}),
    "nor beside one that has reported": (
        History([GOING_ON], lives=life(50)),
        {"launch": (), "running": {2}, "starting": {}},
    ),
    "nor who reports although no run is known": (History(present=frozenset({TWO})), {"launch": ()}),
    "a launch counts before the fleet shows its run": (
        History(launched={TWO: 3.0}),
        {"launch": (), "starting": {2: 3.0}},
    ),
    "a run has so long for its first report": (History([run(120, over=False)]), {"overdue": set(), "failures": {}}),
    "and no longer": (
        History([run(121, over=False)]),
        {"overdue": {"run-1"}, "failures": {2: 1}, "launch": ()},
    ),
    "a report without a run belongs to any run of its consumer": (
        History([run(500, over=False)], lives=life(400, handle="")),
        {"overdue": set()},
    ),
    "the first failure waits 5 s": (History(failed(4)), {"waiting": {2: 1}, "launch": ()}),
    "the second waits 10 s": (History(failed(20, 3)), {"waiting": {2: 7}, "launch": (), "quarantined": set()}),
    "5 s are over": (History(failed(6)), {"waiting": {}, "launch": (2,)}),
    "10 s are over": (History(failed(40, 11)), {"waiting": {}, "launch": (2,)}),
    "after three in a row it is quarantined": (
        History(failed(60, 40, 20)),
        {"quarantined": {2}, "launch": (), "failures": {2: 3}},
    ),
    "for as long as a retry waits": (History(failed(500, 400, 319)), {"quarantined": {2}}),
    "then it is tried again": (History(failed(500, 400, 321)), {"quarantined": set(), "launch": (2,)}),
    "one more failure quarantines it again": (History(failed(900, 800, 700, 10)), {"quarantined": {2}}),
    "but not while it is tried": (
        History([*failed(900, 800, 700), run(10, over=False, handle="again")]),
        {"quarantined": set(), "starting": {2: 10}},
    ),
    "nor one that reports": (History(failed(60, 40, 20), present=frozenset({TWO})), {"quarantined": set()}),
    "it lived for a while": (History([run(200)], lives=life(120)), {"failures": {}, "launch": (2,)}),
    "it ended in order": (History([run(200)], lives=life(5, ended=True)), {"failures": {}, "launch": (2,)}),
    "a death soon after the first report is a failed start": (
        History([run(200)], lives=life(119)),
        {"failures": {2: 1}},
    ),
    "a start that went well ends the row": (
        History([*failed(900, 800), run(400, handle="good"), *failed(3)], lives=life(300, handle="good")),
        {"failures": {2: 1}},
    ),
    "a refused start is a failure": (History(failed(60, 40), refusals=[(TWO, 20.0)]), {"quarantined": {2}}),
    "one that was ended because nobody wanted it did not fail": (
        History(failed(2), excused=frozenset({"run-2"})),
        {"failures": {}, "launch": (2,)},
    ),
    "its reports have expired and it ended well": (History([run(900, exit_code=0)]), {"failures": {}}),
    "it was too slow and was told to end for it": (
        History([run(900, exit_code=0)], stopped=frozenset({"run-1"})),
        {"failures": {2: 1}},
    ),
    "what the fleet says of a run that never reported is passed on": (
        History([replace(GOING_ON, why="Unschedulable: 0/1 nodes")]),
        {"trouble": {2: "Unschedulable: 0/1 nodes"}},
    ),
    "and of one that has ended": (
        History([replace(each, why="ErrImagePull") for each in failed(300, 200)]),
        {"why": {2: "ErrImagePull"}},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_who_is_started_waits_or_is_quarantined(starts, case):
    history, expected = CASES[case]
    found = starts(history)
    assert {name: getattr(found, name) for name in expected} == expected


def test_consumers_are_counted_one_by_one(starts, membership):
    """5, 10, 20 s; ten times the last, and the time that a start may take."""
    assert retry_after_s(membership()) == 320
    assert starts(wanted=(3, 1)) == Starts(launch=(1, 3))
    assert starts(History(runs=failed(500)), wanted=()).launch == ()
    runs = [*failed(60, 40, 20), run(3, handle="other", consumer=ConsumerId(3))]
    found = starts(History(runs=runs), wanted=(1, 2, 3))
    assert (found.launch, found.quarantined, found.waiting.keys()) == ((1,), {2}, {2, 3})


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


def report(sequence, phase=Phase.READING):
    process = a_process(run_id="run-1")
    return Report(Member(TWO, Incarnation("x")), sequence, phase, 0.0, None, process, None, frozenset())


def test_a_life_goes_from_the_first_report_to_the_last_sign(starts):
    beat = Heartbeat(Member(TWO, Incarnation("x")), 2, Phase.READING, 0.0, None)
    lives = take_lives({}, [Received(report(1), 0, 1_000), Received(beat, 1, 4_000)], 0.0)
    assert lives == {"x": Lifetime(Member(TWO, Incarnation("x")), "run-1", 1_000, 4_000)}
    lives = take_lives(lives, [Received(DesiredState("running", "somebody", 0), 0, 9_000)], 0.0)
    last = replace(report(3, Phase.ENDED), ending=Ending.FAILED, why="boom")
    lives = take_lives(lives, [Received(report(1), 0, 1_000), Received(last, 2, 6_000)], 0.0)
    (ended,) = lives.values()
    assert (ended.first_ms, ended.last_ms, ended.ended) == (1_000, 6_000, True)
    assert (ended.ending, ended.why) == (Ending.FAILED, "boom")


WAITS = Starting(Member(TWO, Incarnation("x")), a_process(run_id="run-1"), "no space left")


def test_a_start_that_waits_for_passing_trouble_is_neither_overdue_nor_failed(starts):
    lives = take_lives({}, [Received(WAITS, 0, 1_000)], 0.0)
    found = starts(History(runs=[run(5_000, over=False)], lives=lives))
    assert (found.overdue, found.failures, found.starting.keys(), found.launch) == (frozenset(), {}, {TWO}, ())
    assert found.trouble == {TWO: "no space left"}
    assert starts(History(runs=[run(5_000, exit_code=0)], lives=lives)).failures == {}, "it was asked to end"
    assert starts(History(runs=[run(5_000, exit_code=1)], lives=lives)).failures == {TWO: 1}


@pytest.mark.parametrize(("silent_s", "is_stuck"), [(299, False), (301, True)])
def test_a_start_that_waited_and_has_fallen_silent_is_overdue(starts, membership, silent_s, is_stuck):
    """A frozen process (SIGSTOP) says nothing, and would have its number for ever."""
    later = Received(DesiredState("running", "somebody", 0), 1, 1_000)
    options = Options(PackingSettings(), membership(), lambda: Random(0))
    now, lives = 50.0 + silent_s, take_lives({}, [Received(WAITS, 0, 1_000), later], 50.0)
    runs = KnownRuns((run(400, over=False),), now)
    known = ControllerState(options, 0.0, listening=Listening(now, lives=lives), fleet=runs)
    found = known.starts(now)
    assert (found.overdue == {"run-1"}, found.starting.keys() == {TWO}) == (is_stuck, not is_stuck)
    deaf = replace(known, listening=Listening(now, now + 1, lives))
    assert deaf.starts(now).overdue == frozenset(), "the controller itself may have been frozen"


def test_whoever_waited_and_has_joined_lives_from_its_first_report_on(starts):
    lives = take_lives({}, [Received(WAITS, 0, 1_000), Received(report(1), 1, 9_000), Received(WAITS, 2, 9_500)], 0.0)
    assert lives == {"x": Lifetime(Member(TWO, Incarnation("x")), "run-1", 9_000, 9_000)}
    assert starts(History(runs=[run(60, over=False)], lives=lives)).starting == {}


def test_a_consumer_knows_better_than_its_fleet_why_it_ended(starts):
    history = failures_of(2, attempts=1, end_s=3.0)
    killed = replace(history, runs=[replace(each, why="Error") for each in history.runs])
    assert starts(killed).why == {TWO: "boom"}


def test_what_the_fleet_says_of_one_run_holds_up_nobody_else(starts):
    """Only who had joined and then failed may have read what ends everybody."""
    runs = [replace(each, why="ErrImagePull") for each in failed(30, 20, 10)]
    found = starts(History(runs=runs), wanted=(TWO, ConsumerId(5)))
    assert (found.quarantined, found.held_s, found.launch) == ({TWO}, 0.0, (5,))
