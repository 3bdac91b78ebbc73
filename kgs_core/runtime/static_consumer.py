"""One consumer's process in the static mode: a fixed share of partitions, rounds until a signal says stop."""

import logging
import time
import uuid
from pathlib import Path

from kgs_core.config import Settings
from kgs_core.group.membership.share import EqualShare
from kgs_core.group.topics.terms import refuse_controlled_group
from kgs_core.lineage.sender import ConsumerLineage
from kgs_core.model import ConsumerId
from kgs_core.runtime.consumer_context import ConsumerContext, open_reader
from kgs_core.runtime.start_up import StartUp
from kgs_core.runtime.throughput_log import ConsumerStatus
from kgs_core.system.shutdown import StopFlag
from kgs_core.system.watchdog import RoundLimit, start_watchdog

_log = logging.getLogger(__name__)


class StaticConsumer:
    """A consumer that reads a fixed share, whatever else runs."""

    def __init__(
        self, settings: Settings, consumer: ConsumerId, share: EqualShare, status_file: Path | None = None
    ) -> None:
        self._settings = settings
        self._consumer = consumer
        self._share = share
        self._status = ConsumerStatus(consumer, status_file)
        self._refreshed = float("-inf")
        self._lineage = ConsumerLineage(settings, str(uuid.uuid4()))

    def run(self, stop: StopFlag) -> None:
        """Read until `stop`; the batch in hand is committed first.

        Raises:
            ConfigError, PermanentError, UnsafeError: found before anything is read.
            TransientError: the same failure several times over.
        """
        settings = self._settings
        with StartUp(stop) as start_up, open_reader(settings, self._consumer, start_up) as reader:
            # Spark takes seconds to start: what can be refused is refused before that.
            start_up.bear(lambda: refuse_controlled_group(settings, reader.admin))
            if any(rule.transform for rule in settings.topics):
                start_up.bear(lambda: reader.runner, "Spark")  # opening asks Spark for columns, from threads of its own
            start_up.bear(lambda: self._refresh(reader, first=True), "Kafka or the lake")
            states = reader.ingest.topics
            if not start_up.is_done():
                return
            _log.info("reading group=%s consumer=%d topics=%d", settings.group, self._consumer, len(states))
            limit = RoundLimit(settings.consumer.batch_timeout_s)
            start_watchdog(
                lambda now: limit.reason(now) or reader.stuck_reason(now),
                settings.consumer.batch_timeout_s,
                self._lineage.failed,
            )

            def step() -> None:
                reader.topics.take_in(self._share.of)
                reader.topics.retry(self._share.of)
                if time.monotonic() - self._refreshed > settings.consumer.topics_refresh_s:
                    self._refresh(reader, first=False)
                report = reader.ingest.round(lambda: stop.is_set)
                limit.touch(reader.ingest.late_since)
                self._status.note(report, states.values())
                self._lineage.saw(each for s in states.values() for each in s.tables)

            with self._lineage.running():
                while not stop.is_set:
                    limit.touch(reader.ingest.late_since)
                    reader.attempt(step, stop.wait, stop)
            self._status.write(states.values())
        _log.info("ended consumer=%d records=%d", self._consumer, self._status.records)

    def _refresh(self, reader: ConsumerContext, *, first: bool) -> None:
        reader.topics.refresh_all(self._share.of, first=first)
        self._refreshed = time.monotonic()
