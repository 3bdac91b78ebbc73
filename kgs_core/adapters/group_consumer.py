"""One consumer's process as a member of the group: orders say what it owns, reports say what it holds."""

import logging
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from kgs_core.adapters.batch_loop import BatchLoop
from kgs_core.adapters.consumer_status import ConsumerStatus
from kgs_core.adapters.group_topics import GroupTopic, GroupTopics
from kgs_core.adapters.order_box import KafkaOrderBox
from kgs_core.adapters.process_identity import this_process
from kgs_core.adapters.reader import StartSpark, open_reader
from kgs_core.adapters.report_box import KafkaReportBox
from kgs_core.adapters.report_thread import OrderThread, ReportThread, SharedMembership
from kgs_core.adapters.stop_flag import StopFlag
from kgs_core.adapters.watchdog import start_watchdog
from kgs_core.config import Settings
from kgs_core.config.fingerprint import config_hash
from kgs_core.consumer.member import Ending, Identity, Pace
from kgs_core.consumer.membership import FENCE_FACTOR, Membership
from kgs_core.model import ConsumerId
from kgs_core.protocol import Incarnation, Member, Process

LAST_WORD_S = 10.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hosting:
    """How a consumer lives in a process that somebody else has set up; the defaults are those of `kgs consume`.

    Attributes:
        process: what its reports say of the process; None: it finds that out itself.
        start_spark: gives the session, which the consumer ends; None: it starts one itself.
        last_word: told why, when the consumer ends its process from one moment to the next.
    """

    process: Process | None = None
    start_spark: StartSpark | None = None
    last_word: Callable[[str], None] | None = None


class GroupConsumer:
    """A consumer that reads what the controller's orders give it.

    Attributes:
        member: its number, and the incarnation that was minted for this life of it.
        ending: why it has ended; None before, and where it has never joined.
    """

    def __init__(
        self,
        settings: Settings,
        consumer: ConsumerId,
        status_file: Path | None = None,
        hosting: Hosting | None = None,
    ) -> None:
        self.member = Member(consumer, Incarnation(str(uuid.uuid4())))
        self.ending: Ending | None = None
        self._settings = settings
        self._hosting = hosting or Hosting()
        self._status = ConsumerStatus(consumer, status_file)

    def run(self, stop: StopFlag) -> None:
        """Join the group and read, until told to end; the last report says that nothing is held any more.

        Raises:
            ConfigError, PermanentError, UnsafeError: a person must act, or the process must be started anew.
            TransientError: the same failure several times over.
        """
        settings = self._settings
        hosting = self._hosting
        with open_reader(settings, self.member.consumer, hosting.start_spark, hosting.last_word) as reader:
            topics = GroupTopics(settings, reader.admin, (GroupTopic.ORDERS, GroupTopic.REPORTS))
            # Who joins can read at once: a spare whose Spark is not up would be none.
            reader.warm_up()
            if stop.is_set:
                return
            with self._joined(topics, stop, reader.ingest.hurry) as membership:
                BatchLoop(reader, membership, self._status, settings.consumer.topics_refresh_s).run(stop)
        self.ending = membership.now.ending
        _log.info("ended member=%s records=%d why=%s", self.member, self._status.records, self.ending)

    @contextmanager
    def _joined(self, topics: GroupTopics, stop: StopFlag, hurry: Callable[[], None]) -> Iterator[SharedMembership]:
        """A member of the group while the block runs, however that ends; then its last word is in the log.

        Raises:
            UnsafeError: no order can come any more; it has drained, and must be started anew.
        """
        membership = SharedMembership(Membership.join(self._identity(), self._pace(), time.monotonic()))
        # The queue first, then the first report: what is ordered because of the report must be received.
        queue, pen = KafkaOrderBox(topics, self.member.consumer), KafkaReportBox(topics)
        orders, reports = OrderThread(membership, queue, stop, hurry), ReportThread(membership, pen)
        pace = membership.now.pace
        shortest_s = min(pace.batch_timeout_s, FENCE_FACTOR * pace.suspect_after_s)
        start_watchdog(membership.fence_reason, shortest_s, self._hosting.last_word)
        _log.info("joining group=%s member=%s", self._settings.group, self.member)
        orders.start()
        reports.start()
        try:
            yield membership
        finally:
            # No commit is under way here, be it after the loop's own end or after an error out of it.
            membership.change(lambda m: m.end(time.monotonic()))
            reports.join(LAST_WORD_S)
            orders.join(LAST_WORD_S)
            if reports.is_alive():
                _log.warning("the last report is not known to be there: the end of this process must tell instead")
            for thread, box in ((orders, queue), (reports, pen)):
                if not thread.is_alive():
                    box.close()
        if orders.failure is not None:
            raise orders.failure

    def _identity(self) -> Identity:
        process = self._hosting.process or this_process()
        return Identity(self.member, process, version("kgs"), config_hash(self._settings))

    def _pace(self) -> Pace:
        membership = self._settings.membership
        return Pace(membership.heartbeat_s, membership.suspect_after_s, self._settings.consumer.batch_timeout_s)
