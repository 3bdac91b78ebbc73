"""Number of times that the right to write was taken from a controller, as Kafka counts it."""

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from kgs_core.config import Settings
from kgs_core.errors import KgsError, PermanentError
from kgs_core.group.topics.topics import transactional_id_of

if TYPE_CHECKING:
    from kgs_core.kafka.open_transactions import CoordinatorView, OpenTransactions
_log = logging.getLogger(__name__)


class Fencings:
    """Counts them from the first answer on. One thread.

    Kafka raises the epoch of the controllers' transactional id by one whenever a controller takes the right to write:
    from another one, or from itself after a write that failed; and where it aborts what was left open for too long.

    Attributes:
        count: None until Kafka has answered.
    """

    def __init__(self, settings: Settings) -> None:
        self.count: int | None = None
        self._settings = settings
        self._client: OpenTransactions | None = None
        self._known: CoordinatorView | None = None
        self._has_warned = False

    def look(self) -> None:
        """Ask Kafka. Without the right, count nothing and log that once. Without an answer the count stays.

        Raises:
            TransientError, ConfigError: it does not answer; what was counted stays.
        """
        from kgs_core.kafka.open_transactions import OpenTransactions  # with kafka-python, which few need

        try:
            self._client = self._client or OpenTransactions(self._settings)
            found = self._client.coordinator_of(transactional_id_of(self._settings))
        except PermanentError as e:
            self.close()  # the next look is with the rights, and the password, of then
            if not self._has_warned:
                _log.warning("kgs_controller_fenced_total: not given out: %s", e)
            self._has_warned = True
        except KgsError:
            self.close()
            raise
        else:
            self._has_warned = False
            self.take(found)

    def take(self, found: "CoordinatorView | None") -> None:
        """Take one more answer; None: no controller has begun yet, or Kafka has forgotten an unused group."""
        before, self._known = self._known, found or self._known
        if self.count is None:
            self.count = 0
        elif found is not None and before is not None:
            # With another producer id the epochs begin anew: those of the former one were used up, or it was forgotten
            is_same = found.producer_id == before.producer_id
            self.count += max(0, found.producer_epoch - before.producer_epoch) if is_same else 1

    def close(self) -> None:
        """End the connection."""
        if self._client is not None:
            with suppress(KgsError):
                self._client.__exit__()
            self._client = None
