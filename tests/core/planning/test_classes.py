"""Classes of consumers: how large each is, and what a plan and the Sentinel make of them."""

from dataclasses import replace
from random import Random

import pytest

from kgs_core.config.packing import CONSUMER_SHARE, PackingSettings
from kgs_core.errors import ConfigError
from kgs_core.group.protocol import LearntCapacity
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.packing import ALGORITHMS
from kgs_core.packing.registry import register
from kgs_core.planning.group import Group
from kgs_core.planning.learnt_capacity import DEADBAND, Learnt, capacity_of, learn
from kgs_core.planning.load import Load
from kgs_core.planning.plan import make_plan
from kgs_core.planning.triggers import Reason, Watched, decide, exit_conditions
from tests.core.planning.test_learnt_capacity import SIZES, flat_out, report

A, B, C = (TopicPartition("t", n) for n in range(3))
CPU = {"small": {"price_per_hour": 1, "resources": {"requests": {"cpu": "500m"}}}}
CPU |= {"large": {"price_per_hour": "1.8", "resources": {"requests": {"cpu": "1"}}}}
SET = {"small": {"price_per_hour": 1}, "large": {"price_per_hour": 1.8, "consumer_capacity_bytes_per_s": 240}}


def packing(classes=SET, **more):
    given = {"packing_capacity_bytes_per_s": 100, "consumer_capacity_bytes_per_s": 120, "algorithm": "keep"}
    return PackingSettings(classes=classes, **{**given, **more})


def learns(classes=CPU):
    return PackingSettings(classes=classes)


def size(found, name):
    return found.packing.size(name)


def test_a_class_is_as_large_as_set_else_as_its_processors_else_as_the_first():
    assert packing().size("large") == 2.0
    assert packing(CPU).size("large") == 2.0
    assert packing({name: {"price_per_hour": 1} for name in "ab"}).size("b") == 1.0
    assert packing().classes_of({}).sizes["large"] == (200.0, 1.8)


@pytest.mark.parametrize(
    ("learnt", "sizes", "first", "large"),
    [
        ({"small": 100.0, "large": 150.0}, {}, 100.0, 1.5),
        ({"small": 100.0}, {}, 100.0, 2.0),
        ({"large": 150.0}, {}, 75.0, 2.0),
        ({"small": 100.0}, {"large": 1.7}, 100.0, 1.7),
        ({"small": 100.0, "large": 170 * (1 + DEADBAND / 2)}, {"large": 1.7}, 100.0, 1.7),
        ({"small": 100.0, "large": 150.0}, {"large": 1.7}, 100.0, 1.5),
    ],
    ids=["each learnt", "by its processors", "the first by another", "as it stands", "near what stands", "far from it"],
)
def test_what_is_learnt_of_each_class(learnt, sizes, first, large):
    found = capacity_of(learns(), Learnt(learnt.get("small"), "1", "a", classes=learnt), None, sizes=sizes)
    assert found.packing.consumer_capacity == pytest.approx(first * CONSUMER_SHARE)
    assert (size(found, "small"), size(found, "large")) == (1.0, pytest.approx(large))


@pytest.mark.parametrize(
    ("config", "first", "large"),
    [("a", 100.0, 1.5), ("b", 75.0, 2.0), ("", 75.0, 2.0)],
    ids=["as now", "other", "first"],
)
def test_what_the_first_class_is_known_to_read_counts_while_none_of_it_is_there(config, first, large):
    stands = LearntCapacity(100.0, "1" if config else "", config)
    found = capacity_of(learns(), Learnt(None, "1", "a", classes={"large": 150.0}), stands)
    assert found.packing.consumer_capacity == pytest.approx(first * CONSUMER_SHARE)
    assert size(found, "large") == pytest.approx(large)


def test_the_first_measurement_is_of_the_first_class():
    found = capacity_of(learns(), Learnt(), LearntCapacity(50.0, "", ""))
    assert (found.packing.consumer_capacity, size(found, "large")) == (50.0 * CONSUMER_SHARE, 2.0)


def test_reports_count_for_their_own_class_and_by_the_slowest_hardware():
    reports = [
        report(1, flat_out(100.0)),
        replace(report(2, flat_out(300.0)), consumer_class="large"),
        replace(report(3, flat_out(260.0, hardware="y")), consumer_class="large"),
        replace(report(4, flat_out(80.0)), consumer_class="gone"),
    ]
    found = learn(reports, SIZES, ("small", "large"))
    assert (found.bytes_per_s, found.classes) == (40.0, {"small": 40.0, "large": 130.0})
    assert learn(reports, SIZES).bytes_per_s == 50.0
    assert learn(reports, SIZES).classes == {}


def plan(speeds, current=None, of=None, settings=None, **more):
    group = Group(current or {}, classes=of or {}, **more)
    return make_plan(Load(speeds), group, settings or packing(), lambda: Random(0))


