"""Waiting for something to become true, with a deadline; tests never just sleep."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_POLL_S = 0.05
_SHARE = 0.2
"""Of its time, at most, that a wait spends asking: what it waits for needs the same few cores."""
_LONGEST_PAUSE_S = 0.5
PATIENCE = 3
"""The limit only tells a stop from a delay, so it costs nothing where all is well."""


def wait_until(condition: Callable[[], T], timeout_s: float, message: str) -> T:
    """The first truthy result of `condition`; AssertionError with `message` when there is none in a long time.

    Args:
        condition: asked again and again.
        timeout_s: long enough on a machine that does nothing else; several times that is waited.
        message: what was waited for.
    """
    deadline = time.monotonic() + PATIENCE * timeout_s
    while True:
        began = time.monotonic()
        result = condition()
        if result:
            return result
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"not within {PATIENCE * timeout_s} s: {message}")
        time.sleep(min(max(_POLL_S, (now - began) * (1 / _SHARE - 1)), _LONGEST_PAUSE_S))


def wait_for_upkeep() -> None:
    """Return when no checkpoint is being made beside a commit of this process."""
    for thread in threading.enumerate():
        if thread.name == "log-upkeep":
            thread.join()
