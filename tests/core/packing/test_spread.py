"""`min_consumers`: as few moves as it takes."""

import pytest

from kgs_core.packing import ALGORITHMS, PackingProblem

ALL = pytest.mark.parametrize("name", ALGORITHMS)


def bins_of(assignment):
    bins = {}
    for partition, consumer in sorted(assignment.items()):
        bins[consumer] = bins.get(consumer, "") + partition.topic
    return bins


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name[0] == "m"])
def test_a_small_steady_load_stays_where_it_is(speeds_of, assigned, in_order, name):
    """One consumer could read it all; three are wanted and three there are."""
    current = assigned({1: "ab", 2: "cd", 4: "ef"})
    problem = PackingProblem(speeds_of(a=9, b=8, c=7, d=6, e=5, f=4), 100, current, min_consumers=3)
    assert ALGORITHMS[name](problem, in_order) == current


@ALL
def test_a_full_bin_is_parted_where_nobody_was_emptied(speeds_of, in_order, name):
    """9, 8, 7, 6: 9 stays, 8 leaves, 7 leaves 9 < 8 + 7 behind, 6 joins 9."""
    problem = PackingProblem(speeds_of(a=9, b=8, c=7, d=6), 100, {}, min_consumers=2)
    assert bins_of(ALGORITHMS[name](problem, in_order)) == {1: "ad", 2: "bc"}


@ALL
def test_new_bins_take_spares_first(speeds_of, in_order, name):
    problem = PackingProblem(speeds_of(a=9, b=8, c=7), 100, {}, min_consumers=3, spares=frozenset({5, 8}))
    assert sorted(bins_of(ALGORITHMS[name](problem, in_order))) == [1, 5, 8]


@ALL
def test_there_are_no_more_consumers_than_partitions(speeds_of, in_order, name):
    problem = PackingProblem(speeds_of(a=0, b=0), 100, {}, min_consumers=9)
    assert bins_of(ALGORITHMS[name](problem, in_order)) == {1: "a", 2: "b"}


def test_nobody_gets_back_more_than_fits(speeds_of, assigned, in_order):
    """2 was overloaded: its partitions came apart, and only one of them may come home."""
    problem = PackingProblem(
        speeds_of(a=10, b=10, c=60, d=60), 100, assigned({2: "cd", 1: "a", 3: "b"}), min_consumers=4
    )
    target = ALGORITHMS["bfd"](problem, in_order)
    assert len(set(target.values())) == 4
    assert {target[p] for p in target if p.topic in "cd"} >= {2}
