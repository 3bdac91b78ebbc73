"""One change in parts, on a simulated group: measured, assigned, priced, handed over; or begun anew at any of them."""

import pytest

from kgs_core.errors import FencedError, MeasurementError, TransientError, UnsafeError
from kgs_core.group.controller import machine
from kgs_core.group.controller.state import Result
from kgs_core.model import ConsumerId
from kgs_core.planning.load import Load
from kgs_core.runtime import rebalance_run
from kgs_core.runtime.rebalance_ports import Reference
from kgs_core.runtime.rebalance_run import RebalanceRun
from kgs_core.system.shutdown import StopFlag
from tests.sim_group import SimGroup, careless, options, tp
from tests.world.chance import FaultRates

FOUR = {"a": 50, "b": 50, "c": 50, "d": 50}
GROWN = {**FOUR, "a": 90, "b": 90}
LARGE = dict.fromkeys(FOUR, 90)


def run_of(group, **reference):
    return RebalanceRun("g", group.options, Reference(**reference), group.ports)


def parts(run):
    return run.measure(), run.assign(), run.price(), run.hand_over()


@pytest.fixture
def group():
    """Two consumers read two partitions each."""
    group = SimGroup(options())
    group.start(1, 2)
    parts(run_of(group, measurement_offset=group.publish(**FOUR)))
    return group


@pytest.fixture
def run(group):
    """It grows, and consumer 3 has been started for that."""
    group.start(3)
    return run_of(group, measurement_offset=group.publish(**GROWN))


def test_a_first_assignment_costs_nothing():
    group = SimGroup(options())
    group.is_there = False
    group.start(1, 2)
    offset = group.publish(**FOUR)
    measured, assigned, priced, handed_over = parts(run_of(group, measurement_offset=offset))
    assert (measured.measurement_offset, measured.speeds[tp("a")]) == (offset, 50.0)
    assert (assigned.before, assigned.is_written, assigned.outcome) == (None, True, None)
    assert (assigned.target.message, group.target().measurement_offset) == (group.target(), offset)
    assert (priced.rscore, priced.moved, priced.moves) == (0.0, 0, ())
    assert handed_over.outcome.result is Result.CONVERGED
    assert (handed_over.gaps_s, handed_over.unowned, handed_over.double_owners) == ({}, frozenset(), ())
    assert group.owners() == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_a_change_is_priced_and_its_gaps_are_counted(group, run):
    before = group.target()
    _, assigned, priced, handed_over = parts(run)
    assert assigned.before.message == before
    (move,) = priced.moves
    assert (move.source, move.destination, move.bytes_per_s) == (1, 3, 90.0)
    assert (priced.rscore, priced.moved) == (0.9, 1)
    assert priced.target.message.rscore == 0.9
    alone = run_of(group).price()
    assert (alone.rscore, alone.moved, alone.moves, alone.target.message) == (0.9, 1, None, group.target())
    assert handed_over.outcome.result is Result.CONVERGED
    (gap_s,) = handed_over.gaps_s.values()
    assert handed_over.gaps_s.keys() == {move.partition}
    assert 0 < gap_s < 10


def test_nothing_to_do_is_an_outcome(group):
    count = len(group.history())
    _, assigned, priced, handed_over = parts(run_of(group, measurement_offset=group.publish(**FOUR)))
    assert (assigned.is_written, assigned.outcome.result) == (False, Result.NOTHING_TO_DO)
    assert (priced.rscore, priced.moved) == (0.0, 0)
    assert handed_over.outcome == assigned.outcome
    assert group.history()[count:] == []


def test_alternatives_are_those_of_the_moment_of_the_decision(group):
    run = run_of(group, measurement_offset=group.publish(**LARGE))
    group.start(3, 4)
    found = run.assign(("bfd", "mwf")).preview
    assert [other.algorithm for other in found.alternatives] == ["bfd"]
    assert found.target == group.target().assignment
    assert found.group.current == {tp("a"): 1, tp("b"): 1, tp("c"): 2, tp("d"): 2}


