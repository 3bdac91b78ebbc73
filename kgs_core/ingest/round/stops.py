"""Stops of partitions: why one stands still, and when it is looked at again. Pure.

Every stop but that at a bad record has a next look: what Kafka or the lake said may have been said by a broker that
lags, and a person may have mended it meanwhile. A look asks both; where both are content, the partition is read *on
trial*: it counts as stopped, with the same reason, until a batch of it is committed or nothing is said against it for
`TRIAL_S` (and the time that a record may wait for others). A complaint in that time stops it for longer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

TRIAL_S = 5.0
UNREPORTED_TRIES = 3


class StopCause(Enum):
    """Cause of a stop."""

    BAD_RECORD = auto()
    """A record that cannot be taken, where `on_error: stop`. It stays in the log: only a moved position ends this."""
    OUT_OF_RANGE = auto()
    """The broker does not have the next offset."""
    CORRUPT = auto()
    """The next bytes fail their check, or cannot be decompressed."""
    OTHER_TOPIC = auto()
    """Kafka does not know the topic, or has another one of its name."""
    TABLE = auto()
    """The table breaks the guarantee."""
    TOPIC_FAILED = auto()
    """The transform raised, or something else while the topic's records were worked on."""
    DENIED = auto()
    """Kafka or the lake refuses us."""
    NO_ANSWER = auto()
    """Kafka, the lake or a registry did not answer: passing trouble, reported only where it lasts."""


FIRST_LOOK_S: Mapping[StopCause, float] = {
    StopCause.OUT_OF_RANGE: 5.0,
    StopCause.CORRUPT: 10.0,
    StopCause.OTHER_TOPIC: 2.0,  # a broker whose metadata lags is right a moment later
    StopCause.TABLE: 10.0,
    StopCause.TOPIC_FAILED: 10.0,
    StopCause.DENIED: 10.0,
    StopCause.NO_ANSWER: 1.0,
}
LAST_LOOK_S: Mapping[StopCause, float] = {StopCause.NO_ANSWER: 30.0}
LONGEST_LOOK_S = 300.0


def look_after_s(cause: StopCause, tries: int) -> float | None:
    """Seconds to the next look after `tries` stops in a row; None: it is not looked at.

    Each is twice the one before, up to five minutes (30 s where nobody answered).
    """
    if cause is StopCause.BAD_RECORD:
        return None
    longest = LAST_LOOK_S.get(cause, LONGEST_LOOK_S)
    return min(FIRST_LOOK_S[cause] * 2.0 ** min(tries - 1, 16), longest)


@dataclass(frozen=True, slots=True)
class StoppedPartition:
    """A partition that is owned and stands still.

    Attributes:
        position: where it stopped. When somebody moves that (an accepted loss), reading goes on.
        look_at: when it is looked at again, on the consumer's steady clock; None: never.
        tries: how often in a row it was stopped, without a committed batch between.
        trial_until: it is read on trial; None while it is not.
    """

    reason: str
    cause: StopCause
    position: int
    look_at: float | None
    tries: int
    trial_until: float | None = None

    @property
    def is_on_trial(self) -> bool:
        """Whether it is read all the same."""
        return self.trial_until is not None

    def waits(self, now: float) -> bool:
        """Whether its look is still to come."""
        return not self.is_on_trial and self.look_at is not None and self.look_at > now

    @property
    def is_reported(self) -> bool:
        """Whether it is reported: a passing failure only when it lasts (seven seconds)."""
        return self.cause is not StopCause.NO_ANSWER or self.tries > UNREPORTED_TRIES
