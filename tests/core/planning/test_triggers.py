"""The Sentinel: each exit condition, and when it asks for a run."""

from dataclasses import replace

import pytest

from kgs_core.model import TopicPartition
from kgs_core.planning.load import Load
from kgs_core.planning.triggers import ExitCondition, NoRun, Reason, RunRequest, Watched, decide, exit_conditions

GROUP = {1: "ab", 2: "c"}


@pytest.fixture
def calm(assigned):
    """Two consumers that read what they shall."""
    return Watched(target=assigned(GROUP), current=assigned(GROUP), joined=frozenset({1, 2}))


@pytest.fixture
def load(speeds_of):
    """Neither of the two could read all."""
    return Load(speeds_of(a=50, b=40, c=60))


def reasons(decision):
    return [condition.reason for condition in decision.conditions]


def test_nothing_happened(load, calm, packing, new_random):
    assert decide(load, calm, packing(), new_random) == NoRun()


def test_a_consumer_above_its_capacity_is_relieved(speeds_of, calm, packing, new_random, assigned):
    grown = Load(speeds_of(a=80, b=60, c=30))
    found = decide(grown, calm, packing(), new_random)
    assert isinstance(found, RunRequest)
    assert found.conditions == (ExitCondition(Reason.OVERLOADED, (1,)),)
    assert found.plan.target == assigned({1: "a", 2: "bc"})


def test_between_the_two_capacities_nothing_moves(speeds_of, calm, packing, new_random):
    """110 is above what is packed, 100, and not above what a consumer can read, 120."""
    assert decide(Load(speeds_of(a=60, b=50, c=30)), calm, packing(), new_random) == NoRun()


def test_a_partition_too_fast_for_any_consumer_does_not_keep_the_group_moving(speeds_of, calm, packing, new_random):
    assert decide(Load(speeds_of(a=50, b=40, c=500)), calm, packing(), new_random) == NoRun()


def test_an_overload_that_no_plan_relieves_moves_nothing(speeds_of, calm, packing, new_random):
    """At most two consumers: the plan differs, but takes away less than a tenth of what is too much."""
    crowded = Load(speeds_of(a=200, b=190, c=300))
    assert decide(crowded, calm, packing(max_consumers=2), new_random) == NoRun(
        (ExitCondition(Reason.OVERLOADED, (1,)),)
    )


def test_a_backlog_can_overload_a_consumer(load, calm, packing, new_random, tp):
    behind = replace(load, lag_bytes={tp("a"): 6000.0})
    assert reasons(decide(behind, calm, packing(catch_up_s=60), new_random)) == [Reason.OVERLOADED]
    assert decide(behind, calm, packing(), new_random) == NoRun()


def test_a_partition_without_owner_is_handed_to_its_consumer_once_that_has_joined(
    load, calm, packing, new_random, assigned
):
    """The plan is the target's own, yet without a run nobody would read c."""
    waiting = replace(calm, current=assigned({1: "ab"}), joined=frozenset({1}))
    held = (ExitCondition(Reason.UNOWNED, partitions=tuple(assigned({2: "c"}))),)
    assert decide(load, waiting, packing(), new_random) == NoRun(held)
    found = decide(load, replace(waiting, joined=frozenset({1, 2})), packing(), new_random)
    assert isinstance(found, RunRequest)
    assert found.conditions == held
    assert found.plan.target == calm.target


def test_current_differs_from_target(load, calm, packing, new_random, assigned):
    """b is where it should not be; the plan starts from where it is."""
    found = decide(load, replace(calm, current=assigned({1: "a", 2: "bc"})), packing(), new_random)
    assert isinstance(found, RunRequest)
    assert found.conditions == (ExitCondition(Reason.DIFFERENT, partitions=tuple(assigned({2: "b"}))),)
    assert found.plan.moves == ()


def test_what_a_lost_consumer_read_goes_to_a_joined_spare(load, calm, packing, new_random, assigned):
    lost = replace(calm, current=assigned({1: "ab"}), joined=frozenset({1, 5}), lost=frozenset({2}))
    found = decide(load, lost, packing(), new_random)
    assert isinstance(found, RunRequest)
    assert reasons(found) == [Reason.UNOWNED, Reason.LOST]
    assert found.plan.target == assigned({1: "ab", 5: "c"})
    assert found.plan.rscore == 0.6, "c had a consumer and has another one: that a death forces it makes it no cheaper"


def test_a_lost_consumer_may_be_started_again_under_its_number(load, calm, packing, new_random, assigned):
    """No spare, no room elsewhere: the plan is the target, and nothing can be handed over yet."""
    lost = replace(calm, current=assigned({1: "ab"}), joined=frozenset({1}), lost=frozenset({2}))
    found = decide(load, lost, packing(), new_random)
    assert isinstance(found, NoRun)
    assert reasons(found) == [Reason.UNOWNED, Reason.LOST]


def test_a_restarted_consumer_is_given_its_partitions_again(load, calm, packing, new_random, assigned):
    restarted = replace(calm, current=assigned({1: "ab"}), restarted=frozenset({2}))
    found = decide(load, restarted, packing(), new_random)
    assert isinstance(found, RunRequest)
    assert reasons(found) == [Reason.UNOWNED, Reason.RESTARTED]
    assert found.plan.target == calm.target


