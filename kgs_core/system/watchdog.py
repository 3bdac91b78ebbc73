"""Ends the process, whatever its other threads are doing: a stuck consumer must not look alive."""

import faulthandler
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

EXIT_SELF_FENCE = 1
SPARK_GONE_S = 30.0
_MAX_STEP_S = 1.0
_LAST_WORD_S = 3.0
_STDERR = 2
_log = logging.getLogger(__name__)


def start_watchdog(
    reason: Callable[[float], str | None], shortest_s: float, last_word: Callable[[str], None] | None = None
) -> None:
    """Ask `reason` for ever, in a thread of its own; the process ends at once when it gives one.

    Args:
        reason: gets `time.monotonic()`.
        shortest_s: the shortest time limit that it looks after.
        last_word: told the reason, where somebody else shall know of it; the end waits for it, but not long.
    """

    def watch() -> None:
        while (why := reason(time.monotonic())) is None:
            time.sleep(min(_MAX_STEP_S, shortest_s / 4))
        _end_process(why, last_word)

    threading.Thread(target=watch, name="watchdog", daemon=True).start()


@contextmanager
def limited(what: str, timeout_s: float, last_word: Callable[[str], None] | None = None) -> Iterator[None]:
    """The process ends at once when the block takes longer than this."""
    timer = threading.Timer(timeout_s, _end_process, [f"{what} takes longer than {timeout_s:g} s", last_word])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _end_process(why: str, last_word: Callable[[str], None] | None) -> None:
    """Every thread's stack goes to the standard error output, then the reason, last; then the process ends."""

    def tell() -> None:
        with suppress(OSError):  # no file can be opened, perhaps that is what is wrong
            os.write(_STDERR, stacks())  # not by the log: whoever is stuck may hold its lock, as these show
        _log.critical("%s: ending this process", why)
        if last_word is not None:
            last_word(why)
        logging.shutdown()

    # Not in this thread: the log may be locked, or a pipe that nobody reads.
    teller = threading.Thread(target=tell, name="last-word", daemon=True)
    teller.start()
    teller.join(_LAST_WORD_S)
    os._exit(EXIT_SELF_FENCE)


def stacks() -> bytes:
    """Where each thread is.

    Raises:
        OSError: no file can be opened.
    """
    # By way of memory: `faulthandler` holds the interpreter while it writes; a full pipe would hold up the end for ever
    memory = os.memfd_create("stacks")
    try:
        faulthandler.dump_traceback(memory)
        return os.pread(memory, os.fstat(memory).st_size, 0)
    finally:
        os.close(memory)


class RoundLimit:
    """A limit to the time between two touches."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._since = time.monotonic()

    def touch(self, since: float | None = None) -> None:
        """A round begins, or ends; `since`: when the one began of which something is still in hand; None: nothing."""
        self._since = time.monotonic() if since is None else since

    def reason(self, now: float) -> str | None:
        """Why the process must end; None while it need not."""
        is_over = now - self._since > self._timeout_s
        return f"batch older than batch_timeout_s={self._timeout_s:g}" if is_over else None


class SparkWatch:
    """Watch over Spark's JVM: gone for long means that the batch loop is stuck, which looks after every round."""

    def __init__(self, has_ended: Callable[[], bool], patience_s: float = SPARK_GONE_S) -> None:
        self._has_ended = has_ended
        self._patience_s = patience_s
        self._since: float | None = None

    def reason(self, now: float) -> str | None:
        """Why the process must end; None while it need not."""
        if not self._has_ended():
            return None
        self._since = now if self._since is None else self._since
        return "Spark's JVM has ended" if now - self._since > self._patience_s else None
