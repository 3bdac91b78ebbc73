"""Source of measurements that measures and publishes by itself, one at a time, for who asks."""

import time
from collections.abc import Callable
from dataclasses import replace

from kgs_core.config import Settings
from kgs_core.errors import KgsError, TransientError
from kgs_core.monitor.kafka.load import measured_load
from kgs_core.monitor.kafka.monitor import Monitor
from kgs_core.monitor.speeds import Measurement
from kgs_core.planning.load import Load

RETRY_S = 15.0
_PUBLISHED_WITHIN_S = 0.5

OpenMonitor = Callable[[Settings], Monitor]


def publishing_monitor(settings: Settings) -> Monitor:
    """A monitor whose topic is there, and whose window has what was published of late; raises as `Monitor`.

    Raises:
        PortError, ConfigError: Kafka cannot be reached or refuses, settings that cannot be followed.
    """
    monitor = Monitor(settings, publish=True)
    try:
        monitor.rebuild()
    except BaseException:
        monitor.close()
        raise
    return monitor


class MonitorSource:
    """Port `MeasurementSource`: a monitor that is asked once a second. For one thread.

    One that is refused, or fails, says so whenever it is asked, and is connected anew after a while: whoever asks can
    do without, for consumers are started and assignments given without a measurement, too.
    """

    def __init__(
        self,
        settings: Settings,
        open_monitor: OpenMonitor = publishing_monitor,
        retry_s: float = RETRY_S,
        *,
        only_published: bool = True,
    ) -> None:
        """Does nothing yet; with `only_published` a measurement not known to be in the topic is none to pack by."""
        self._settings = settings
        self._open_monitor = open_monitor
        self._retry_s = retry_s
        self._only_published = only_published
        self._monitor: Monitor | None = None
        self._failed: tuple[KgsError, float] | None = None

    def newest(self) -> Load | None:
        """One more measurement is made and published; None where it is none to pack by.

        That is so before any speed can be known, for the group would be packed anew soon; where it is not known to be
        in the topic, if nobody could be referred to it then.

        Raises:
            PortError: Kafka cannot be reached, or refuses.
            ConfigError: settings that cannot be followed.
        """
        if self._failed is not None and time.monotonic() < self._failed[1]:
            raise self._failed[0]
        try:
            return self._measure()
        except KgsError as e:
            if self._monitor is None or not isinstance(e, TransientError):  # else it keeps its window
                self.close()
                self._failed = e, time.monotonic() + self._retry_s
            raise

    def close(self) -> None:
        """End the connections."""
        monitor, self._monitor = self._monitor, None  # first: it may fail
        if monitor is not None:
            monitor.close()

    def _measure(self) -> Load | None:
        if self._monitor is None:
            self._monitor = self._open_monitor(self._settings)
        monitor = self._monitor
        measurement = monitor.tick()
        offset = monitor.published_offset(_PUBLISHED_WITHIN_S)
        now = time.monotonic()
        if (offset is None and self._only_published) or self._is_premature(monitor, measurement):
            return None
        return replace(measured_load(self._settings, measurement, offset), age_s=time.monotonic() - now)

    def _is_premature(self, monitor: Monitor, measurement: Measurement) -> bool:
        settings = self._settings.monitor
        is_young = monitor.filled_s < settings.min_span_s + 2 * settings.interval_s
        return is_young and bool(measurement.speeds) and not measurement.known
