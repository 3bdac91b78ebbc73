"""`min_consumers`: as few moves as it takes."""

import pytest

from kgs_core.packing import ALGORITHMS, PackingProblem
from kgs_core.packing.basics.spread import spread

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


@pytest.mark.parametrize(
    ("speeds", "bins"),
    [
        ({"a": 5, "b": 3, "c": 9}, {1: "ab", 3: "c"}),
        ({"a": 5, "b": 9, "c": 9}, {1: "ac", 2: "b"}),
    ],
    ids=["most loaded", "lowest number"],
)
def test_of_emptied_consumers_only_so_many_go_on_as_are_asked_for(speeds_of, assigned, speeds, bins):
    problem = PackingProblem(speeds_of(**speeds), 100, assigned({1: "a", 2: "b", 3: "c"}), min_consumers=2)
    assert bins_of(spread(assigned({1: "abc"}), problem)) == bins


def test_an_emptied_consumer_gets_back_what_fills_it_to_the_brim(speeds_of, assigned):
    current = assigned({1: "a", 2: "de", 3: "c"})
    problem = PackingProblem(speeds_of(a=10, c=10, d=60, e=40), 100, current, min_consumers=3)
    assert spread(assigned({1: "ad", 3: "ce"}), problem) == current


@pytest.mark.parametrize(
    ("count", "bins"),
    [(3, {1: "ab", 2: "cf", 3: "de"}), (4, {1: "ab", 2: "c", 3: "de", 4: "f"})],
)
def test_the_most_loaded_bin_is_parted_each_time(speeds_of, assigned, count, bins):
    """1 has the fastest partition, and 49 in all; 2 has 100, then 50 and 50 are left of it."""
    speeds = speeds_of(a=44, b=5, c=40, d=30, e=20, f=10)
    problem = PackingProblem(speeds, 100, {}, min_consumers=count)
    assert bins_of(spread(assigned({1: "ab", 2: "cdef"}), problem)) == bins


def test_what_stays_is_parted_from_fast_to_slow_as_well(speeds_of, assigned):
    """8 stays, 7 and 6 leave, 5 and 4 stay, 3 and 2 leave, 1 stays; of these 8 and 1 stay when 5 and 4 leave."""
    speeds = speeds_of(a=8, b=7, c=6, d=5, e=4, f=3, g=2, h=1)
    problem = PackingProblem(speeds, 100, {}, min_consumers=4)
    assert bins_of(spread(assigned({1: "abcdefgh"}), problem)) == {1: "ah", 2: "bg", 3: "de", 4: "cf"}


def test_the_lowest_spare_is_the_first(speeds_of, assigned):
    problem = PackingProblem(speeds_of(a=9, b=8), 100, {}, min_consumers=2, spares=frozenset({8, 5}))
    assert bins_of(spread(assigned({1: "ab"}), problem)) == {1: "a", 5: "b"}
