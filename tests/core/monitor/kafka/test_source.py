"""The monitor that is asked once a second: what it does when it is refused, and when Kafka is away for a moment."""

from types import SimpleNamespace

import pytest

from kgs_core.errors import PermanentError, TransientError
from kgs_core.monitor.kafka import source as module
from kgs_core.monitor.kafka.source import RETRY_S, MonitorSource

DENIED = PermanentError("Kafka b:9092: write 'monitor.writeSpeed': denied")


class Monitors:
    """Each that is opened; `opening` and `ticks` are errors that come up at the next calls."""

    def __init__(self):
        self.opened, self.closed, self.asked = 0, 0, 0
        self.opening, self.ticks = [], []
        self.now = 0.0

    def open(self, _settings):
        if self.opening:
            raise self.opening.pop(0)
        self.opened += 1
        return self

    def tick(self):
        self.asked += 1
        if self.ticks:
            raise self.ticks.pop(0)
        return SimpleNamespace(speeds={}, known={}, reading=SimpleNamespace(partitions={}))

    filled_s = 30.0

    def published_offset(self, _timeout_s):
        return None

    def close(self):
        self.closed += 1


@pytest.fixture
def monitors(monkeypatch):
    monitors = Monitors()
    monkeypatch.setattr(module.time, "monotonic", lambda: monitors.now)
    return monitors


@pytest.fixture
def source(monitors, settings):
    return MonitorSource(settings, monitors.open)


@pytest.mark.parametrize("error", [DENIED, TransientError("Kafka b:9092: no answer")], ids=["refused", "away"])
def test_one_that_cannot_be_opened_says_so_and_is_tried_again_after_a_while(monitors, source, error):
    monitors.opening = [error]
    for _ in range(3):
        with pytest.raises(type(error), match="Kafka b:9092"):
            source.newest()
    assert monitors.opened == 0, "not once a second"
    monitors.now = RETRY_S
    assert source.newest() is None
    assert (monitors.opened, monitors.asked) == (1, 1)


def test_one_that_is_refused_later_is_opened_anew(monitors, source):
    monitors.ticks = [DENIED]
    with pytest.raises(PermanentError):
        source.newest()
    assert monitors.closed == 1
    monitors.now = RETRY_S
    source.newest()
    assert monitors.opened == 2


def test_while_kafka_is_away_it_keeps_its_window_and_is_asked_each_time(monitors, source):
    monitors.ticks = [TransientError("no answer")] * 2
    for _ in range(2):
        with pytest.raises(TransientError):
            source.newest()
    source.newest()
    assert (monitors.opened, monitors.closed, monitors.asked) == (1, 0, 3)
    source.close()
    source.close()
    assert monitors.closed == 1


@pytest.mark.parametrize(("only_published", "is_told"), [(True, False), (False, True)])
def test_what_is_not_known_to_be_in_the_topic_is_for_those_who_refer_nobody_to_it(
    monitors, settings, only_published, is_told
):
    source = MonitorSource(settings, monitors.open, only_published=only_published)
    assert (source.newest() is not None) == is_told
