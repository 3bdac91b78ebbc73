"""Who is started, who has to wait and who is set aside. Defaults: 120 s to report, 3 attempts, 5 s of back-off."""

import pytest

from kgs_core.control.starts import History, Life, Refusal, Starts, plan_starts, retry_after_s, take_lives
from kgs_core.model import ConsumerId
from kgs_core.ports import Run
from kgs_core.protocol import Heartbeat, Incarnation, Member, Phase, Process, Received, Report, Wish

TWO = ConsumerId(2)


def run(age_s, *, over=True, handle="run-1", consumer=TWO, exit_code=None):
    return Run(consumer, handle, age_s, over, exit_code)


def failed(*ages_s):
    """Runs that ended before their first report."""
    return [run(age_s, handle=f"run-{age_s}") for age_s in ages_s]


def life(lived_s, *, handle="run-1", ended=False, consumer=TWO, name="x"):
    return {Incarnation(name): Life(Member(consumer, Incarnation(name)), handle, 0, round(lived_s * 1000), ended)}


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


def test_after_three_failures_in_a_row_it_is_set_aside(starts):
    assert starts(History(runs=failed(60, 40))).set_aside == frozenset()
    found = starts(History(runs=failed(60, 40, 20)))
    assert (found.set_aside, found.launch, found.failures) == ({TWO}, (), {TWO: 3})


def test_who_was_set_aside_is_tried_again_after_ten_times_the_longest_back_off(starts, membership):
    """5, 10, 20 s; ten times the last, and the time that a start may take."""
    assert retry_after_s(membership()) == 320
    assert starts(History(runs=failed(500, 400, 319))).set_aside == {TWO}
    found = starts(History(runs=failed(500, 400, 321)))
    assert (found.set_aside, found.launch) == (frozenset(), (TWO,))


def test_one_more_failure_sets_it_aside_again(starts):
    assert starts(History(runs=failed(900, 800, 700, 10))).set_aside == {TWO}


def test_while_it_is_tried_again_it_is_not_set_aside(starts):
    found = starts(History(runs=[*failed(900, 800, 700), run(10, over=False, handle="again")]))
    assert (found.set_aside, found.starting) == (frozenset(), {TWO})


@pytest.mark.parametrize("lives", [life(120), life(5, ended=True)], ids=["it lived for a while", "it ended in order"])
def test_what_ended_well_is_no_failure(starts, lives):
    found = starts(History(runs=[run(200)], lives=lives))
    assert (found.failures, found.launch) == ({}, (TWO,))


def test_a_death_soon_after_the_first_report_is_a_failed_start(starts):
    """Else one that always dies after ten seconds would be started, and its partitions moved, for ever."""
    assert starts(History(runs=[run(200)], lives=life(119))).failures == {TWO: 1}


def test_a_start_that_went_well_ends_the_row(starts):
    runs = [*failed(900, 800), run(400, handle="good"), *failed(3)]
    found = starts(History(runs=runs, lives=life(300, handle="good")))
    assert found.failures == {TWO: 1}


def test_a_refused_start_counts_as_a_failure(starts):
    history = History(runs=failed(60, 40), refusals=[Refusal(TWO, 20.0)])
    assert starts(history).set_aside == {TWO}


def test_a_run_that_was_ended_because_nobody_wanted_it_did_not_fail(starts):
    found = starts(History(runs=failed(2), excused=frozenset({"run-2"})))
    assert (found.failures, found.launch) == ({}, (TWO,))


def test_a_consumer_that_reports_is_not_set_aside(starts):
    assert starts(History(runs=failed(60, 40, 20), present=frozenset({TWO}))).set_aside == frozenset()


def test_a_report_without_a_run_belongs_to_any_run_of_its_consumer(starts):
    """Better than to end a run that lives, because its reports do not name it."""
    assert starts(History(runs=[run(500, over=False)], lives=life(400, handle=""))).overdue == frozenset()


def test_consumers_are_counted_one_by_one(starts):
    runs = [*failed(60, 40, 20), run(3, handle="other", consumer=ConsumerId(3))]
    found = starts(History(runs=runs), wanted=(1, 2, 3))
    assert (found.launch, found.set_aside, found.waiting.keys()) == ((1,), {2}, {2, 3})


def report(sequence, phase=Phase.READING):
    process = Process("host", "boot", 1, 1, "run-1")
    return Report(Member(TWO, Incarnation("x")), sequence, phase, 0.0, None, process, None, frozenset())


def test_a_life_goes_from_the_first_report_to_the_last_sign(starts):
    beat = Heartbeat(Member(TWO, Incarnation("x")), 2, Phase.READING, 0.0, None)
    lives = take_lives({}, [Received(report(1), 0, 1_000), Received(beat, 1, 4_000)])
    assert lives == {"x": Life(Member(TWO, Incarnation("x")), "run-1", 1_000, 4_000)}
    lives = take_lives(lives, [Received(report(1), 0, 1_000), Received(report(3, Phase.ENDED), 2, 6_000)])
    assert lives == {"x": Life(Member(TWO, Incarnation("x")), "run-1", 1_000, 6_000, ended=True)}


def test_other_messages_say_nothing_of_lives():
    assert take_lives({}, [Received(Wish("running", "somebody", 0), 0, 0)]) == {}
