"""Measures and publishes, one measurement at a time, for who asks."""

import time

from kgs_core.adapters.monitor.load import lake_view, measured_load
from kgs_core.adapters.monitor.measurement_thread import OpenMonitor, publishing_monitor
from kgs_core.adapters.monitor.monitor import Monitor
from kgs_core.config import Settings
from kgs_core.controller.events import Measured
from kgs_core.errors import KgsError, TransientError
from kgs_core.monitor import Measurement

BACKLOG_EVERY_S = 5.0
"""To ask the lake for every position takes longer than to ask Kafka for sizes."""
RETRY_S = 15.0
_PUBLISHED_WITHIN_S = 0.5


class Sampler:
    """A monitor that is asked once a second. For one thread.

    One that is refused, or fails, says so whenever it is asked, and is connected anew after a while: whoever asks can
    do without, for consumers are started and orders given without a measurement, too.
    """

    def __init__(self, settings: Settings, open_monitor: OpenMonitor = publishing_monitor) -> None:
        """Does nothing yet.

        Args:
            settings: of the group.
            open_monitor: connects a monitor.
        """
        self._settings = settings
        self._open_monitor = open_monitor
        self._monitor: Monitor | None = None
        self._lake = lake_view(settings) if settings.packing.catch_up_s else None
        self._due_s = float("-inf")
        self._failed: tuple[KgsError, float] | None = None

    def sample(self) -> Measured | None:
        """One more measurement is published; None where it is none to pack by.

        That is so before any speed can be known, for the group would be packed anew soon; where it is not known to be
        in the topic, for nobody could be referred to it; and between two looks at the backlog, where that counts.

        Raises:
            PortError: Kafka cannot be reached, or refuses.
            ConfigError: settings that cannot be followed.
        """
        if self._failed is not None and time.monotonic() < self._failed[1]:
            raise self._failed[0]
        try:
            return self._sample()
        except KgsError as e:
            if self._monitor is None or not isinstance(e, TransientError):  # else it keeps its window
                self.close()
                self._failed = e, time.monotonic() + RETRY_S
            raise

    def close(self) -> None:
        """End the connections."""
        monitor, self._monitor = self._monitor, None  # first: it may fail
        if monitor is not None:
            monitor.close()

    def _sample(self) -> Measured | None:
        if self._monitor is None:
            self._monitor = self._open_monitor(self._settings)
        monitor = self._monitor
        measurement = monitor.tick()
        offset = monitor.published_offset(_PUBLISHED_WITHIN_S)
        now = time.monotonic()
        if offset is None or now < self._due_s or self._is_premature(monitor, measurement):
            return None
        if self._lake is not None:
            self._due_s = now + BACKLOG_EVERY_S
        return Measured(measured_load(self._settings, measurement, self._lake), offset, time.monotonic() - now)

    def _is_premature(self, monitor: Monitor, measurement: Measurement) -> bool:
        settings = self._settings.monitor
        is_young = monitor.filled_s < settings.min_span_s + 2 * settings.interval_s
        return is_young and bool(measurement.speeds) and not measurement.known
