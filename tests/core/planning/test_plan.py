"""The plan: what it says beside the target."""

import json

import pytest

from kgs_core.model import TopicPartition
from kgs_core.packing import ALGORITHMS
from kgs_core.planning.group import Group
from kgs_core.planning.load import Load
from kgs_core.planning.overload import FastPartition, FullConsumer
from kgs_core.planning.plan import Alternative, Move, make_plan
from kgs_core.reporting.plan_json import plan_values


def test_a_plan_as_a_whole(speeds_of, assigned, packing, new_random, tp):
    """1 (110) is created with a and b; c is left. 2 (60): e joins 1. 3: f joins 2. At the end c opens 3."""
    load = Load(speeds_of(a=60, b=30, c=20, d=50, e=10, f=45))
    plan = make_plan(load, Group(assigned({1: "abc", 2: "de", 3: "f"})), packing(), new_random, ["mwf", "bfd"])
    assert plan.algorithm == "mwf"
    assert plan.target == assigned({1: "abe", 2: "df", 3: "c"})
    assert list(plan.target) == sorted(plan.target)
    assert plan.moves == (Move(tp("f"), 3, 2, 45.0), Move(tp("c"), 1, 3, 20.0), Move(tp("e"), 2, 1, 10.0))
    assert plan.rscore == 0.75
    assert plan.load == {1: 100.0, 2: 95.0, 3: 20.0}
    assert (plan.consumers, plan.create, plan.retire, plan.spares) == (3, (), (), ())
    assert plan.overloaded == ()
    assert plan.alternatives == (Alternative("bfd", 3, 0.75, 3, 100.0),)


def test_an_alternative_has_the_setting_of_its_name(speeds_of, assigned, packing, new_random):
    load, group = Load(speeds_of(a=60, b=30)), Group(assigned({1: "a", 2: "b"}))
    plan = make_plan(load, group, packing(), new_random, ["search@fewest", "search@0.01"])
    assert [each.consumers for each in plan.alternatives] == [1, 2]


def test_moves_come_from_fast_to_slow_then_by_name(speeds_of, assigned, packing, new_random):
    load = Load(speeds_of(a=10, b=20, c=20, d=90))
    plan = make_plan(load, Group(assigned({1: "d", 2: "b", 3: "c", 4: "a"})), packing(), new_random)
    assert [move.partition.topic for move in plan.moves] == ["c", "a"]


def test_joined_spares_come_first_then_emptied_ones_then_new_ones(speeds_of, assigned, packing, new_random):
    load = Load(speeds_of(a=50, b=10, c=10))
    current = assigned({2: "a", 3: "b", 5: "c"})
    plan = make_plan(load, Group(current), packing(spare_consumers=1), new_random)
    assert (set(plan.target.values()), plan.spares, plan.retire, plan.create) == ({2}, (3,), (5,), ())
    group = Group(current, spares=frozenset({7}), standing=frozenset({7}))
    plan = make_plan(load, group, packing(spare_consumers=2), new_random)
    assert (plan.spares, plan.retire, plan.create) == ((3, 7), (5,), ())
    plan = make_plan(load, Group(), packing(spare_consumers=2), new_random)
    assert (plan.spares, plan.retire, plan.create) == ((2, 3), (), (1, 2, 3))


def test_a_standing_spare_that_has_not_joined_is_neither_created_nor_retired(speeds_of, assigned, packing, new_random):
    group = Group(assigned({1: "a"}), standing=frozenset({6}))
    plan = make_plan(Load(speeds_of(a=50)), group, packing(spare_consumers=1), new_random)
    assert (plan.spares, plan.retire, plan.create) == ((6,), (), ())


def test_growth_takes_a_joined_spare_and_starts_another(speeds_of, assigned, packing, new_random):
    group = Group(assigned({1: "ab"}), spares=frozenset({4}))
    plan = make_plan(Load(speeds_of(a=90, b=80)), group, packing(spare_consumers=1), new_random)
    assert plan.target == assigned({1: "a", 4: "b"})
    assert (plan.create, plan.retire, plan.spares) == ((2,), (), (2,))


def test_what_a_consumer_quarantined_reads_is_placed_elsewhere_and_counts_as_moved(
    speeds_of, assigned, packing, new_random
):
    group = Group(assigned({1: "a", 2: "b"}), quarantined=frozenset({1}))
    plan = make_plan(Load(speeds_of(a=60, b=60), unknown=frozenset(assigned({1: "a"}))), group, packing(), new_random)
    assert plan.target == assigned({2: "b", 3: "a"})
    assert (plan.create, plan.rscore) == ((3,), 0.6)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_partition_whose_speed_is_unknown_keeps_its_consumer(name, speeds_of, assigned, packing, new_random, tp):
    """Its last known speed still counts: nothing joins it that would not have fitted."""
    load = Load(speeds_of(a=10, b=95, c=95), unknown=frozenset({tp("b")}))
    plan = make_plan(load, Group(assigned({6: "b", 2: "ac"})), packing(algorithm=name), new_random)
    assert plan.target[tp("b")] == 6
    assert plan.load[6] == 95.0


