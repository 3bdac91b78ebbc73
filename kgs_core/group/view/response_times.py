"""Response times of a change: seen, decided, started, handed over. Pure."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from kgs_core.model import ConsumerId


@dataclass(frozen=True, slots=True)
class Response:
    """Instants of the change to the newest Target, in seconds on the controller's steady clock.

    Attributes:
        measured_at: when the load was measured that the Target is packed by; None: something else asked for it.
        read_at: when the controller had read that measurement; None likewise.
        written_at: when the Target was written.
        awaited: consumers that the change reads by and that had not joined then.
        started_at: when all of them had joined; None: not yet.
    """

    measured_at: float | None = None
    read_at: float | None = None
    written_at: float | None = None
    awaited: frozenset[ConsumerId] = frozenset()
    started_at: float | None = None

    def written(self, readers: AbstractSet[ConsumerId], joined: AbstractSet[ConsumerId], now: float) -> "Response":
        """With the Target written now, which has these readers."""
        awaited = frozenset(readers - joined)
        return replace(self, written_at=now, awaited=awaited, started_at=None if awaited else now)

    @property
    def is_starting(self) -> bool:
        """Whether somebody is awaited."""
        return self.written_at is not None and self.started_at is None

    @property
    def seen_s(self) -> float | None:
        """t1: from the measurement until the controller had it, seconds; None: see `measured_at`."""
        return _between(self.measured_at, self.read_at)

    @property
    def decided_s(self) -> float | None:
        """t2: from then until the Target was written, seconds; None likewise."""
        return _between(self.read_at, self.written_at)

    @property
    def started_s(self) -> float | None:
        """t3: from then until all consumers were there that it reads by, seconds; None: they are not."""
        return _between(self.written_at, self.started_at)


def _between(earlier: float | None, later: float | None) -> float | None:
    return None if earlier is None or later is None else max(0.0, later - earlier)
