"""Ending on a signal: by a flag that is looked at, never by an exception out of the handler (it would break py4j)."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_STEP_S = 0.05
_ENDING = frozenset({signal.SIGTERM, signal.SIGINT})


class StopFlag:
    """Set once, by a signal or a caller, and asked between records or rounds.

    A plain attribute: an event's lock, taken in a signal handler, could be held by the very thread it interrupts.
    """

    def __init__(self) -> None:
        self.is_set = False

    def set(self) -> None:
        """Asks for the end."""
        self.is_set = True

    def wait(self, seconds: float) -> None:
        """Waits, but not after the flag is set."""
        end = time.monotonic() + seconds
        while not self.is_set and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _STEP_S))


@contextmanager
def stop_after(seconds: float) -> Iterator[StopFlag]:
    """A flag that is set after `seconds`, unless the block ends before."""
    stop = StopFlag()
    timer = threading.Timer(seconds, stop.set)
    timer.daemon = True
    timer.start()
    try:
        yield stop
    finally:
        timer.cancel()


@contextmanager
def stop_on_signals() -> Iterator[StopFlag]:
    """A flag that SIGTERM and SIGINT set while the block runs; main thread only.

    It is set at once, also while the main thread is in a long call into a library: Python runs a handler between two of
    its own steps only, but writes the signal's number into a pipe by itself, and a thread waits at the other end.
    """
    flag = StopFlag()

    def handle(_number: int, _frame: FrameType | None) -> None:
        flag.set()

    def listen() -> None:
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            while numbers := pipe.read(64):
                if not _ENDING.isdisjoint(numbers):
                    flag.set()

    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    threading.Thread(target=listen, name="signals", daemon=True).start()
    outer = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(outer, warn_on_full_buffer=False)
        os.close(writing)  # the thread ends
