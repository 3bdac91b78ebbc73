"""Each algorithm on examples that can be checked by hand."""

from random import Random

import pytest

from kgs_core.errors import MeasurementError
from kgs_core.model import TopicPartition
from kgs_core.packing import ALGORITHMS, PackingProblem, rscore


def bins_of(assignment):
    """`{1: "ab"}` out of an assignment."""
    bins = {}
    for partition, consumer in sorted(assignment.items()):
        bins[consumer] = bins.get(consumer, "") + partition.topic
    return bins


@pytest.mark.parametrize(
    ("name", "bins"),
    [
        ("nf", {1: "a", 2: "bcd"}),
        ("ff", {1: "acd", 2: "b"}),
        ("bf", {1: "a", 2: "bcd"}),
        ("wf", {1: "ac", 2: "bd"}),
    ],
)
def test_fits_over_a_list_in_given_order(speeds_of, in_order, name, bins):
    """5, 6, 3, 1 into bins of 10. NF knows only bin 2 when 3 comes; BF fills 2 to 9 and to 10; WF has 5 < 6, 8 > 6."""
    problem = PackingProblem(speeds_of(a=5, b=6, c=3, d=1), 10, {})
    assert bins_of(ALGORITHMS[name](problem, in_order)) == bins


@pytest.mark.parametrize(
    ("name", "bins"),
    [
        ("nfd", {1: "a", 2: "bc", 3: "de"}),
        ("ffd", {1: "ac", 2: "bde"}),
        ("bfd", {1: "ac", 2: "bde"}),
        ("wfd", {1: "ad", 2: "bc", 3: "e"}),
    ],
)
def test_fits_from_fast_to_slow(speeds_of, in_order, name, bins):
    problem = PackingProblem(speeds_of(e=2, d=3, c=4, b=5, a=6), 10, {})
    assert bins_of(ALGORITHMS[name](problem, in_order)) == bins


def test_best_fit_is_not_first_fit(speeds_of, in_order):
    """4 fits on 5 and on 6: the first, or the tighter one."""
    problem = PackingProblem(speeds_of(a=5, b=6, c=4), 10, {})
    assert bins_of(ALGORITHMS["ff"](problem, in_order)) == {1: "ac", 2: "b"}
    assert bins_of(ALGORITHMS["bf"](problem, in_order)) == {1: "a", 2: "bc"}


GROUP = {1: "abc", 2: "de", 3: "f"}
SPEEDS = {"a": 60, "b": 30, "c": 20, "d": 50, "e": 10, "f": 45, "g": 25}


@pytest.mark.parametrize("name", ["mwf", "mbf", "mwfp", "mbfp"])
def test_algorithm_1_walked_through(speeds_of, assigned, in_order, name):
    """Capacity 100; consumers 1 (110), 2 (60), 3 (45) in this order by either sorting; g is new.

    1: no bin is open, so 1 is created: a (60), b (90); c does not fit and is left for the end.
    2: from small to large, e goes into 1 (100), d fits nowhere; 2 is created: d (50).
    3: f goes into 2 (95); nothing is left, so 3 is not created.
    End, from fast to slow: g fits nowhere, has no consumer, and opens the lowest free number, 3 (25); c joins it (45).
    """
    current = assigned(GROUP)
    problem = PackingProblem(speeds_of(**SPEEDS), 100, current)
    target = ALGORITHMS[name](problem, in_order)
    assert bins_of(target) == {1: "abe", 2: "df", 3: "cg"}
    assert rscore(current, target, problem.speeds, 100) == (20 + 10 + 45) / 100


@pytest.mark.parametrize(("name", "bins"), [("mwf", {1: "abc", 2: "defg"}), ("mbf", {1: "abcg", 2: "def"})])
def test_worst_and_best_fit_differ_in_where_the_rest_goes(speeds_of, assigned, in_order, name, bins):
    """1 holds 85, 2 holds 75 when the new g, 10, comes."""
    problem = PackingProblem(speeds_of(a=40, b=30, c=15, d=30, e=25, f=20, g=10), 100, assigned({1: "abc", 2: "def"}))
    assert bins_of(ALGORITHMS[name](problem, in_order)) == bins


@pytest.mark.parametrize(
    ("name", "bins"), [("mwf", {1: "abc"}), ("mbf", {1: "abc"}), ("mwfp", {2: "abc"}), ("mbfp", {2: "abc"})]
)
def test_consumers_are_taken_by_their_sum_or_by_their_fastest_partition(speeds_of, assigned, in_order, name, bins):
    """1 has 25 + 25, 2 has 40: who comes first is created and takes the other's."""
    problem = PackingProblem(speeds_of(a=25, b=25, c=40), 100, assigned({1: "ab", 2: "c"}))
    assert bins_of(ALGORITHMS[name](problem, in_order)) == bins


@pytest.mark.parametrize("name", ALGORITHMS)
def test_equal_speeds_are_told_apart_by_topic_and_number_and_equal_bins_by_number(name, in_order):
    partitions = [TopicPartition("b", 2), TopicPartition("a", 10), TopicPartition("a", 2), TopicPartition("b", 1)]
    problem = PackingProblem(dict.fromkeys(partitions, 60), 100, {})
    assert ALGORITHMS[name](problem, in_order) == {p: n for n, p in enumerate(sorted(partitions), 1)}


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name[0] != "n"])
def test_a_new_bin_is_the_partitions_own_consumer(speeds_of, assigned, in_order, name):
    """Section IV-C: nothing moves where every partition needs a bin of its own."""
    current = assigned({7: "a", 3: "b", 5: "c"})
    problem = PackingProblem(speeds_of(a=70, b=80, c=90), 100, current)
    assert ALGORITHMS[name](problem, in_order) == current