@pytest.mark.parametrize(("age_s", "offset"), [(31, 1), (0, 99)], ids=["too old", "not there any more"])
def test_where_a_measurement_is_too_old_or_gone_the_newest_one_counts(group, age_s, offset):
    """A run may take long to begin: pods are scheduled, images pulled."""
    group.publish(**FOUR)
    group.go_by(age_s)
    newest = group.publish(**LARGE)
    group.start(3, 4)
    measured, assigned, *_ = parts(run_of(group, measurement_offset=offset))
    assert (measured.measurement_offset, group.measured_now) == (newest, 0)
    assert assigned.is_written
    assert group.target().measurement_offset == newest


@pytest.mark.parametrize(
    ("made", "error", "line"),
    [
        (TransientError("Kafka b:9092: DescribeLogDirs: no answer"), TransientError, "DescribeLogDirs: no answer"),
        (Load({}, age_s=31.0), MeasurementError, "made for this run is 31 s old by now.*is 30: raise it"),
    ],
    ids=["none to be had", "made too slowly"],
)
def test_where_none_is_to_be_had_it_fails_in_words_before_anybody_is_fenced(group, monkeypatch, made, error, line):
    offset, writer = group.publish(**FOUR), group.topics.writer
    group.go_by(31)

    def measure():
        if isinstance(made, Exception):
            raise made
        return made

    monkeypatch.setattr(group, "measure", measure)
    with pytest.raises(error, match=line):
        run_of(group, measurement_offset=offset).measure()
    with pytest.raises(error):
        run_of(group, measurement_offset=offset).assign()
    assert group.topics.writer == writer


@pytest.mark.parametrize("has_reference", [True, False])
def test_where_no_measurement_is_young_enough_the_run_makes_one(group, has_reference):
    offset = group.publish(**FOUR)
    assert run_of(group).measure().measurement_offset == offset, "the newest, without a reference"
    group.go_by(31)
    measured = run_of(group, measurement_offset=offset if has_reference else None).measure()
    assert (measured.measurement_offset, measured.age_s, group.measured_now) == (None, 0.0, 1)


def test_a_measurement_grows_older_and_is_taken_anew_where_it_is_too_old_before_it_was_packed_by(group):
    run = run_of(group, measurement_offset=group.publish(**LARGE))
    run.measure()
    group.go_by(12)
    assert run.measure().age_s == 12
    group.go_by(19)
    newest = group.publish(**FOUR)
    assigned = run.assign()
    assert not assigned.is_written, "by the old one four consumers would be needed"
    assert run.measure().measurement_offset == newest


def test_a_look_fences_nobody_and_writes_nothing(group):
    writer, history = group.topics.writer, group.history()
    group.publish(**LARGE)
    state = run_of(group).observe_measured().state
    assert sum(state.measured.speeds.values()) == sum(LARGE.values())
    assert state.target == group.target()
    assert (group.topics.writer, group.history()) == (writer, history)


def test_a_look_at_a_group_that_is_not_there_makes_nothing():
    group = SimGroup(options())
    group.is_there = False
    group.publish(**FOUR)
    assert run_of(group).observe_measured().state.target is None
    assert not group.is_there


def test_the_target_that_stands_can_be_carried_out_without_any_measurement(group):
    group.fleet.of(ConsumerId(1))[0].kill()
    group.start(1)
    group.measurements = {}
    run = run_of(group, packs=False)
    assigned, _, handed_over = run.assign(), run.price(), run.hand_over()
    assert (assigned.is_written, assigned.preview) == (False, None)
    assert handed_over.outcome.result is Result.CONVERGED
    assert group.owners() == {"a": 1, "b": 1, "c": 2, "d": 2}


@pytest.mark.parametrize("part", ["measure", "assign", "price", "hand_over"])
def test_each_part_can_be_done_alone_and_the_next_run_goes_on(group, run, part):
    getattr(run, part)()
    group.go_by(60)
    *_, handed_over = parts(run_of(group, measurement_offset=group.publish(**GROWN)))
    assert handed_over.outcome.result in {Result.CONVERGED, Result.NOTHING_TO_DO}
    assert len(set(group.owners().values())) == 3
    assert group.history().count("Target") == 2


