"""Each algorithm on examples that can be checked by hand; all else is told by the plain ones in `reference.py`."""

from random import Random

import pytest

from kgs_core.errors import MeasurementError
from kgs_core.model import TopicPartition
from kgs_core.packing import ALGORITHMS, PackingProblem, rscore

ALL = pytest.mark.parametrize("name", ALGORITHMS)
FIRST, PARTITION = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def pack(speeds_of, in_order, bins_of):
    """`{1: "ab"}`, the bins of C = 100 that come of these speeds and of who reads what now."""

    def run(name, speeds, current=None, **options):
        return bins_of(ALGORITHMS[name](PackingProblem(speeds_of(**speeds), 100, current or {}, **options), in_order))

    return run


@pytest.mark.parametrize(
    ("name", "bins"),
    [
        ("nf", {1: "a", 2: "bcd", 3: "e"}),
        ("ff", {1: "acd", 2: "b", 3: "e"}),
        ("bf", {1: "a", 2: "bcd", 3: "e"}),
        ("wf", {1: "ac", 2: "bd", 3: "e"}),
        ("nfd", {1: "e", 2: "b", 3: "acd"}),
        ("ffd", {1: "de", 2: "bc", 3: "a"}),
        ("bfd", {1: "de", 2: "bc", 3: "a"}),
        ("wfd", {1: "e", 2: "bd", 3: "ac"}),
    ],
)
def test_classic_fits(pack, name, bins):
    """Over the list as it is, or from fast to slow: NF knows only the last bin; BF fills up; WF takes the emptiest."""
    assert pack(name, {"a": 50, "b": 60, "c": 30, "d": 10, "e": 90}) == bins


GROUP = {1: "abc", 2: "de", 3: "f"}
SPEEDS = {"a": 60, "b": 30, "c": 20, "d": 50, "e": 10, "f": 45, "g": 25}


@pytest.mark.parametrize("name", ["mwf", "mbf", "mwfp", "mbfp"])
def test_algorithm_1_walked_through(speeds_of, assigned, in_order, bins_of, name):
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


@ALL
def test_equal_speeds_are_told_apart_by_topic_and_number_and_equal_bins_by_number(name, in_order):
    partitions = [TopicPartition("b", 2), TopicPartition("a", 10), TopicPartition("a", 2), TopicPartition("b", 1)]
    problem = PackingProblem(dict.fromkeys(partitions, 60), 100, {})
    assert ALGORITHMS[name](problem, in_order) == {p: n for n, p in enumerate(sorted(partitions), 1)}


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name[0] != "n"])
def test_a_new_bin_is_the_partitions_own_consumer(pack, assigned, name):
    """Section IV-C: nothing moves where every partition needs a bin of its own."""
    bins = {7: "a", 3: "b", 5: "c"}
    assert pack(name, {"a": 70, "b": 80, "c": 90}, assigned(bins)) == bins


@ALL
def test_a_partition_faster_than_a_consumer_is_alone(pack, assigned, name):
    assert sorted(pack(name, {"a": 150, "b": 0, "c": 1}, assigned({1: "abc"})).values()) == ["a", "bc"]


@ALL
def test_new_numbers_are_spares_first_and_never_quarantined(pack, assigned, name):
    speeds = {"a": 90, "b": 80, "c": 70}
    assert sorted(pack(name, speeds, spares=frozenset({9, 4}))) == [1, 4, 9]
    options = {"quarantined": frozenset({1, 3}), "spares": frozenset({3})}
    assert sorted(pack(name, speeds, assigned({1: "a", 2: "b"}), **options)) == [2, 4, 5]


@pytest.mark.parametrize(
    ("name", "bins"),
    [
        *((name, ["ad", "bc"]) for name in ("nfd", "ffd", "bfd", "wfd")),
        *((name, ["ab", "cd"]) for name in ("mwf", "mbf", "mwfp", "mbfp")),
    ],
)
def test_what_fits_nowhere_goes_where_the_load_is_least(pack, assigned, name, bins):
    """At most two for 270. From fast to slow: c joins b, 80 < 90; d joins a, 90 < 140.

    The modified ones fill 3 (a) and 4 (c, d) first, and b, for which no bin can be added, joins a, 90 < 100.
    """
    found = pack(name, {"a": 90, "b": 80, "c": 60, "d": 40}, assigned({3: "ab", 4: "cd"}), max_consumers=2)
    assert sorted(found.values()) == bins


@ALL
def test_pinned_partitions_stay_and_leave_no_room_that_is_not_there(pack, assigned, tp, name):
    pinned = frozenset({tp("a"), tp("b")})
    assert pack(name, {"a": 80, "b": 70, "c": 10, "d": 20}, assigned({5: "ab", 6: "c"}), pinned=pinned)[5] == "ab"


@ALL
def test_no_partition_needs_no_consumer(pack, name):
    assert pack(name, {}, {TopicPartition("gone", 0): 1}, min_consumers=3) == {}


def test_a_shuffled_list_is_the_same_for_the_same_seed():
    problem = PackingProblem({TopicPartition("t", n): n % 60 for n in range(60)}, 100, {})
    drawn = [tuple(ALGORITHMS["bf"](problem, Random(seed)).items()) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"capacity": 0}, "capacity 0: must be a number greater than 0"),
        ({"capacity": float("nan")}, "capacity nan: must be a number greater than 0"),
        ({"speeds": {PARTITION: -1}}, "t:1: write speed -1: must be 0 or greater"),
        ({"speeds": {PARTITION: float("nan")}}, "t:1: write speed nan: must be 0 or greater"),
        ({"speeds": {PARTITION: float("inf")}}, "t:1: write speed inf: must be 0 or greater"),
        ({"min_consumers": 3, "max_consumers": 2}, "from 3 to 2 consumers: not a range"),
        ({"max_consumers": 0, "min_consumers": 0}, "from 0 to 0 consumers: not a range"),
        ({"pinned": frozenset({FIRST})}, "t:0: pinned, but has no consumer or no speed"),
    ],
)
def test_what_cannot_be_is_refused(change, message):
    with pytest.raises(MeasurementError, match=message):
        PackingProblem(**{"speeds": {}, "capacity": 100, "current": {}, **change})
