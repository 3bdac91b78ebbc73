"""A partition that is missing from a measurement keeps its place until a second look, its speed being unknown."""

from dataclasses import replace

import pytest

from kgs_core.group.controller.measuring import SECOND_LOOK_S, blind_wait, remembered, take_measured
from kgs_core.group.controller.state import ChangeProgress
from kgs_core.group.controller.target_selection import select_target
from kgs_core.group.protocol import Received, Target
from kgs_core.group.view.group_view import GroupView
from kgs_core.planning.load import Load
from tests.a_status import sentences_of


@pytest.fixture
def state(fresh, assigned, speeds_of):
    """It stands by a Target of a and b."""
    assignment = assigned({1: "a", 2: "b"})
    target = Target("mwf", assignment, (), speeds_of(a=10, b=30), 100.0, 0.0, "", (), (), 0)
    return replace(fresh, view=GroupView().take(Received(target, 0, 0), 0.0))


@pytest.fixture
def told(speeds_of):
    """The state after measurements: (second, partitions that are there)."""

    def tell(state, *looks, age_s=0.0):
        for second, there in looks:
            load = Load(speeds_of(**dict.fromkeys(there, 20)))
            state = take_measured(state, replace(load, age_s=age_s), second + age_s)
        return state

    return tell


@pytest.mark.parametrize(
    ("looks", "is_kept"),
    [
        ([(0, "a")], True),
        ([(0, "ab"), (1, "a")], True),
        ([(0, "a"), (SECOND_LOOK_S - 1, "a")], True),
        ([(0, "a"), (SECOND_LOOK_S, "a")], False),
        ([(0, "a"), (3, "ab"), (SECOND_LOOK_S, "a")], True),
        ([(0, "a"), (3, "ab"), (4, "a"), (4 + SECOND_LOOK_S, "a")], False),
    ],
    ids=["first look", "glitch", "too soon", "second look", "there between", "gone after it was there"],
)
def test_two_looks(state, told, tp, looks, is_kept):
    load = told(state, *looks).measured
    assert (tp("b") in load.unknown) == is_kept
    assert tp("b") not in load.speeds, "it keeps its last known speed, and no other"
    assert (tp("b") in remembered(load, state.target).speeds) == is_kept


def test_its_last_known_speed_is_packed(state, told, tp):
    assert remembered(told(state, (0, "a")).measured, state.target).speeds[tp("b")] == 30


def test_the_age_of_the_measurement_counts_and_not_when_it_came(state, told, tp):
    """Two that come at once may still be of different times."""
    later = told(told(state, (0, "a")), (1, "a"), age_s=SECOND_LOOK_S)
    assert tp("b") in later.measured.unknown


def test_a_partition_of_no_target_is_not_missed(fresh, told):
    assert told(fresh, (0, "a")).measured.unknown == frozenset()


def test_a_rebalance_run_takes_the_word_of_its_measurement(state, told, tp):
    """It has one look, at a measurement that stands for a window."""
    run = replace(state, options=replace(state.options, until_done=True))
    assert tp("b") not in told(run, (0, "a")).measured.unknown


def test_no_target_is_written_for_a_glitch(state, told):
    """Everybody is away for a moment: as the finding has it, but for all of the topics."""
    assert "changed" not in str(select_target(told(state, (0, "")), 0.0).target)


@pytest.mark.parametrize(
    ("since_s", "unknown", "waits"),
    [
        (301, "b", "not looking for a better packing: the write speed of b:0 is unknown"),
        (299, "b", ""),
        (301, "", ""),
    ],
    ids=["blind", "not due", "all is known"],
)
def test_what_keeps_a_smaller_group_from_being_looked_for_has_a_name(state, speeds_of, tp, since_s, unknown, waits):
    """A topic without a leader would keep consumers that the load does not need, in silence."""
    load = Load(speeds_of(**dict.fromkeys("ab", 20)), frozenset(tp(name) for name in unknown))
    measured = replace(take_measured(state, load, 400.0), change=ChangeProgress(400.0 - since_s))
    assert blind_wait(measured, 400.0) == waits
    assert blind_wait(measured, 500.0) == "", "too old to say anything"
    assert waits in sentences_of(measured, 400.0) if waits else True
