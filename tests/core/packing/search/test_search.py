"""The packers that weigh consumers against moves: what they promise beyond what every packer does."""

from dataclasses import replace
from itertools import combinations, permutations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.packing import ALGORITHMS, FRONT, PackingProblem, setting_name
from kgs_core.packing.any_fit.sticky_eviction import least_evicted
from kgs_core.packing.search.packer import _step
from kgs_core.packing.search.relabel import MOST_EXACT, relabelled
from kgs_core.simulation.comparison import PUBLISHED
from kgs_core.simulation.replay import Conditions, replay, strategy_of
from kgs_core.simulation.streams import generate
from kgs_core.simulation.workload import StreamSpec

C = 100.0


def replayed(name, spec):
    """Consumers and Rscore of every measurement."""
    workload = generate(spec, Random(spec.key))
    strategy = strategy_of(name, workload, Conditions(), Random(0))
    return [(step.consumers, step.rscore) for step in replay(workload, strategy, Conditions())]


def means(rows):
    return np.mean(np.array(rows), axis=0)


@pytest.fixture(scope="module")
def spec():
    return StreamSpec(10, "uniform", 5, 40, 120, 2)


def test_fewest_is_never_more_than_bfd_and_moves_less(spec):
    ours, theirs = replayed("search@fewest", spec), replayed("bfd", spec)
    assert all(z <= b for (z, _), (b, _) in zip(ours, theirs, strict=True))
    assert means(ours)[1] < 0.8 * means(theirs)[1]


def test_a_consumer_weight_more_saves_consumers_and_moves_more(spec):
    rows = [means(replayed(setting_name("search", consumer_weight), spec)) for consumer_weight in (4.0, 1.0, 0.3)]
    assert rows[0][0] < rows[1][0] < rows[2][0]
    assert rows[0][1] > rows[1][1] > rows[2][1]


@pytest.mark.slow
@pytest.mark.parametrize("delta", [5, 25])
def test_every_published_packer_is_beaten_in_both(delta):
    spec = StreamSpec(delta, "uniform", 5, 50, 120, 2)
    points = [
        means(replayed(setting_name("search", consumer_weight), spec)) for consumer_weight in (None, *FRONT[1::2])
    ]
    for name in PUBLISHED:
        consumers, cost = means(replayed(name, spec))
        assert any(z <= consumers and r < cost for z, r in points), name


def test_keep_moves_less_than_what_was_published(spec):
    assert means(replayed("keep", spec))[1] < 0.6 * min(means(replayed(name, spec))[1] for name in PUBLISHED)


def test_the_same_seed_gives_the_same_plan_and_units_do_not_count(spec):
    speeds = generate(spec, Random(spec.key)).measurements[0]
    many = {p: s * 15_000 for p, s in speeds.items()}
    current = ALGORITHMS["wf"](PackingProblem(speeds, C, {}), Random(3))
    plans = [
        ALGORITHMS["search"](PackingProblem(s, c, current), Random(7))
        for s, c in ((speeds, C), (speeds, C), (many, 15_000 * C), (dict(reversed(speeds.items())), C))
    ]
    assert plans[0] == plans[1] == plans[2] == plans[3]


def test_too_few_consumers_are_overloaded_alike():
    speeds = {TopicPartition("t", n): 30.0 + n for n in range(24)}
    target = ALGORITHMS["search"](PackingProblem(speeds, C, {}, max_consumers=5), Random(0))
    loads = [sum(speeds[p] for p in target if target[p] == c) for c in set(target.values())]
    assert len(loads) == 5
    assert max(loads) < 1.1 * sum(speeds.values()) / 5


def test_what_is_pinned_stays_and_a_bound_holds(spec):
    speeds = {p: s for p, s in generate(spec, Random(1)).measurements[0].items() if s > 0}
    current = ALGORITHMS["wfd"](PackingProblem(speeds, C, {}), Random(0))
    pinned = frozenset(sorted(speeds)[::7])
    most = len(set(ALGORITHMS["bfd"](PackingProblem(speeds, C, current, pinned=pinned), Random(0)).values()))
    target = ALGORITHMS["search"](PackingProblem(speeds, C, current, pinned=pinned, max_consumers=most), Random(0))
    assert all(target[p] == current[p] for p in pinned)
    assert len(set(target.values())) <= most