def test_a_partition_faster_than_a_consumer_comes_with_its_cure(packing, new_random):
    """One of three partitions at 250 with C = 100: spread as now, 8 partitions have at most 250 x 3/8 < 100."""
    speeds = {TopicPartition("t", 0): 250.0, TopicPartition("t", 1): 10.0, TopicPartition("t", 2): 20.0}
    plan = make_plan(Load(speeds), Group(), packing(), new_random)
    assert plan.overloaded == (FastPartition(TopicPartition("t", 0), 1, 250.0, 8, 250.0),)


def test_a_bound_on_consumers_that_binds_says_what_would_be_enough(speeds_of, packing, new_random):
    plan = make_plan(Load(speeds_of(a=90, b=80, c=60)), Group(), packing(max_consumers=2), new_random)
    assert plan.overloaded == (FullConsumer(2, 140.0, 3, 140.0),)


def test_pinned_partitions_above_capacity_are_not_cured_by_more_consumers(speeds_of, assigned, packing, new_random, tp):
    load = Load(speeds_of(a=90, b=80), unknown=frozenset({tp("a"), tp("b")}))
    plan = make_plan(load, Group(assigned({1: "ab"})), packing(max_consumers=5), new_random)
    assert plan.overloaded == (FullConsumer(1, 170.0, None, 170.0),)


def test_json_has_numbers_in_order_and_rounded(packing, new_random):
    """Partition 10 after 2, consumer numbers as keys, bytes/s to a thousandth, the Rscore to a millionth."""
    speeds = {TopicPartition("t", n): 150.0 if n == 2 else 1 / 3 for n in (10, 2, 0)}
    current = {TopicPartition("t", 2): 1, TopicPartition("t", 0): 1, TopicPartition("t", 10): 2}
    plan = make_plan(Load(speeds), Group(current), packing(max_consumers=2), new_random, ["bfd"])
    values = plan_values(plan)
    assert list(values) == [
        "algorithm", "consumers", "rscore", "assignment", "moves", "load", "overloaded", "alternatives", "choice",
        "held_back",
        "cross_zone_bytes_per_s",
    ]  # fmt: skip
    assert list(values["assignment"]["t"]) == ["0", "2", "10"]
    assert values["assignment"] == {"t": {"0": 2, "2": 1, "10": 2}}
    assert values["moves"] == [{"topic": "t", "partition": 0, "from": 1, "to": 2, "bytes_per_s": 0.333}]
    assert values["rscore"] == 0.003333
    assert values["load"] == {"1": 150.0, "2": 0.667}
    assert values["overloaded"] == [
        {"topic": "t", "partition": 2, "consumer": 1, "bytes_per_s": 150.0,
         "cure": {"partitions": 5, "capacity_bytes_per_s": 150.0}},
    ]  # fmt: skip
    assert values["alternatives"] == [
        {"algorithm": "bfd", "consumers": 2, "rscore": 0.003333, "moved": 1, "max_load_bytes_per_s": 150.0}
    ]
    assert json.loads(json.dumps(values, allow_nan=False)) == values


def test_nothing_to_read_is_a_plan_without_consumers(packing, new_random):
    plan = make_plan(Load({}), Group(), packing(), new_random, ["bfd"])
    assert plan_values(plan)["consumers"] == 0
    assert plan.alternatives == (Alternative("bfd", 0, 0.0, 0, 0.0),)


def test_what_has_changed_since_the_last_packing_is_expected_to_change_again(packing, new_random):
    """Two consumers of 50 and 40: together they fit, but not if they change as they have."""
    speeds = {TopicPartition("t", 0): 50.0, TopicPartition("t", 1): 40.0, TopicPartition("t", 2): 5.0}
    current = {TopicPartition("t", n): n + 1 for n in range(2)} | {TopicPartition("t", 2): 1}
    earlier = {p: speed - 35 if speed > 35 else speed for p, speed in speeds.items()}
    settings = packing(algorithm="search", consumer_weight=0.46)
    calm = make_plan(Load(speeds, earlier=speeds), Group(current), settings, new_random)
    wild = make_plan(Load(speeds, earlier=earlier), Group(current), settings, new_random)
    assert (calm.consumers, wild.consumers) == (1, 2)
