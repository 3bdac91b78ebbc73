"""One look at a time; but a look that hangs must not end all looks for ever."""

import threading
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import dagster as dg
import pytest

from kgs_core.errors import TransientError
from kgs_dagster.sensors.partition_load import partition_load_sensor
from kgs_dagster.turn import HANGS_AFTER_S, MOST_HUNG, Turn
from tests.dagster.groups import two_groups


@pytest.fixture
def clock():
    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    return Clock()


def test_one_look_at_a_time_and_one_that_hangs_is_gone_past_and_reported(clock):
    """Where it comes back, it takes nobody else's turn."""
    turn, not_over = Turn(clock), "the previous look is not over"
    with ExitStack() as hanging:
        assert hanging.enter_context(turn.taken()) == ""
        with turn.taken() as second:
            assert (second, turn.hung) == (not_over, "")
        clock.now += HANGS_AFTER_S + 1
        with turn.taken() as second:
            assert (second, turn.hung) == ("", "1 earlier look hangs, since 181 s")
            with turn.taken() as third:
                assert third == not_over
            hanging.close()
            with turn.taken() as third:
                assert (third, turn.hung) == (not_over, "")
    with turn.taken() as last:
        assert (last, turn.hung) == ("", "")


def test_so_many_may_hang_and_no_more(clock):
    """Each has a thread of the code server, which the sensors of other groups need, too."""
    turn = Turn(clock)
    with ExitStack() as hanging:
        for _ in range(MOST_HUNG):
            assert hanging.enter_context(turn.taken()) == ""
            clock.now += HANGS_AFTER_S + 1
        with turn.taken() as why:
            assert why.startswith(f"{MOST_HUNG} looks hang, for ")
            assert "restart the code location" in why


class Away:
    """Ports whose opening hangs the first time, as a client does whose end does not come; then Kafka is away."""

    def __init__(self):
        self.hangs, self.let_go = threading.Event(), threading.Event()

    @contextmanager
    def __call__(self, which, _instance):
        if not self.hangs.is_set():
            self.hangs.set()
            self.let_go.wait(60)
        raise TransientError(f"Kafka of {which.name} was asked")
        yield

    @contextmanager
    def hanging(self, tick):
        thread = threading.Thread(target=tick)
        thread.start()
        try:
            assert self.hangs.wait(60)
            yield
        finally:
            self.let_go.set()
            thread.join(60)


def test_a_tick_of_the_load_sensor_that_hangs_ends_no_control_loop_and_holds_up_no_other_groups(instance, clock):
    """Its lock had no age: the group had no controller until somebody restarted the code server."""
    away = Away()
    timing = SimpleNamespace(steady=clock)
    ours, theirs = (partition_load_sensor(each, connect=away, timing=timing) for each in two_groups())

    def tick(sensor=ours):
        return sensor.evaluate_tick(dg.build_sensor_context(instance=instance)).skip_message

    with away.hanging(tick):
        assert tick() == "the previous look is not over"
        assert tick(theirs) == "Kafka of c-d was asked"
        clock.now += HANGS_AFTER_S + 1
        assert tick() == "Kafka of a.b was asked"
