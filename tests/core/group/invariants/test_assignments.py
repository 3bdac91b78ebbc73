"""S6 and S1 as checks: a right state is clean, and every way to be wrong is named."""

import pytest

from kgs_core.group.invariants.assignments import check_assignment, check_single_owner
from kgs_core.model import TopicPartition

A, B, C = (TopicPartition(name, 0) for name in "abc")
SPEEDS = {A: 60.0, B: 50.0, C: 150.0}


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ({A: 1, B: 2, C: 3}, {}),
        ({A: 1, B: 1, C: 3}, {"max_consumers": 2}),
        ({A: 1, B: 1, C: 3}, {"pinned": {A, B}}),
    ],
)
def test_right_assignments(target, options):
    assert check_assignment(target, SPEEDS, 100, **options) == ()


def test_sums_that_differ_in_the_last_digit_are_no_fault():
    speeds = {TopicPartition("t", n): 0.1 for n in range(10)}
    assert check_assignment(dict.fromkeys(speeds, 1), speeds, 1.0 - 1e-12) == ()


@pytest.mark.parametrize(
    ("target", "options", "problem"),
    [
        ({A: 1, B: 2}, {}, "c:0: has no consumer"),
        ({A: 1, B: 2, C: 3, TopicPartition("d", 4): 7}, {}, "d:4: consumer 7 reads a partition that is not known"),
        ({A: 1, B: 0, C: 3}, {}, "b:0: 0 is not a consumer's number"),
        ({A: 1, B: 1, C: 3}, {}, "consumer 1: 110 bytes/s in 2 partitions is above 100"),
        ({A: 1, B: 1, C: 3}, {"max_consumers": 3}, "consumer 1: 110 bytes/s in 2 partitions is above 100"),
        ({A: 1, B: 1, C: 3}, {"pinned": {A}}, "consumer 1: 110 bytes/s in 2 partitions is above 100"),
    ],
)
def test_wrong_assignments(target, options, problem):
    assert check_assignment(target, SPEEDS, 100, **options) == (problem,)


def test_two_owners():
    assert check_single_owner({"m1": {A}, "m2": {B}}) == ()
    assert check_single_owner({"m2": [A, B, B], "m1": [A]}) == ("a:0: owned by m1 and m2",)
