"""Times at which topics are tried again after trouble that may pass."""

import time
from collections.abc import Collection, Sequence

_MOST_DOUBLINGS = 10


class RetryTimes:
    """Topic -> when its opening is tried again: each time in a row after twice as long."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}  # on the steady clock
        self._tries: dict[str, int] = {}

    def failed(self, topic: str, after_s: float) -> None:
        """It has failed (once more), and asks for at least this long."""
        self._tries[topic] = tries = self._tries.get(topic, 0) + 1
        self.put_off(topic, after_s * 2.0 ** min(tries - 1, _MOST_DOUBLINGS))

    def put_off(self, topic: str, after_s: float) -> None:
        """It is tried after so long, without having failed."""
        self._at[topic] = time.monotonic() + after_s

    def begun(self, topic: str) -> None:
        """It is being tried."""
        self._at.pop(topic, None)

    def over(self, topic: str) -> None:
        """It is well."""
        self._at.pop(topic, None)
        self._tries.pop(topic, None)

    def keep(self, topics: Collection[str]) -> None:
        """Forget all others."""
        for topic in self._tries.keys() | self._at.keys():
            if topic not in topics:
                self.over(topic)

    def due(self) -> Sequence[str]:
        """Topics whose time has come."""
        now = time.monotonic()
        return sorted(topic for topic, at in self._at.items() if at <= now)