def test_a_plan_names_the_class_of_every_consumer_and_of_the_spare_the_one_that_the_fullest_needs():
    found = plan({A: 150.0, B: 30.0, C: 90.0})
    readers = {found.target[p]: found.classes[found.target[p]] for p in (A, C)}
    assert sorted(readers.values()) == ["large", "small"]
    (spare,) = found.spares
    assert (found.classes[spare], found.capacity_of(spare)) == ("large", 200.0)
    assert found.price == pytest.approx(2.8)
    assert found.capacity == 100.0
    assert found.overloaded == ()


def test_consumers_that_run_without_a_class_are_of_the_first():
    two = ConsumerId(2)
    found = plan({A: 90.0, B: 150.0}, {A: ConsumerId(1)}, spares=frozenset({two}), standing=frozenset({two}))
    assert found.classes.items() >= {ConsumerId(1): "small", two: "small"}.items()
    assert found.target[B] not in (1, 2)


def test_what_a_plan_cannot_place_is_said_by_each_consumers_own_capacity():
    pinned = Load({A: 90.0, B: 90.0}, unknown=frozenset({A, B}))
    current = dict.fromkeys((A, B), ConsumerId(1))
    for name, over in (("small", 1), ("large", 0)):
        found = make_plan(pinned, Group(current, classes={1: name}), packing(), lambda: Random(0))
        assert (len(found.overloaded), len(found.pinned)) == (over, 2 * over)
    (fast,) = plan({A: 500.0}).overloaded
    assert fast.capacity_bytes_per_s == 500.0
    assert plan({A: 180.0}).overloaded == ()


def test_what_was_moved_to_a_cheaper_consumer_is_not_brought_back_for_its_zone():
    settings = packing(
        {"own": {"price_per_hour": 1}, "spot": {"price_per_hour": 0.1}}, cross_zone_weight=1, consumer_weight="fewest"
    )
    one = ConsumerId(1)
    group = Group(dict.fromkeys((A, B), one), classes={one: "own"}, zones={one: "a"})
    found = make_plan(Load({A: 40.0, B: 40.0}, zones={A: "a", B: "a"}), group, settings, lambda: Random(0))
    assert [found.classes[consumer] for consumer in found.load] == ["spot"]


def watched(target, of, **more):
    return Watched(target, target, frozenset(target.values()), classes=of, **more)


def test_a_consumer_is_overloaded_by_its_own_capacity():
    target = {A: ConsumerId(1), B: ConsumerId(1)}
    load = Load({A: 110.0, B: 60.0})
    assert decide(load, watched(target, {1: "large"}), packing(), lambda: Random(0)).plan is None
    found = decide(load, watched(target, {1: "small"}), packing(), lambda: Random(0))
    assert found.plan is not None
    assert [one.reason for one in found.conditions] == [Reason.OVERLOADED]


def test_so_is_one_of_a_single_partition_that_a_larger_one_could_read():
    target = {A: ConsumerId(1)}
    for speed, reasons in ((130.0, [Reason.OVERLOADED]), (500.0, [])):
        found = exit_conditions(Load({A: speed}), watched(target, {1: "small"}), packing())
        assert [one.reason for one in found] == reasons


@pytest.mark.parametrize(("weight", "is_due"), [(1.3, True), (0.9, False)])
def test_a_cheaper_consumer_must_be_worth_the_moves(weight, is_due):
    target = {A: ConsumerId(1)}
    seen = watched(target, {1: "large"}, since_packing_s=300.0)
    found = decide(Load({A: 80.0}), seen, packing(consumer_weight=weight), lambda: Random(0))
    assert (found.plan is not None) is is_due


def test_other_peoples_algorithms_are_refused_in_words():
    register("mine", lambda problem, random: {})
    try:
        with pytest.raises(ValueError, match="algorithm 'mine' cannot pack classes of consumers: use one of nf, ff"):
            packing(algorithm="mine")
        with pytest.raises(ConfigError, match="cannot pack classes of consumers"):
            plan({A: 1.0}, settings=packing().model_copy(update={"algorithm": "mine"}))
        compared = make_plan(Load({A: 1.0}), Group(), packing(), lambda: Random(0), tuple(ALGORITHMS))
        assert "mine" not in {one.algorithm for one in compared.alternatives}
    finally:
        del ALGORITHMS["mine"]


@pytest.mark.parametrize(
    ("classes", "problem"),
    [
        ({"a": {"price_per_hour": 0}}, "classes.a.price_per_hour must be above 0"),
        ({"a": {"price_per_hour": "1 EUR"}, "b": {"price_per_hour": "1 USD"}}, "must be in one currency"),
        ({"a": {"price_per_hour": 1, "consumer_capacity_bytes_per_s": 5}}, "classes.a is the first class"),
        ({"A": {"price_per_hour": 1}}, "pattern"),
        ({"a": {}}, "Field required"),
    ],
)
def test_classes_that_cannot_be(classes, problem):
    with pytest.raises(ValueError, match=problem):
        packing(classes)