def test_large_groups_are_searched_in_parts():
    spec = StreamSpec(10, "uniform", 1, 6, 2_400, 4)
    ours, keep = replayed("search", spec), replayed("keep", spec)
    mwf = replayed("mwf", spec)
    assert means(ours[1:])[1] < means(keep[1:])[1]
    assert means(ours[1:])[1] < 0.6 * means(mwf[1:])[1]
    assert means(ours[1:])[0] < 1.05 * means(mwf[1:])[0]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=9), st.integers(1, 200))
def test_the_least_that_ends_an_overload(speeds, over):
    speeds.sort(reverse=True)
    sums = [sum(chosen) for size in range(1, len(speeds) + 1) for chosen in combinations(speeds, size)]
    enough = [total for total in sums if total >= over]
    assert sum(speeds[i] for i in least_evicted(speeds, over)) == (min(enough) if enough else sum(speeds))


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 3), st.integers(1, 9)), min_size=1, max_size=10))
def test_relabelling_keeps_as_much_as_can_be(partitions):
    bins, homes, weights = (np.array(column) for column in zip(*partitions, strict=True))
    labels = dict(enumerate(relabelled(bins, homes, weights.astype(float)).tolist()))
    found = [consumer for consumer in labels.values() if consumer >= 0]
    assert len(set(found)) == len(found)

    def kept(names):
        return sum(w for b, h, w in partitions if h >= 0 and names.get(b) == h)

    assert kept(labels) == max(kept(dict(enumerate(order))) for order in permutations(range(4)))


def test_in_a_tangle_too_large_for_the_best_the_heaviest_comes_first():
    """What one consumer reads lies in more bins than are matched exactly; it takes over the one with most of it."""
    count = MOST_EXACT + 1
    labels = relabelled(np.arange(count), np.zeros(count, np.int64), 1.0 + np.arange(count) * 7 % count)
    heaviest = int(np.argmax(np.arange(count) * 7 % count))
    assert 0 < heaviest < count - 1
    assert np.flatnonzero(labels >= 0).tolist() == [heaviest]


def test_what_has_changed_since_the_last_packing_may_change_again_and_no_less_than_a_tenth_of_the_speed():
    """36 to 0: a little more of its own, for the rest as all on average; who was not there is like the others."""
    wild, calm, new, fast, still = (TopicPartition("t", n) for n in range(5))
    problem = PackingProblem({wild: 8.0, calm: 5.0, new: 1.0, fast: 90.0, still: 0.0}, C, {})
    assert (_step(problem).variance * C**2).tolist() == pytest.approx([0.64, 0.25, 0.01, 81.0])
    changed = replace(problem, earlier={wild: 2.0, calm: 5.0, still: 7.0})
    assert (_step(changed).variance * C**2).tolist() == pytest.approx([396 / 21, 360 / 21, 18, 81.0])


def test_a_partition_without_speed_does_not_join_one_that_is_too_fast():
    fast, idle = TopicPartition("t", 0), TopicPartition("t", 1)
    target = ALGORITHMS["search"](PackingProblem({fast: 150.0, idle: 0.0}, C, {fast: ConsumerId(1)}), Random(0))
    assert target == {fast: 1, idle: 2}


def test_a_consumer_that_holds_what_is_pinned_counts_though_it_reads_nothing():
    idle, *busy = [TopicPartition("t", n) for n in range(5)]
    speeds = {idle: 0.0, **dict.fromkeys(busy, 40.0)}
    current = {idle: ConsumerId(7), **{p: ConsumerId(n) for n, p in enumerate(busy, 1)}}
    problem = PackingProblem(speeds, C, current, pinned=frozenset({idle}), max_consumers=2)
    assert len(set(ALGORITHMS["search"](problem, Random(0)).values())) == 2


def test_where_too_few_consumers_are_allowed_all_of_them_are_used():
    speeds = {TopicPartition("t", n): s for n, s in enumerate([120.0] * 6 + [50.0] * 3 + [33.3] * 6 + [10.0] * 2)}
    for consumer_weight in (None, 0.3, 100.0):
        problem = PackingProblem(speeds, C, {}, max_consumers=8, consumer_weight=consumer_weight)
        assert len(set(ALGORITHMS["search"](problem, Random(0)).values())) == 8
