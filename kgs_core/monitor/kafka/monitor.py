"""The loop of the monitor: a reading every second, its speeds, published; and a measurement for who needs just one."""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from kgs_core.config import Settings
from kgs_core.errors import MeasurementError, PermanentError, TransientError
from kgs_core.kafka.admin import admin_of
from kgs_core.monitor.kafka.clock import clock
from kgs_core.monitor.kafka.partition_sizes import PartitionSizes
from kgs_core.monitor.kafka.topic import Publisher, create_topic, load_history
from kgs_core.monitor.speeds import Measurement, Reading, Window
from kgs_core.system.closing import Closing
from kgs_core.system.patience import LogOnChange
from kgs_core.system.shutdown import StopFlag

_SLACK = 5
_PATIENCE_S = 30.0
_SHOWN = 5
_log = logging.getLogger(__name__)

Show = Callable[[Measurement], None]
Progress = Callable[[float, float], None]
"""Is told seconds done and seconds in all."""


class ReadsPartitions(Protocol):
    """Source of readings; raises as `Monitor` does."""

    def read(self) -> Reading:
        """All partitions at about this moment.

        Raises:
            TransientError: no answer at all.
            PermanentError: refused.
        """

    def close(self) -> None:
        """End the connections."""


class Monitor(Closing):
    """Measures the write speeds of all topics that the settings name; a context manager that ends its connections.

    Its methods raise `TransientError` where Kafka does not answer, `PermanentError` where it refuses.
    """

    def __init__(self, settings: Settings, *, publish: bool, sizes: ReadsPartitions | None = None) -> None:
        """Connects; with `publish` the topic is made if it is missing, and every measurement goes there.

        Raises:
            PortError, ConfigError: Kafka cannot be reached or refuses, settings that cannot be followed.
        """
        self._settings = settings
        self._sizes = sizes or PartitionSizes(settings)
        self._admin = admin_of(settings)
        self._window = Window(settings.monitor.window_s, settings.monitor.min_span_s)
        self._publisher: Publisher | None = None
        if publish:
            create_topic(settings, self._admin)
            self._publisher = Publisher(settings)

    @property
    def is_full(self) -> bool:
        """Whether the window is filled."""
        monitor = self._settings.monitor
        return self._window.span_s >= monitor.window_s - monitor.interval_s

    @property
    def filled_s(self) -> float:
        """How much of the window is filled, seconds."""
        return self._window.span_s

    def rebuild(self) -> int:
        """Take what was published of late into the window; returns how many readings that were.

        Raises:
            PortError: Kafka does not answer, or refuses.
        """
        monitor = self._settings.monitor
        # Two monitors at once leave each other half of these records, which still is a window that gives speeds
        records = round(monitor.window_s / monitor.interval_s) + _SLACK
        taken, now = 0, time.monotonic()
        for measurement in load_history(self._settings, self._admin, records):
            reading = measurement.reading
            if reading.clock != clock() or reading.time_s > now:  # the latter would keep ours out
                continue
            try:
                self._window.take(reading)
                taken += 1
            except MeasurementError:  # two monitors publish in no certain order
                continue
        _log.info("window rebuilt readings=%d filled_s=%.1f", taken, self.filled_s)
        return taken

    def tick(self) -> Measurement:
        """One measurement, published if that was asked for.

        Raises:
            TransientError: Kafka does not answer.
            PermanentError: it refuses.
        """
        measurement = self._window.add(self._sizes.read())
        if self._publisher is not None:
            self._publisher.send(measurement)
        return measurement

    def published_offset(self, timeout_s: float) -> int | None:
        """Offset of the last measurement in the topic; None where it is not known to be there within `timeout_s`."""
        return None if self._publisher is None else self._publisher.settle(timeout_s)

    def run(self, stop: StopFlag, show: Show) -> None:
        """A measurement every `interval_s` until `stop`; `show` gets each, and no answer is logged.

        Raises:
            PermanentError: Kafka refuses.
        """
        interval_s = self._settings.monitor.interval_s
        due = time.monotonic()
        say = LogOnChange(partial(_log.warning, "no measurement: %s"))  # not every second
        while not stop.is_set:
            try:
                show(self.tick())
                say("")
            except TransientError as e:
                say(str(e))
            # After a slow reading the next one comes at its own time, not several at once
            due = max(due + interval_s, time.monotonic())
            stop.wait(due - time.monotonic())

    def close(self) -> None:
        """End the connections; what was published is waited for."""
        if self._publisher is not None:
            self._publisher.close()
        self._sizes.close()


def measure(
    settings: Settings, progress: Progress | None = None, stop: StopFlag | None = None, *, show: Show | None = None
) -> Measurement:
    """One measurement over a whole window: at once where a monitor publishes, after `window_s` seconds otherwise.

    Changes nothing: no topic is made, nothing is published.

    Args:
        stop: ends it early; the measurement then is of the time so far.
        show: is given each measurement on the way there. What a monitor has published is not used then, and no topic
            is missed.

    Raises:
        PortError, ConfigError: Kafka cannot be reached, refuses or stops answering; no topic matches.
    """
    stop = stop or StopFlag()
    window_s, interval_s = settings.monitor.window_s, settings.monitor.interval_s
    with Monitor(settings, publish=False) as monitor:
        if show is None:
            _take_published(monitor)
        give_up = time.monotonic() + window_s + _PATIENCE_S
        while True:
            began = time.monotonic()
            try:
                found = monitor.tick()
                (show or partial(_check_topics, settings))(found)
            except TransientError:
                if began > give_up or stop.is_set:
                    raise
            else:
                if progress is not None:
                    progress(monitor.filled_s, window_s)
                if monitor.is_full or began > give_up or stop.is_set:
                    return found
            stop.wait(began + interval_s - time.monotonic())


def _take_published(monitor: Monitor) -> None:
    try:
        monitor.rebuild()
    except PermanentError as e:  # whoever may measure need not have the right to read what others measured
        _log.info("published measurements are not used: %s", e)


def _check_topics(settings: Settings, found: Measurement) -> None:
    if found.speeds:
        return
    rules = " or ".join(f"'{rule.topic or rule.pattern}'" for rule in settings.topics)
    names = [name for name in admin_of(settings).list_topics() if not settings.is_internal(name)]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    there = f"the topics are {', '.join(names[:_SHOWN])}{more}" if names else "it has no topics"
    raise PermanentError(
        f"Kafka {settings.kafka.bootstrap_servers}: no topic matches {rules}: {there}: create the topics, or fix "
        "`topics`"
    )
