"""Source of measurements in a thread beside the controller: it measures and publishes while the controller works.

A monitor that is refused, or that fails, does not end the controller: the group keeps it, and it decides nothing by
what is not known. It is logged, and the monitor is tried again.
"""

import logging
import threading
import time
from dataclasses import replace
from functools import partial
from typing import Self

from kgs_core.config import Settings
from kgs_core.errors import KgsError
from kgs_core.monitor.kafka.source import RETRY_S, MonitorSource, OpenMonitor, publishing_monitor
from kgs_core.planning.load import Load
from kgs_core.system.patience import LogOnChange
from kgs_core.system.shutdown import StopFlag

_END_S = 15.0
"""What was published last is waited for, for 10 s at most; what the lake does not answer, no longer than this."""
_NO_MEASUREMENT = (
    "no measurement, so nothing is packed; the group is controlled all the same, and the monitor is tried again: %s"
)
_log = logging.getLogger(__name__)


class MeasurementThread:
    """Port `MeasurementSource`: a measurement every `monitor.interval_s`; a context manager that ends it."""

    def __init__(
        self,
        settings: Settings,
        open_monitor: OpenMonitor = publishing_monitor,
        retry_s: float = RETRY_S,
        end_s: float = _END_S,
    ) -> None:
        self._source = MonitorSource(settings, open_monitor, retry_s, only_published=False)
        self._interval_s = settings.monitor.interval_s
        self._retry_s = retry_s
        self._end_s = end_s
        self._stop = StopFlag()
        self._lock = threading.Lock()
        self._newest: Load | None = None
        self._say = LogOnChange(partial(_log.warning, _NO_MEASUREMENT), partial(_log.info, "measured again"))
        self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(self._end_s)
        if self._thread.is_alive():
            _log.warning("the monitor has not ended within %g s: it is left behind", self._end_s)

    def newest(self) -> Load | None:
        """The newest one, once; None when there is none since the last call."""
        with self._lock:
            found, self._newest = self._newest, None
        return None if found is None else found.as_of(time.monotonic())

    def _run(self) -> None:
        """Until the end, whatever happens: nobody would see that the thread is gone."""
        due = time.monotonic()
        while not self._stop.is_set:
            try:
                self._measure()
            except Exception as e:  # noqa: BLE001 - logged whole, and tried again: a thread must not end in silence
                _log.exception("the monitor has failed")
                self._say(f"{type(e).__name__}: {e}")
                self._end_monitor()
                self._stop.wait(self._retry_s)
            # After a slow reading the next one comes at its own time, not several at once
            due = max(due + self._interval_s, time.monotonic())
            self._stop.wait(due - time.monotonic())
        self._end_monitor()

    def _measure(self) -> None:
        try:
            measured = self._source.newest()
        except KgsError as e:
            self._say(str(e))
            return
        if measured is None:
            return
        with self._lock:
            self._newest = replace(measured, read_at=time.monotonic())
        self._say("")

    def _end_monitor(self) -> None:
        try:
            self._source.close()
        except Exception:  # noqa: BLE001 - logged whole: nothing is left to be done with it
            _log.exception("the monitor could not be ended in order")
