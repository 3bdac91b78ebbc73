"""Notice of a consumer that waits for passing trouble, to its controller, which would give its start up otherwise."""

import logging
import time

from kgs_core.config import Settings
from kgs_core.errors import KgsError
from kgs_core.group.protocol import Member, Process, Starting
from kgs_core.group.topics.durable_writer import DurableWriter
from kgs_core.group.topics.topics import GroupTopic, GroupTopics
from kgs_core.kafka.admin import admin_of

SEND_EVERY_S = 30.0
_SEND_S = 15.0  # a failure ends the client: a slow broker takes 5 s to connect to, and 5 s for the answer
_log = logging.getLogger(__name__)


class StartingNotice:
    """Tells what the start waits for, when that changes and again every half minute.

    Where Kafka does not answer, nothing can be reported; then the controller cannot decide anything either.
    """

    def __init__(self, settings: Settings, member: Member, process: Process) -> None:
        self._settings = settings
        self._member = member
        self._process = process
        self._writer: DurableWriter | None = None
        self._last_sent = ""
        self._last_sent_at = 0.0

    def tell(self, why: str) -> None:
        """Append it, if it is due; in vain where Kafka does not take it."""
        now = time.monotonic()
        if why == self._last_sent and now - self._last_sent_at < SEND_EVERY_S:
            return
        try:
            if self._writer is None:
                admin = admin_of(self._settings)
                self._writer = DurableWriter(
                    GroupTopics(self._settings, admin, (GroupTopic.REPORTS,)), GroupTopic.REPORTS
                )
            self._writer.append(Starting(self._member, self._process, why), _SEND_S)
        except KgsError as e:
            _log.debug("cannot tell what the start waits for: %s", e)
        else:
            self._last_sent, self._last_sent_at = why, now

    def close(self) -> None:
        """End the client."""
        if self._writer is not None:
            self._writer.close()
        self._writer = None
