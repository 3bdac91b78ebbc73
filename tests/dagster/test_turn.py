"""One look at a time; but a look that hangs must not end all looks for ever."""

import threading
from contextlib import ExitStack, contextmanager

import dagster as dg
import pytest

from kgs_core.errors import TransientError
from kgs_dagster.sensors import build_sensors
from kgs_dagster.turn import HANGS_AFTER_S, MOST_HUNG, Turn
from tests.dagster.groups import group, two_groups


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_two_looks_at_once_are_one_too_many(clock):
    turn = Turn(clock)
    with turn.taken() as first, turn.taken() as second:
        assert (first, second) == ("", "the look before this one is not over")
    with turn.taken() as third:
        assert third == ""


def test_a_look_that_hangs_is_gone_past_and_reported(clock):
    turn = Turn(clock)
    with ExitStack() as hanging:
        hanging.enter_context(turn.taken())
        clock.now += HANGS_AFTER_S + 1
        with turn.taken() as second:
            assert second == ""
            assert turn.hung == "1 look of before hangs, since 181 s"
            with turn.taken() as third:
                assert third == "the look before this one is not over"
    assert turn.hung == ""


def test_what_hung_and_comes_back_takes_nobody_elses_turn(clock):
    turn = Turn(clock)
    first, second = turn.taken(), turn.taken()
    first.__enter__()
    clock.now += HANGS_AFTER_S + 1
    second.__enter__()
    first.__exit__(None, None, None)
    with turn.taken() as third:
        assert third == "the look before this one is not over"
    second.__exit__(None, None, None)


def test_so_many_may_hang_and_no_more(clock):
    """Each has a thread of the code server, which the sensors of other groups need, too."""
    turn = Turn(clock)
    with ExitStack() as hanging:
        for _ in range(MOST_HUNG):
            assert hanging.enter_context(turn.taken()) == ""
            clock.now += HANGS_AFTER_S + 1
        with turn.taken() as why:
            assert why.startswith(f"{MOST_HUNG} looks hang, since ")
            assert "restart the code location" in why


def test_a_tick_of_the_load_sensor_that_hangs_ends_no_control_loop(instance, clock):
    """Its lock had no age: the group had no controller until somebody restarted the code server."""
    let_go, hangs = threading.Event(), threading.Event()

    @contextmanager
    def connect(_group, _instance):
        if not hangs.is_set():
            hangs.set()
            let_go.wait(60)  # a client whose end does not come
        raise TransientError("Kafka was asked")
        yield

    class Timing:
        steady = clock

    (sensor,) = build_sensors(group(), connect=connect, timing=Timing())

    def tick():
        return sensor.evaluate_tick(dg.build_sensor_context(instance=instance)).skip_message

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        assert hangs.wait(60)
        assert tick() == "the look before this one is not over"
        clock.now += HANGS_AFTER_S + 1
        assert tick() == "Kafka was asked"
    finally:
        let_go.set()
        thread.join(60)


def test_a_sensor_that_hangs_holds_up_no_other_groups(instance):
    let_go, hangs = threading.Event(), threading.Event()
    first, second = two_groups()

    @contextmanager
    def connect(which, _instance):
        if which is first:
            hangs.set()
            let_go.wait(60)
        raise TransientError(f"Kafka of {which.name} was asked")
        yield

    ours, theirs = (build_sensors(each, connect=connect)[0] for each in (first, second))
    thread = threading.Thread(target=ours.evaluate_tick, args=(dg.build_sensor_context(instance=instance),))
    thread.start()
    try:
        assert hangs.wait(60)
        context = dg.build_sensor_context(instance=instance)
        assert theirs.evaluate_tick(context).skip_message == "Kafka of c-d was asked"
    finally:
        let_go.set()
        thread.join(60)
