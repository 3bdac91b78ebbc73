"""A result is kept for as long as its arguments are the same, and no longer."""

import pytest

from kgs_core.planning.kept import kept


@pytest.fixture
def calls():
    return []


@pytest.fixture
def total(calls):
    @kept
    def total_of(numbers, more):
        calls.append((numbers, more))
        return {"total": sum(numbers.values()) + more}

    return total_of


def test_equal_arguments_give_the_result_that_is_there(total, calls):
    first = total({"a": 1}, 2)
    assert total({"a": 1}, 2) is first
    assert first == {"total": 3}
    assert len(calls) == 1


def test_each_other_argument_is_worked_out(total, calls):
    assert [total({"a": n}, more)["total"] for n in (1, 2) for more in (0, 5)] == [1, 6, 2, 7]
    assert len(calls) == 4


def test_only_the_last_few_results_are_kept(total, calls):
    for n in range(100):
        total({"a": n}, 0)
    total({"a": 99}, 0)
    assert len(calls) == 100, "the last one was there"
    total({"a": 0}, 0)
    assert len(calls) == 101, "the first one was not: they would fill the memory"
