"""One look at a time, though Dagster gives a tick up after a minute while its thread goes on; and none for ever."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kgs_core.group.view.plain_text import counted

HANGS_AFTER_S = 180.0
"""A tick lasts for a minute at most; what hangs in it (a database, a client's end, a store) may not come back."""
MOST_HUNG = 3
"""Each one that hangs has a thread of the code server, which has few, and needs them for the other sensors."""


class Turn:
    """Turn of who looks now. A look that takes too long has hung: the next one goes past it, and says so."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady = steady
        self._lock = threading.Lock()
        self._begun: list[tuple[object, float]] = []

    @contextmanager
    def taken(self) -> Iterator[str]:
        """For the length of the block, the turn; gives why it cannot be had, empty where it is ours."""
        ticket = object()
        why = self._take(ticket)
        try:
            yield why
        finally:
            with self._lock:
                self._begun = [one for one in self._begun if one[0] is not ticket]

    @property
    def hung(self) -> str:
        """Which looks hang, for people; empty: none."""
        now = self._steady()
        with self._lock:
            ages = [now - begun for _, begun in self._begun if now - begun > HANGS_AFTER_S]
        if not ages:
            return ""
        return f"{counted(len(ages), 'earlier look')} {'hangs' if len(ages) == 1 else 'hang'}, since {max(ages):.0f} s"

    def _take(self, ticket: object) -> str:
        now = self._steady()
        with self._lock:
            ages = [now - begun for _, begun in self._begun]
            if any(age_s <= HANGS_AFTER_S for age_s in ages):
                return "the previous look is not over"
            if len(ages) >= MOST_HUNG:
                return (
                    f"{counted(len(ages), 'look')} hang, for {max(ages):.0f} s, so no other begins: "
                    "restart the code location, and see in its log what does not answer"
                )
            self._begun.append((ticket, now))
            return ""