def test_a_newer_controller_ends_it(group, run):
    run.assign()
    group.topics.fence_writers()
    with pytest.raises(FencedError, match="controller of group g: a newer controller has taken over"):
        run.hand_over()


def test_an_unsafe_target_is_not_written(group, monkeypatch):
    monkeypatch.setattr(machine, "select_target", careless(machine.select_target))
    history = group.history()
    run = run_of(group, measurement_offset=group.publish(**LARGE))
    with pytest.raises(UnsafeError, match=r"not written.*S6 a:0: has no consumer"):
        run.assign()
    assert run.problems == ("S6 a:0: has no consumer",)
    assert group.history() == history


def test_partitions_that_come_meanwhile_supersede_the_change(group):
    """Newer measurements are heard, though the one of the reference is what is packed by."""
    run = run_of(group, measurement_offset=group.publish(**GROWN))
    run.assign()
    group.publish(**FOUR, e=10)
    outcome = run.hand_over().outcome
    assert outcome.result is Result.SUPERSEDED
    assert "e:0" in outcome.reason


def test_the_silence_of_all_is_known_by_reference(group):
    """A run that has just begun would take the newest report for one that came now."""
    for process in group.fleet.living():
        process.is_frozen = True
    newest = group.topics.logs[("controller.metadata", 0)][-1].offset
    group.go_by(60)
    group.start(3, 4)  # nobody else can be given anything
    asked = {"measurement_offset": group.publish(**FOUR), "report_offset": newest}
    assert run_of(group, **asked, report_age_s=0.0).assign().outcome.result is Result.NOTHING_TO_DO
    assigned = run_of(group, **asked, report_age_s=60.0).assign()
    assert "consumer lost: 1, 2" in group.target().reason
    assert assigned.is_written


def test_a_newer_report_takes_the_reference_back(group):
    newest = group.topics.logs[("controller.metadata", 0)][-1].offset
    group.go_by(5)
    asked = {"measurement_offset": group.publish(**FOUR), "report_offset": newest, "report_age_s": 600.0}
    assert run_of(group, **asked).assign().outcome.result is Result.NOTHING_TO_DO


def fail(group, what, times):
    """The next so many of these fail."""
    strikes = iter([True] * times)
    group.chance.trouble = FaultRates(**{what: 1.0})
    group.chance.strikes = lambda likelihood: likelihood > 0 and next(strikes, False)


@pytest.mark.parametrize("trouble", ["write_lost", "write_unsure", "write_hangs", "unanswered"])
def test_a_kafka_that_fails_for_a_while_is_asked_again(group, run, trouble, monkeypatch):
    """Whether the Target was written is found out before anything else is done."""
    monkeypatch.setattr(StopFlag, "wait", lambda *_: None)  # the group's clock does not move while it waits
    fail(group, trouble, 2)
    assigned = run.assign()
    assert assigned.is_written
    assert assigned.target.message.rscore == 0.9
    assert run.hand_over().outcome.result is Result.CONVERGED
    assert group.history().count("Target") == 2


def test_a_kafka_that_fails_for_long_ends_the_run(group, run, monkeypatch):
    """Else it would hold up the next one, which has newer measurements."""
    monkeypatch.setattr(rebalance_run, "PATIENCE_S", 0.1)
    fail(group, "unanswered", 1000)
    with pytest.raises(TransientError, match=r"not done after 0.1 s, for Kafka did not answer: the next one continues"):
        run.assign()


def test_all_parts_together_take_no_longer_than_a_run_may(group, run):
    """Somebody waits between them: what is left for the last one is nothing."""
    run.assign()
    group.go_by(rebalance_run.longest_run_s(group.options.membership))
    with pytest.raises(TransientError, match="not done after 0 s"):
        run.hand_over()
