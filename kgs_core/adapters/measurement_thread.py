"""The monitor beside the controller: measures, publishes and keeps the newest load for whoever packs."""

import threading
import time
from typing import Self

from kgs_core.adapters.lake_view import LakeView
from kgs_core.adapters.measured_load import measured_load
from kgs_core.adapters.monitor_process import Monitor
from kgs_core.adapters.stop_flag import StopFlag
from kgs_core.config import Settings
from kgs_core.control.events import Measured
from kgs_core.monitor import Measurement

_BACKLOG_EVERY_S = 5.0
"""To ask the lake for every position takes longer than to ask Kafka for sizes."""
_PUBLISHED_WITHIN_S = 0.5


class MeasurementThread:
    """A measurement every `monitor.interval_s`; a context manager that ends it."""

    def __init__(self, settings: Settings) -> None:
        """Connects, makes the topic if it is missing, and takes what was published of late into the window.

        Raises:
            PortError: Kafka cannot be reached, or refuses.
        """
        self._settings = settings
        self._monitor = Monitor(settings, publish=True)
        self._stop = StopFlag()
        self._lock = threading.Lock()
        self._newest: tuple[Measured, float] | None = None
        self._failure: Exception | None = None
        self._lake = LakeView(settings) if settings.packing.catch_up_s else None
        self._due_s = float("-inf")
        self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)
        try:
            self._monitor.rebuild()
        except BaseException:
            self._monitor.close()
            raise

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._monitor.close()

    def newest(self) -> Measured | None:
        """The newest one, once; None when there is none since the last call.

        Raises:
            PermanentError: Kafka refuses; there will be no more.
        """
        with self._lock:
            found, self._newest = self._newest, None
            failure = self._failure
        if failure is not None:
            raise failure
        if found is None:
            return None
        measured, at = found
        return Measured(measured.load, measured.measurement_offset, time.monotonic() - at)

    def _run(self) -> None:
        try:
            self._monitor.run(self._stop, self._take)
        except Exception as e:  # noqa: BLE001 - raised where it ends the process: in the thread nobody would see it
            with self._lock:
                self._failure = e

    def _take(self, measurement: Measurement) -> None:
        at = time.monotonic()
        if at < self._due_s or self._is_premature(measurement):
            return
        if self._lake is not None:
            self._due_s = at + _BACKLOG_EVERY_S
        offset = self._monitor.published_offset(_PUBLISHED_WITHIN_S)
        measured = Measured(measured_load(self._settings, measurement, self._lake), offset)
        with self._lock:
            self._newest = measured, at

    def _is_premature(self, measurement: Measurement) -> bool:
        """Whether it has come before any speed can be known: a group that is packed by it would be packed anew soon."""
        monitor = self._settings.monitor
        is_young = self._monitor.filled_s < monitor.min_span_s + 2 * monitor.interval_s
        return is_young and bool(measurement.speeds) and not measurement.known
