"""Metrics of a group given out beside other work, by threads of their own: what fails in them stops nothing else."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from kgs_core.config import Settings
from kgs_core.prometheus.exposition import MetricsServer
from kgs_core.runtime.metrics_reader import MetricsReader
from kgs_core.system.patience import LogOnChange

EVERY_S = 10.0
_END_S = 10.0
_log = logging.getLogger(__name__)


@contextmanager
def metrics_served(settings: Settings, address: str, port: int) -> Iterator[int]:
    """Serve the metrics at `/metrics` while the block runs, by connections of its own; gives the port.

    Raises:
        PermanentError: the address cannot be listened at.
    """
    stop = threading.Event()
    reader = MetricsReader(settings, per_partition=True, lag_seconds=True)
    with MetricsServer(reader.page, address, port) as server:
        thread = threading.Thread(target=_look_again_and_again, args=(reader, stop), name="metrics", daemon=True)
        thread.start()
        try:
            yield server.port
        finally:
            stop.set()
            thread.join(_END_S)  # a look that hangs ends with the process


def _look_again_and_again(reader: MetricsReader, stop: threading.Event) -> None:
    say = LogOnChange(partial(_log.info, "metrics: %s"))
    with reader:
        while not stop.is_set():
            try:
                say("; ".join(reader.look()))
            except Exception:  # noqa: BLE001 - whatever it is, the next look may find the group
                _log.exception("metrics: a look has failed")
            stop.wait(EVERY_S)
