"""Groups that sleep while nothing is written: in storms, and from one record to the next. Replayed by seed."""

import pytest

from kgs_core.group.protocol import RunState, Target
from kgs_core.model import TopicPartition
from tests.world.storm import Storm
from tests.world.test_storm import LOOK, PARTITIONS, STEPS, come_to_rest

AWAKE = 3
"""Rounds within which a record wakes the group: it is measured, the Target is written, and a turn is over."""
READ = 3
"""Rounds until it is read by a spare; a consumer that must be started takes as many again."""
RECORD = TopicPartition("t", 0)


def falls_asleep(world, go_on=None):
    return world.until(lambda: world.sleeps() and world.is_at_rest(), 200, go_on)


def sleeps_began(world):
    targets = [one for one in world.topics.history if isinstance(one.message, Target)]
    pairs = zip([None, *targets], targets, strict=False)
    return [(a, b) for a, b in pairs if b.message.idle and not (a and a.message.idle)]


def forbidden(world):
    """Without L4, which bounds time in fair rounds: in a storm a controller may get no turn for long."""
    return [problem for problem in world.inspection.problems if " L4 " not in problem]


def check_sleeps(world, idle_after_s):
    """No group falls asleep sooner than `idle_after_s` after the Target that woke it."""
    for before, began in sleeps_began(world):
        assert before is None or began.timestamp_ms - before.timestamp_ms >= idle_after_s * 999


@pytest.mark.parametrize("seed", range(40), ids=lambda seed: f"seed{seed}")
def test_whatever_goes_wrong_it_sleeps_when_all_is_read_and_wakes_for_one_record(new_world, seed):
    """L5: with an unread record it is awake after `AWAKE` rounds; with S1 to S9 at every step."""
    idle_after_s, spares = 1 + seed % 9, seed // 2 % 2
    world = new_world(seed, strict=seed % 4 == 3, idle_after_s=idle_after_s, spares=spares)
    world.start_controller()
    storm = Storm(world, PARTITIONS, favours="nobody writes")
    world.rounds(5)
    storm.steps(STEPS)
    assert forbidden(world) == [], storm.done
    storm.calm()
    come_to_rest(world, storm)
    storm.quiet()
    if not world.load.speeds:
        return
    falls_asleep(world, storm.calm_round)
    assert len(world.fleet.living()) == spares
    before = len(world.topics.history)
    world.rounds(3 * LOOK)
    assert not any(isinstance(one.message, Target) for one in world.topics.history[before:]), "it sleeps on"
    world.topics.write(min(world.load.speeds))
    world.until(lambda: not world.sleeps(), AWAKE)
    world.until(lambda: not world.unread(), READ if spares else 2 * READ)
    falls_asleep(world, storm.calm_round)
    check_sleeps(world, idle_after_s)
    assert forbidden(world) == [], storm.done


def sleeping(new_world, **more):
    world = new_world(0, idle_after_s=5, **more)
    storm = Storm(world, 1)
    world.start_controller()
    world.until(world.is_at_rest, 60)
    storm.quiet()
    falls_asleep(world)
    return world


def test_a_controller_that_comes_a_week_later_knows_that_all_is_read(new_world):
    world = sleeping(new_world, spares=0)
    world.controller.kill()
    world.topics.logs = {log: kept for log, kept in world.topics.logs.items() if log.topic != "controller.metadata"}
    world.clock.now += 7 * 86_400
    world.start_controller()
    world.rounds(LOOK)
    assert world.sleeps()
    assert world.fleet.living() == []
    world.topics.write(RECORD)
    world.until(lambda: not world.unread(), 2 * READ)


def test_who_cannot_measure_wakes_the_group_and_lets_it_sleep_only_when_all_is_known_again(new_world):
    world = sleeping(new_world, spares=0)
    load, world.load = world.load, None
    world.until(lambda: not world.sleeps(), 20)
    world.rounds(3 * LOOK)
    assert not world.sleeps()
    world.load = load
    falls_asleep(world)
    check_sleeps(world, 5)


@pytest.mark.parametrize("state", [RunState.PAUSED, RunState.STOPPED])
def test_a_sleeping_group_can_be_paused_and_stopped_and_sleeps_on(new_world, state):
    world = sleeping(new_world)
    world.set_desired_state(state)
    world.rounds(LOOK)
    assert len(world.fleet.living()) == (state is RunState.PAUSED)
    world.topics.write(RECORD)
    world.rounds(LOOK)
    assert world.unread(), "it is to read nothing"
    world.set_desired_state(RunState.RUNNING)
    world.until(lambda: not world.unread(), 2 * READ)


def test_a_replacement_of_a_sleeping_group_is_over_at_once_but_for_its_spare(new_world):
    world = sleeping(new_world)
    world.want("2", "b")
    world.until(lambda: world.view().wanted is None, 30)
    world.until(world.is_at_rest, 30)
    assert world.sleeps()
    assert [process.habits.version for process in world.fleet.living()] == ["2"]


def test_what_the_packer_wants_of_a_sleeping_group_is_nothing(new_world):
    world = sleeping(new_world, apply="forced_only")
    world.ask_for_plan()
    world.rounds(3)
    assert world.sleeps()
    assert world.controller.state.target.applied_ms == world.view().desired_state.apply_ms