def test_a_failing_consumers_number_is_quarantined(load, calm, packing, new_random, assigned):
    failing = replace(calm, current=assigned({1: "ab"}), joined=frozenset({1}), failing=frozenset({2}))
    found = decide(load, failing, packing(), new_random)
    assert isinstance(found, RunRequest)
    assert reasons(found) == [Reason.UNOWNED, Reason.FAILING]
    assert found.plan.target == assigned({1: "ab", 3: "c"})
    assert found.plan.create == (3,)


def test_a_new_partition_and_a_vanished_one(speeds_of, calm, packing, new_random, assigned, tp):
    found = decide(Load(speeds_of(a=50, c=60, d=10)), calm, packing(), new_random)
    assert isinstance(found, RunRequest)
    assert found.conditions == (
        ExitCondition(Reason.UNOWNED, partitions=(tp("d"),)),
        ExitCondition(Reason.CHANGED, partitions=(tp("b"), tp("d"))),
    )
    assert found.plan.target.keys() == {tp("a"), tp("c"), tp("d")}


class TestTimeout:
    @pytest.fixture
    def waited(self, calm):
        return replace(calm, since_packing_s=300.0)

    def test_fewer_consumers_are_better(self, speeds_of, waited, packing, new_random):
        found = decide(Load(speeds_of(a=10, b=10, c=10)), waited, packing(), new_random)
        assert isinstance(found, RunRequest)
        assert found.conditions == (ExitCondition(Reason.TIMEOUT),)
        assert found.plan.consumers == 1

    def test_a_plan_that_only_moves_changes_nothing(self, speeds_of, waited, packing, new_random):
        """MWF would put b to c, with as many consumers as before."""
        found = decide(Load(speeds_of(a=80, b=40, c=30)), waited, packing(), new_random)
        assert found == NoRun((ExitCondition(Reason.TIMEOUT),))

    @pytest.mark.parametrize(("consumer_weight", "is_made"), [(0.29, False), (0.3, True), ("fewest", True)])
    def test_what_is_saved_must_be_worth_what_is_moved(
        self, speeds_of, waited, packing, new_random, consumer_weight, is_made
    ):
        """One consumer less, for 0.3 of a consumer's capacity."""
        found = decide(Load(speeds_of(a=30, b=30, c=30)), waited, packing(consumer_weight=consumer_weight), new_random)
        assert isinstance(found, RunRequest) == is_made
        if is_made:
            assert (found.plan.consumers, found.plan.rscore) == (1, 0.3)

    def test_overload_is_no_question_of_worth(self, speeds_of, waited, packing, new_random):
        grown = Load(speeds_of(a=80, b=60, c=30))
        assert isinstance(decide(grown, waited, packing(consumer_weight=0.01), new_random), RunRequest)

    def test_before_the_time_nobody_looks(self, speeds_of, waited, packing, new_random):
        early = replace(waited, since_packing_s=299.9)
        assert decide(Load(speeds_of(a=10, b=10, c=10)), early, packing(), new_random) == NoRun()

    def test_nothing_is_given_up_on_missing_measurements(self, speeds_of, waited, packing, new_random, tp):
        quiet = Load(speeds_of(a=10, b=10, c=10), unknown=frozenset({tp("a")}))
        assert decide(quiet, waited, packing(), new_random) == NoRun()

    def test_as_many_consumers_with_less_to_move_are_better(self, speeds_of, waited, packing, new_random, assigned):
        """The target would still move b, 0.4; the plan moves nothing."""
        drifted = replace(waited, current=assigned({1: "a", 2: "bc"}))
        found = decide(Load(speeds_of(a=90, b=40, c=60)), drifted, packing(), new_random)
        assert isinstance(found, RunRequest)
        assert reasons(found) == [Reason.DIFFERENT, Reason.TIMEOUT]
        assert found.plan.rscore == 0


def test_conditions_come_in_one_order_and_long_lists_are_cut(load, calm, packing):
    many = tuple(TopicPartition("t", n) for n in range(7))
    assert str(ExitCondition(Reason.UNOWNED, partitions=many)) == (
        "partition without owner: t:0, t:1, t:2, t:3, t:4, 2 more"
    )
    assert str(ExitCondition(Reason.LOST, (2, 5))) == "consumer lost: 2, 5"
    assert str(ExitCondition(Reason.TIMEOUT)) == "looking for a better packing"
    worst = replace(
        calm, current={}, lost=frozenset({1}), restarted=frozenset({2}), failing=frozenset({2}), since_packing_s=1e6
    )
    found = [condition.reason for condition in exit_conditions(load, worst, packing())]
    assert found == [Reason.UNOWNED, Reason.LOST, Reason.RESTARTED, Reason.FAILING], "no better packing while unread"
    calm_again = replace(worst, current=calm.current)
    assert [c.reason for c in exit_conditions(load, calm_again, packing())][-1] is Reason.TIMEOUT
