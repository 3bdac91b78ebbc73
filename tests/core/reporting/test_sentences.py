"""What people are told of a group that is looked at."""

import re
from dataclasses import replace

import pytest

from kgs_core.group.controller.state import ControllerState
from kgs_core.group.protocol import RunState
from kgs_core.group.view.events import FleetSeen
from kgs_core.model import ConsumerId
from kgs_core.planning.load import Load
from kgs_core.ports import Run
from kgs_core.runtime.controller_loop import fleet_seen
from tests import sim_group
from tests.a_status import sentences_of
from tests.core.group.controller.watched_group import WatchedGroup, options
from tests.sim_group import tp

FOUR = {"a": 50, "b": 50, "c": 50, "d": 50}


@pytest.fixture
def group():
    group = WatchedGroup.of(options(spares=1), **FOUR)
    group.settle()
    return group


def seen(group, measured=None):
    watch = group.observer()
    watch = watch.observed(FleetSeen(group.world.fleet.runs()), group.now)
    state = watch.observed(measured or group.world.measured(), group.now).state
    return sentences_of(replace(state, listening=replace(state.listening, silence_counts_from=group.now)), group.now)


def test_a_group_at_rest(group):
    assert seen(group) == (
        "2 consumers read 4 of 4 partitions, spare: 3",
        "0.0002 MB/s in all, most for consumer 1: 0.0001 of 0.00012 MB/s",
    )


def test_a_group_that_is_idle():
    group = WatchedGroup.of(sim_group.options({"spare_consumers": 1, "idle_after_s": 5}), a=50, b=50)
    group.settle()
    group.speeds(a=0, b=0)
    group.until(lambda: len(group.world.fleet.living()) == 1)
    (first, _) = seen(group)
    assert re.fullmatch(r"idle since 1970-01-01 00:0.:..Z, everything is read, spare: \d", first)


def test_nothing_is_known_at_first():
    state = ControllerState(options(), 0.0)
    assert sentences_of(state, 0.0) == ("no Target yet", "no measurement yet")


def test_an_unknown_speed_and_an_old_measurement(group):
    known = Load({tp("a"): 50.0}, frozenset({tp("b"), tp("c"), tp("d")}), measurement_offset=1)
    assert "speed unknown: 3 partitions" in seen(group, known)[1]
    assert seen(group, replace(known, age_s=45.0))[1] == "the last measurement is 45 s old"


def test_who_is_silent(group):
    """Its partitions are not waited for: it reports them until somebody takes them."""
    group.world.reading(ConsumerId(1)).is_frozen = True
    member = group.world.reading(ConsumerId(1)).member
    group.run = None
    for _ in range(32):
        group.world.round()
    lines = seen(group)
    assert lines[-1] == f"silent: {member}"


def test_what_waits(group):
    """Consumer 1 is known to be dead, and its successor has not joined."""
    group.world.reading(ConsumerId(1)).kill()
    watch = group.observer()
    state = watch.observed(fleet_seen(group.world.fleet, watch.state.view), group.now).state
    assert sentences_of(state, group.now)[-1] == ("waiting: a:0: it has not joined, b:0: it has not joined")


def test_starts(group):
    watch = group.observer()
    failed = [Run(ConsumerId(7), f"old-{n}", 20.0 - n, is_over=True) for n in range(2)]
    quarantined = [Run(ConsumerId(8), f"bad-{n}", 20.0 - n, is_over=True) for n in range(3)]
    pending = Run(ConsumerId(9), "new", 1.0, is_over=False)
    state = watch.observed(FleetSeen([*failed, *quarantined, pending]), group.now).state
    lines = sentences_of(state, group.now)
    assert "starting: 9" in lines
    assert "consumer 8 failed 3 times, quarantined for 302 s" in lines
    assert not [line for line in lines if line.startswith("consumer 7")], "its wait is over"


def test_what_people_want_comes_first(group):
    group.world.set_desired_state(RunState.PAUSED)
    assert seen(group)[0] == "the group is to be paused"


def test_long_lists_are_cut():
    group = WatchedGroup.of(options(), **dict.fromkeys("abcde", 90))
    group.until(lambda: group.world.view().target is not None)
    (line,) = [line for line in seen(group) if line.startswith("waiting")]
    assert line.count("it has not joined") == 3
    assert line.endswith(", 2 more")


def test_a_topic_with_too_many_bad_records(group):
    reader = group.world.reading(ConsumerId(1))
    for share, words in ((0.6251, "62.5 %"), (1.0, "all"), (0.9999, "99.9 %")):
        reader.bad_shares = {"a": share}
        for _ in range(62):  # a full report at least: how bad it is alone is told with the next one
            group.world.round()
        assert f"topic a: {words} of its newest records are dead letters" in seen(group)


def test_what_stands_still_is_not_counted_as_read(group):
    """A group of which six partitions could not be read was said to read all fifteen."""
    for partition, owner, why in (("a", 1, "its table was moved"), ("b", 1, "the same"), ("c", 2, "lost records")):
        group.world.reading(ConsumerId(owner)).stopped[tp(partition)] = why
    for _ in range(3):
        group.world.round()
    assert seen(group)[:2] == (
        "1 consumer read 1 of 4 partitions, spare: 3",
        "3 partitions are stopped: a (1): its table was moved, b (1): the same, c (1): lost records",
    )
