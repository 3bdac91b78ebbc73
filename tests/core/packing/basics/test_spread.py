"""`min_consumers`: as few moves as it takes."""

import pytest

from kgs_core.packing import ALGORITHMS, PackingProblem
from kgs_core.packing.basics.spread import spread


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name[0] == "m"])
def test_a_small_steady_load_stays_where_it_is(speeds_of, assigned, in_order, name):
    """One consumer could read it all; three are wanted and three there are."""
    current = assigned({1: "ab", 2: "cd", 4: "ef"})
    problem = PackingProblem(speeds_of(a=9, b=8, c=7, d=6, e=5, f=4), 100, current, min_consumers=3)
    assert ALGORITHMS[name](problem, in_order) == current


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(
    "case",
    [
        ({"a": 9, "b": 8, "c": 7, "d": 6}, {"min_consumers": 2}, {1: "ad", 2: "bc"}),
        ({"a": 9, "b": 8, "c": 7}, {"min_consumers": 3, "spares": frozenset({5, 8})}, {1: "a", 5: "b", 8: "c"}),
        ({"a": 0, "b": 0}, {"min_consumers": 9}, {1: "a", 2: "b"}),
    ],
    ids=["9 stays, 8 leaves, 7 leaves 9 < 8 + 7 behind, 6 joins 9", "spares first", "no more than partitions"],
)
def test_new_bins_are_opened_where_nobody_was_emptied(speeds_of, in_order, bins_of, name, case):
    speeds, options, bins = case
    found = bins_of(ALGORITHMS[name](PackingProblem(speeds_of(**speeds), 100, {}, **options), in_order))
    assert sorted(found) == sorted(bins)
    assert found == bins or "spares" in options


def test_nobody_gets_back_more_than_fits(speeds_of, assigned, in_order):
    """2 was overloaded: its partitions came apart, and only one of them may come home."""
    current = assigned({2: "cd", 1: "a", 3: "b"})
    problem = PackingProblem(speeds_of(a=10, b=10, c=60, d=60), 100, current, min_consumers=4)
    target = ALGORITHMS["bfd"](problem, in_order)
    assert len(set(target.values())) == 4
    assert {target[p] for p in target if p.topic in "cd"} >= {2}


@pytest.mark.parametrize(
    "case",
    [
        ({"a": 5, "b": 3, "c": 9}, {1: "abc"}, 2, {1: "a", 2: "b", 3: "c"}, {1: "ab", 3: "c"}),
        ({"a": 5, "b": 9, "c": 9}, {1: "abc"}, 2, {1: "a", 2: "b", 3: "c"}, {1: "ac", 2: "b"}),
        ({"a": 10, "c": 10, "d": 60, "e": 40}, {1: "ad", 3: "ce"}, 3, {1: "a", 2: "de", 3: "c"},
         {1: "a", 2: "de", 3: "c"}),
        ({"a": 44, "b": 5, "c": 40, "d": 30, "e": 20, "f": 10}, {1: "ab", 2: "cdef"}, 3, {},
         {1: "ab", 2: "cf", 3: "de"}),
        ({"a": 44, "b": 5, "c": 40, "d": 30, "e": 20, "f": 10}, {1: "ab", 2: "cdef"}, 4, {},
         {1: "ab", 2: "c", 3: "de", 4: "f"}),
        ({"a": 8, "b": 7, "c": 6, "d": 5, "e": 4, "f": 3, "g": 2, "h": 1}, {1: "abcdefgh"}, 4, {},
         {1: "ah", 2: "bg", 3: "de", 4: "cf"}),
    ],
    ids=["of emptied ones the most loaded goes on", "else the lowest number", "filled to the brim",
         "the most loaded bin is parted", "each time", "what stays is parted from fast to slow as well"],
)  # fmt: skip
def test_who_is_filled_again_or_parted(speeds_of, assigned, bins_of, case):
    """8 stays, 7 and 6 leave, 5 and 4 stay, 3 and 2 leave, 1 stays; of these 8 and 1 stay when 5 and 4 leave."""
    speeds, packed, count, current, bins = case
    problem = PackingProblem(speeds_of(**speeds), 100, assigned(current), min_consumers=count)
    assert bins_of(spread(assigned(packed), problem)) == bins
