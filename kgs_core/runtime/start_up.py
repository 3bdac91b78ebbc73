"""A consumer's start: waits after transient errors, and ends at once when asked to."""

import contextlib
import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

import psutil

from kgs_core.spark.errors import passing
from kgs_core.system.patience import LogOnChange
from kgs_core.system.shutdown import StopFlag

MAX_BACKOFF_S = 10.0
_LOOK_S = 0.1
_SLOW_S = 5.0
_FIRST_BACKOFF_S = 0.5
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class AskedToEndError(Exception):
    """The process was asked to end before its start was over."""


class StartUp:
    """A context manager around everything before the first batch.

    Nothing is owned yet, so an end costs nothing: at the first signal everything that the start has begun is killed,
    Spark's JVM included, and the process ends with 0. A foreign host process is not ended: the block is left as soon
    as the current call returns, as a call of Spark does without its JVM.

    Attributes:
        has_waited: whether the start had to wait.
    """

    def __init__(self, stop: StopFlag, tell: Callable[[str], None] | None = None, *, is_hosted: bool = False) -> None:
        """`tell` is called with what the start waits for, when a wait begins and now and then."""
        self.has_waited = False
        self._stop_flag = stop
        self._tell = tell
        self._is_hosted = is_hosted
        self._over = threading.Event()
        self._before: frozenset[int] = frozenset()
        self._watch = threading.Thread(target=self._until_asked, name="start-up", daemon=True)

    def __enter__(self) -> Self:
        self._before = frozenset(child.pid for child in _descendants())
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        was_over = self._over.is_set()
        self.is_done()
        # Asked to end in the middle of the start: whatever came of that is no error
        return isinstance(error, Exception) and not was_over and self._stop_flag.is_set

    def is_done(self) -> bool:
        """Mark the start as over; returns whether to continue. From here on an end is an orderly one."""
        self._over.set()
        self._watch.join()
        return not self._stop_flag.is_set

    def bear(self, do: Callable[[], _T], of: str = "Kafka") -> _T:
        """Call `do` until it succeeds, or fails for good; `of` names who should answer, for the log.

        Raises an AskedToEndError if the process is to end meanwhile.
        """
        backoff_s, say = _FIRST_BACKOFF_S, LogOnChange(partial(_log.warning, "cannot start yet, trying again: %s"))
        while True:
            slow = threading.Timer(_SLOW_S, _log.warning, ("cannot start yet: no answer so far from %s", of))
            slow.daemon = True
            slow.start()
            try:
                return do()
            except Exception as e:
                trouble = passing(e)
                if trouble is None:
                    raise
                say(trouble)
            finally:
                slow.cancel()
            self.has_waited = True
            if self._tell is not None:
                self._tell(trouble)
            self._stop_flag.wait(backoff_s)
            if self._stop_flag.is_set:
                raise AskedToEndError
            backoff_s = min(2 * backoff_s, MAX_BACKOFF_S)

    def _until_asked(self) -> None:
        while not self._over.wait(_LOOK_S):
            if self._stop_flag.is_set:
                _log.info("asked to end during the start")
                self._end()
                return

    def _end(self) -> None:
        begun = [child for child in _descendants() if child.pid not in self._before]
        if not self._is_hosted:
            logging.shutdown()
            # What the main thread says now, of a JVM that is gone, would hide why we end
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        for child in begun:
            with contextlib.suppress(psutil.Error):
                child.kill()
        if not self._is_hosted:
            os._exit(0)


def _descendants() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)
