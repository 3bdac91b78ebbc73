"""Waiting for a broker that is away: try again, and say what for."""

import math
import time
from collections.abc import Callable
from typing import TypeVar

from kgs_core.errors import TransientError
from kgs_core.system.shutdown import StopFlag

T = TypeVar("T")
_SHORTEST_S = 0.2


class LogOnChange:
    """Says a text when it is another one than the last; an empty one, that all is well, is not said."""

    def __init__(self, say: Callable[[str], object], well: Callable[[], object] = lambda: None) -> None:
        """`well` is called when an empty text follows another one."""
        self._say = say
        self._well = well
        self._last = ""

    def __call__(self, text: str) -> None:
        """Say it, unless it was said last."""
        if text != self._last:
            self._last = text
            if text:
                self._say(text)
            else:
                self._well()


def try_until(
    attempt: Callable[[], T], stop: StopFlag, say: Callable[[str], None], timeout_s: float = math.inf
) -> T | None:
    """What `attempt` gives, which is made again as long as it fails in passing; None when `stop` is set before.

    Args:
        attempt: must do no harm when it is made twice.
        say: told what is waited for, each time another thing.
        timeout_s: the last attempt begins no later.

    Raises:
        TransientError: it still fails after `timeout_s`.
    """
    log = LogOnChange(say)
    deadline = time.monotonic() + timeout_s
    while not stop.is_set:
        try:
            return attempt()
        except TransientError as e:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TransientError(f"not in {timeout_s:.0f} s: {e}", e.retry_after_s) from e
            log(f"waiting: {e}")
            stop.wait(min(max(e.retry_after_s, _SHORTEST_S), left_s))
    return None