@pytest.mark.parametrize(("name", "bins"), [("nf", {1: "a", 3: "b", 5: "c"}), ("nfd", {1: "c", 3: "b", 7: "a"})])
def test_next_fit_opens_the_lowest_number_first(speeds_of, assigned, in_order, name, bins):
    """That bin is there before any partition is looked at; the others are the partitions' own consumers."""
    problem = PackingProblem(speeds_of(a=70, b=80, c=90), 100, assigned({7: "a", 3: "b", 5: "c"}))
    assert bins_of(ALGORITHMS[name](problem, in_order)) == bins


@pytest.mark.parametrize("name", ["ffd", "bfd", "wfd"])
def test_else_the_lowest_number_without_a_bin_even_a_running_consumers(speeds_of, assigned, in_order, name):
    """a and b share consumer 2; b, second, gets 1, though c reads there now; c, whose bin is there already, gets 3."""
    problem = PackingProblem(speeds_of(a=90, b=80, c=70), 100, assigned({2: "ab", 1: "c"}))
    assert bins_of(ALGORITHMS[name](problem, in_order)) == {2: "a", 1: "b", 3: "c"}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_partition_faster_than_a_consumer_is_alone(speeds_of, assigned, in_order, name):
    problem = PackingProblem(speeds_of(a=150, b=0, c=1), 100, assigned({1: "abc"}))
    target = ALGORITHMS[name](problem, in_order)
    assert sorted(bins_of(target).values()) == ["a", "bc"]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_joined_spares_are_used_before_new_numbers(speeds_of, in_order, name):
    problem = PackingProblem(speeds_of(a=90, b=80, c=70), 100, {}, spares=frozenset({9, 4}))
    assert sorted(bins_of(ALGORITHMS[name](problem, in_order))) == [1, 4, 9]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_numbers_quarantined_are_not_used(speeds_of, assigned, in_order, name):
    problem = PackingProblem(
        speeds_of(a=90, b=80, c=70),
        100,
        assigned({1: "a", 2: "b"}),
        quarantined=frozenset({1, 3}),
        spares=frozenset({3}),
    )
    assert sorted(bins_of(ALGORITHMS[name](problem, in_order))) == [2, 4, 5]


@pytest.mark.parametrize(
    ("name", "bins"),
    [
        *((name, {3: "ad", 4: "bc"}) for name in ("nfd", "ffd", "bfd", "wfd")),
        *((name, {3: "ab", 4: "cd"}) for name in ("mwf", "mbf", "mwfp", "mbfp")),
    ],
)
def test_what_fits_nowhere_goes_where_the_load_is_least(speeds_of, assigned, in_order, name, bins):
    """At most two for 270. From fast to slow: c joins b, 80 < 90; d joins a, 90 < 140.

    The modified ones fill 3 (a) and 4 (c, d) first, and b, for which no bin can be added, joins a, 90 < 100.
    """
    problem = PackingProblem(speeds_of(a=90, b=80, c=60, d=40), 100, assigned({3: "ab", 4: "cd"}), max_consumers=2)
    assert {frozenset(held) for held in bins_of(ALGORITHMS[name](problem, in_order)).values()} == {
        frozenset(held) for held in bins.values()
    }


@pytest.mark.parametrize("name", ALGORITHMS)
def test_pinned_partitions_stay_and_leave_no_room_that_is_not_there(speeds_of, assigned, in_order, name):
    current = assigned({5: "ab", 6: "c"})
    pinned = frozenset(p for p in current if p.topic in "ab")
    problem = PackingProblem(speeds_of(a=80, b=70, c=10, d=20), 100, current, pinned=pinned)
    target = ALGORITHMS[name](problem, in_order)
    assert {p.topic for p in target if target[p] == 5} == {"a", "b"}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_no_partition_needs_no_consumer(name, in_order):
    assert ALGORITHMS[name](PackingProblem({}, 100, {TopicPartition("gone", 0): 1}, min_consumers=3), in_order) == {}


def test_a_shuffled_list_is_the_same_for_the_same_seed(speeds_of):
    speeds = {TopicPartition("t", n): n % 60 for n in range(60)}
    problem = PackingProblem(speeds, 100, {})
    drawn = [tuple(ALGORITHMS["bf"](problem, Random(seed)).items()) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"capacity": 0}, "capacity 0: must be a number greater than 0"),
        ({"capacity": float("nan")}, "capacity nan: must be a number greater than 0"),
        ({"speeds": {TopicPartition("t", 1): -1}}, "t:1: write speed -1: must be 0 or greater"),
        ({"speeds": {TopicPartition("t", 1): float("nan")}}, "t:1: write speed nan: must be 0 or greater"),
        ({"speeds": {TopicPartition("t", 1): float("inf")}}, "t:1: write speed inf: must be 0 or greater"),
        ({"min_consumers": 3, "max_consumers": 2}, "from 3 to 2 consumers: not a range"),
        ({"max_consumers": 0, "min_consumers": 0}, "from 0 to 0 consumers: not a range"),
        ({"pinned": frozenset({TopicPartition("t", 0)})}, "t:0: pinned, but has no consumer or no speed"),
    ],
)
def test_what_cannot_be_is_refused(change, message):
    with pytest.raises(MeasurementError, match=message):
        PackingProblem(**{"speeds": {}, "capacity": 100, "current": {}, **change})
