"""A monitor that is refused or fails ends nobody: it is said, and another one is tried."""

import threading
import time

import pytest

from kgs_core.errors import ConfigError, PermanentError, TransientError
from kgs_core.model import TopicId, TopicPartition
from kgs_core.monitor.kafka.measurement_thread import MeasurementThread
from kgs_core.monitor.speeds import Measure, PartitionReading, Reading, Window
from tests.waiting import wait_until

TP = TopicPartition("t", 0)
REFUSED = PermanentError("Kafka b:9092: describe log dirs: not authorized: give the right Describe on the cluster")


class FakeMonitor:
    """Measures one partition, a reading for each second of a window."""

    filled_s = 30.0

    def __init__(self, fails_after=None):
        self.fails_after, self.is_closed = fails_after, False
        self._window, self._t = Window(30, 10), 0.0

    def close(self):
        self.is_closed = True

    def tick(self):
        for _ in range(20):
            self._t += 1.0
            reading = PartitionReading(self._t, self._t, TopicId("x"), 1, 0, int(self._t), int(1000 * self._t))
            measurement = self._window.add(Reading(self._t, 0, "boot", Measure.LOG_DIRS, {TP: reading}))
        if self.fails_after is not None:
            raise self.fails_after
        return measurement

    def published_offset(self, _timeout_s):
        return 7


@pytest.fixture
def measuring(settings):
    """A thread whose monitors are these, one after the other; an exception: it cannot be connected."""

    def build(*monitors):
        due = iter(monitors)

        def connect(_settings):
            monitor = next(due)
            if isinstance(monitor, Exception):
                raise monitor
            return monitor

        return MeasurementThread(settings, connect, retry_s=0.01)

    return build


@pytest.mark.parametrize(
    "trouble",
    [
        REFUSED,
        FakeMonitor(fails_after=REFUSED),
        TransientError("Kafka b:9092: no answer"),
        ConfigError(["monitor: measure: cannot be followed"]),
        FakeMonitor(fails_after=RuntimeError("a fault of ours")),
    ],
    ids=["refused at the start", "a right taken away", "away", "settings", "a fault"],
)
def test_after_trouble_there_are_measurements_again(measuring, caplog, trouble):
    """What is not known is not told as something else meanwhile."""
    caplog.set_level("INFO")
    last = FakeMonitor()
    with measuring(trouble, trouble, last) as thread:
        measured = wait_until(thread.newest, 10, "a measurement")
    assert (measured.speeds, measured.measurement_offset) == ({TP: 1000.0}, 7)
    assert last.is_closed
    warnings = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    (said,) = [line for line in warnings if "nothing is packed" in line]
    assert "the group is controlled all the same, and the monitor is tried again: " in said
    assert "measured again" in caplog.messages


def test_while_the_monitor_is_refused_nothing_is_returned_and_nothing_raised(measuring):
    with measuring(*[REFUSED] * 1000) as thread:
        asked = [thread.newest() for _ in range(100) if time.sleep(0.001) is None]
    assert asked == [None] * 100


def test_a_measurement_is_returned_once(measuring):
    with measuring(FakeMonitor()) as thread:
        wait_until(thread.newest, 10, "a measurement")
        thread._stop.set()
        thread._thread.join()
        thread.newest()
        assert thread.newest() is None


def test_a_store_that_does_not_answer_does_not_keep_the_controller_from_ending(settings):
    """A look at the lake may hang for minutes: whoever asked for the end would kill the process."""
    answers = threading.Event()

    class Hung(FakeMonitor):
        def tick(self):
            answers.wait(60)

    with MeasurementThread(settings, lambda _: Hung(), end_s=0.1) as thread:
        pass
    assert not answers.is_set()
    assert thread.newest() is None
    answers.set()
