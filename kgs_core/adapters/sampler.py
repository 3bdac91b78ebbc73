"""Measures and publishes, one measurement at a time, for who asks."""

import time

from kgs_core.adapters.measured_load import lake_view, measured_load
from kgs_core.adapters.monitor_process import Monitor
from kgs_core.config import Settings
from kgs_core.control.events import Measured
from kgs_core.monitor import Measurement

BACKLOG_EVERY_S = 5.0
"""To ask the lake for every position takes longer than to ask Kafka for sizes."""
_PUBLISHED_WITHIN_S = 0.5


class Sampler:
    """A monitor that is asked once a second. For one thread."""

    def __init__(self, settings: Settings) -> None:
        """Connects, makes the topic if it is missing, and takes what was published of late into the window.

        Raises:
            PortError: Kafka cannot be reached, or refuses.
        """
        self._settings = settings
        self._monitor = Monitor(settings, publish=True)
        self._lake = lake_view(settings) if settings.packing.catch_up_s else None
        self._due_s = float("-inf")
        try:
            self._monitor.rebuild()
        except BaseException:
            self._monitor.close()
            raise

    def sample(self) -> Measured | None:
        """One more measurement is published; None where it is none to pack by.

        That is so before any speed can be known, for the group would be packed anew soon; where it is not known to be
        in the topic, for nobody could be referred to it; and between two looks at the backlog, where that counts.

        Raises:
            TransientError: Kafka does not answer.
            PermanentError: it refuses.
        """
        measurement = self._monitor.tick()
        offset = self._monitor.published_offset(_PUBLISHED_WITHIN_S)
        now = time.monotonic()
        if offset is None or now < self._due_s or self._is_premature(measurement):
            return None
        if self._lake is not None:
            self._due_s = now + BACKLOG_EVERY_S
        return Measured(measured_load(self._settings, measurement, self._lake), offset, time.monotonic() - now)

    def close(self) -> None:
        """End the connections."""
        self._monitor.close()

    def _is_premature(self, measurement: Measurement) -> bool:
        monitor = self._settings.monitor
        is_young = self._monitor.filled_s < monitor.min_span_s + 2 * monitor.interval_s
        return is_young and bool(measurement.speeds) and not measurement.known
