"""Ending on a signal: by a flag that is looked at, never by an exception out of the handler (it would break py4j)."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_STEP_S = 0.05


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
def stop_on_signals() -> Iterator[StopFlag]:
    """A flag that SIGTERM and SIGINT set while the block runs; main thread only."""
    flag = StopFlag()

    def handle(_number: int, _frame: FrameType | None) -> None:
        flag.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
