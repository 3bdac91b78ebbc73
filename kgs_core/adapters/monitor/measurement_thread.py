"""The monitor beside the controller: measures, publishes and keeps the newest load for whoever packs.

A monitor that is refused, or that fails, does not end the controller: the group keeps it, and it decides nothing by
what is not known. It is said, and the monitor is tried again.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Self

from kgs_core.adapters.lake.stats import LakeView
from kgs_core.adapters.monitor.load import measured_load
from kgs_core.adapters.monitor.monitor import Monitor
from kgs_core.adapters.system.shutdown import StopFlag
from kgs_core.config import Settings
from kgs_core.controller.events import Measured
from kgs_core.errors import KgsError
from kgs_core.monitor import Measurement

_BACKLOG_EVERY_S = 5.0
"""To ask the lake for every position takes longer than to ask Kafka for sizes."""
_PUBLISHED_WITHIN_S = 0.5
_RETRY_S = 15.0
_END_S = 15.0
"""What was published last is waited for, for 10 s at most; what the lake does not answer, no longer than this."""
_log = logging.getLogger(__name__)

OpenMonitor = Callable[[Settings], Monitor]


def publishing_monitor(settings: Settings) -> Monitor:
    """Connects, makes the topic if it is missing, and takes what was published of late into the window.

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


class MeasurementThread:
    """A measurement every `monitor.interval_s`; a context manager that ends it."""

    def __init__(
        self,
        settings: Settings,
        open_monitor: OpenMonitor = publishing_monitor,
        retry_s: float = _RETRY_S,
        end_s: float = _END_S,
    ) -> None:
        """Does nothing yet.

        Args:
            settings: of the group.
            open_monitor: connects a monitor.
            retry_s: how long after a failure the next one is connected.
            end_s: how long the end of the thread is waited for.
        """
        self._settings = settings
        self._open_monitor = open_monitor
        self._retry_s = retry_s
        self._end_s = end_s
        self._stop = StopFlag()
        self._lock = threading.Lock()
        self._newest: tuple[Measured, float] | None = None
        self._lake: LakeView | None = None
        self._due_s = float("-inf")
        self._said = ""
        self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(self._end_s)
        if self._thread.is_alive():
            _log.warning("the monitor has not ended within %g s: it is left behind", self._end_s)

    def newest(self) -> Measured | None:
        """The newest one, once; None when there is none since the last call."""
        with self._lock:
            found, self._newest = self._newest, None
        if found is None:
            return None
        measured, at = found
        return Measured(measured.load, measured.measurement_offset, time.monotonic() - at)

    def _run(self) -> None:
        """Until the end, whatever happens: nobody would see that the thread is gone."""
        while not self._stop.is_set:
            try:
                self._measure()
            except KgsError as e:
                self._say(str(e))
            except Exception as e:  # noqa: BLE001 - logged whole, and tried again: a thread must not end in silence
                _log.exception("the monitor has failed")
                self._say(f"{type(e).__name__}: {e}")
            self._stop.wait(self._retry_s)

    def _measure(self) -> None:
        """With one monitor, until the end or a failure.

        Raises:
            KgsError: Kafka or the lake refuses, or settings cannot be followed.
        """
        if self._lake is None and self._settings.packing.catch_up_s:
            self._lake = LakeView(self._settings)
        with self._open_monitor(self._settings) as monitor:
            monitor.run(self._stop, lambda measurement: self._take(monitor, measurement))

    def _say(self, why: str) -> None:
        """Once for each reason."""
        if why != self._said:
            self._said = why
            _log.warning(
                "no measurement, so nothing is packed; the group is controlled all the same, and the monitor is tried "
                "again every %g s: %s",
                self._retry_s,
                why,
            )

    def _take(self, monitor: Monitor, measurement: Measurement) -> None:
        at = time.monotonic()
        if at < self._due_s or self._is_premature(monitor, measurement):
            return
        if self._lake is not None:
            self._due_s = at + _BACKLOG_EVERY_S
        offset = monitor.published_offset(_PUBLISHED_WITHIN_S)
        measured = Measured(measured_load(self._settings, measurement, self._lake), offset)
        with self._lock:
            self._newest = measured, at
        if self._said:
            self._said = ""
            _log.info("measured again")

    def _is_premature(self, monitor: Monitor, measurement: Measurement) -> bool:
        """Whether it has come before any speed can be known: a group that is packed by it would be packed anew soon."""
        settings = self._settings.monitor
        is_young = monitor.filled_s < settings.min_span_s + 2 * settings.interval_s
        return is_young and bool(measurement.speeds) and not measurement.known
