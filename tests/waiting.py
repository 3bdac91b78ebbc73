"""Waiting for something to become true, with a deadline; tests never just sleep."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_POLL_S = 0.05


def wait_until(condition: Callable[[], T], timeout_s: float, message: str) -> T:
    """The first truthy result of `condition`; AssertionError with `message` when there is none within `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {message}")
        time.sleep(_POLL_S)
