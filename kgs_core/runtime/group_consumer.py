"""One consumer's process as a member of the group: assignments say what it owns, reports say what it holds."""

import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from kgs_core.config import Settings
from kgs_core.config.settings import config_hash
from kgs_core.errors import one_line
from kgs_core.fleet.pod_process import own_process
from kgs_core.group.membership.member import Identity, MembershipTiming
from kgs_core.group.membership.membership import FENCE_FACTOR, Membership
from kgs_core.group.protocol import Ending, Incarnation, Member, Process
from kgs_core.group.topics.assignments import KafkaAssignmentReader
from kgs_core.group.topics.durable_writer import DurableWriter
from kgs_core.group.topics.starting_notice import StartingNotice
from kgs_core.group.topics.terms import refuse_other_terms
from kgs_core.group.topics.topics import GroupTopic, GroupTopics
from kgs_core.kafka.client_config import zone_of
from kgs_core.lineage.sender import ConsumerLineage
from kgs_core.model import ConsumerId
from kgs_core.runtime.batch_loop import BatchLoop
from kgs_core.runtime.consumer_context import ConsumerContext, StartSpark, open_reader
from kgs_core.runtime.membership_threads import AssignmentThread, ReportThread, SharedMembership, dead_thread
from kgs_core.runtime.start_up import StartUp
from kgs_core.runtime.throughput_log import ConsumerStatus
from kgs_core.system.processes import CLASS
from kgs_core.system.shutdown import StopFlag
from kgs_core.system.watchdog import SparkWatch, limited, start_watchdog

LAST_WORD_S = 10.0
SAY_WHY_S = 1.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hosting:
    """Hooks of a foreign process that hosts a consumer; the defaults are those of `kgs consume`.

    Attributes:
        process: its identity in reports; None: the consumer finds that out itself.
        start_spark: creates the session, which the consumer ends; None: it starts one itself.
        last_word: called with the reason when the consumer ends its process abruptly.
        consumer_class: the class that it is started as; empty: as the environment says.
    """

    process: Process | None = None
    start_spark: StartSpark | None = None
    last_word: Callable[[str], None] | None = None
    consumer_class: str = ""


class GroupConsumer:
    """A consumer that reads what the controller's assignments give it.

    Attributes:
        member: its number, and the incarnation made for this life of it.
        membership: what it owns and where it stands; None before it has joined.
    """

    def __init__(
        self, settings: Settings, consumer: ConsumerId, status_file: Path | None = None, hosting: Hosting | None = None
    ) -> None:
        self.member = Member(consumer, Incarnation(str(uuid.uuid4())))
        self.ending: Ending | None = None
        self.membership: SharedMembership | None = None
        self._settings = settings
        self._hosting = hosting or Hosting()
        self._status = ConsumerStatus(consumer, status_file)
        self._lineage = ConsumerLineage(settings, self.member.incarnation)

    def run(self, stop: StopFlag) -> None:
        """Join the group and read, until told to end; the last report says that nothing is held any more.

        Raises:
            ConfigError, PermanentError, UnsafeError: a person must act, or the process must be started anew.
            TransientError: the same failure several times over.
        """
        settings = self._settings
        hosting = self._hosting
        process = hosting.process or own_process()
        waiting = StartingNotice(settings, self.member, process)
        start_up = StartUp(stop, waiting.tell, is_hosted=hosting.process is not None)
        with (
            start_up,
            open_reader(settings, self.member.consumer, start_up, hosting.start_spark, hosting.last_word) as reader,
        ):
            topics = start_up.bear(
                lambda: GroupTopics(settings, reader.admin, (GroupTopic.ASSIGNMENTS, GroupTopic.REPORTS))
            )
            start_up.bear(lambda: refuse_other_terms(topics, self.member.consumer))
            self._warm_up(reader, start_up)
            # The queue first, then the first report: what is assigned because of the report must be received.
            queue = start_up.bear(lambda: KafkaAssignmentReader(topics, self.member.consumer))
            writer = DurableWriter(topics, GroupTopic.REPORTS)
            waiting.close()
            if not start_up.is_done():
                return
            spark = SparkWatch(lambda: reader.has_lost_runner)

            def watch(now: float) -> str | None:
                return spark.reason(now) or reader.stuck_reason(now)

            ports = (queue, writer)
            # Lineage outside: the last report must not wait for it
            with (
                self._lineage.running(),
                self.joined(process, ports, stop, reader.runner.interrupt, watch) as membership,
            ):
                self.membership = membership
                BatchLoop(reader, membership, self._status, settings.consumer.topics_refresh_s, self._lineage).run(stop)
            self.ending = membership.now.ending
            _log.info("ended member=%s records=%d why=%s", self.member, self._status.records, self.ending)

    def _warm_up(self, reader: ConsumerContext, start_up: StartUp) -> None:
        """Start Spark before joining: a member can read at once, and a spare without Spark would be none.

        After a wait the controller does not limit the start any more, so the rest of it is limited here.
        """
        if not start_up.has_waited:
            reader.warm_up()
            return
        with limited("the start of Spark", self._settings.membership.start_timeout_s, self._hosting.last_word):
            reader.warm_up()

    def _identity(self, process: Process) -> Identity:
        started_as = self._hosting.consumer_class or os.environ.get(CLASS, "")
        return Identity(
            self.member, process, version("kgs"), config_hash(self._settings), started_as, zone_of(self._settings)
        )

    @contextmanager
    def joined(
        self,
        process: Process,
        ports: tuple[KafkaAssignmentReader, DurableWriter],
        stop: StopFlag,
        interrupt: Callable[[], None],
        watch: Callable[[float], str | None],
    ) -> Iterator[SharedMembership]:
        """Be a member of the group while the block runs, however that ends; then the last report is in the log.

        Args:
            interrupt: called when something has come that must wait for the end of the current round.
            watch: returns why the process must end, by the steady clock, beside what the membership knows itself.

        Raises:
            UnsafeError: no assignment can come any more; it has drained, and must be started anew.
        """
        identity = self._identity(process)
        timing = self._settings.membership
        pace = MembershipTiming(timing.heartbeat_s, timing.suspect_after_s, self._settings.consumer.batch_timeout_s)
        membership = SharedMembership(Membership.join(identity, pace, time.monotonic()))
        queue, writer = ports
        assignments, reports = AssignmentThread(membership, queue, stop, interrupt), ReportThread(membership, writer)
        shortest_s = min(pace.batch_timeout_s, FENCE_FACTOR * pace.suspect_after_s)
        start_watchdog(
            lambda now: (
                membership.now.fence_reason(now)
                or dead_thread(membership, assignments, reports)
                or (None if membership.now.ended else watch(now))
            ),
            shortest_s,
            lambda why: self._say_why(membership, why),
        )
        _log.info("joining group=%s member=%s", self._settings.group, self.member)
        assignments.start()
        reports.start()
        try:
            yield membership
        except (Exception, SystemExit) as e:
            failed = one_line(e) if isinstance(e, Exception) else f"SystemExit: {e}"
            membership.change(lambda m: m.failed(failed))
            raise
        finally:
            # No commit is under way here, be it after the loop's own end or after an error out of it.
            membership.change(lambda m: m.end(time.monotonic()))
            reports.join(LAST_WORD_S)
            assignments.join(LAST_WORD_S)
            if reports.is_alive():
                _log.warning("the last report is not known to be there: the end of this process must tell instead")
            for thread, port in ((assignments, queue), (reports, writer)):
                if not thread.is_alive():
                    port.close()
        failure = assignments.failure or reports.failure
        if failure is not None:
            raise failure

    def _say_why(self, membership: SharedMembership, why: str) -> None:
        """Report why, before the process ends abruptly.

        It is not the last report: another thread may commit until the very end. So the report says that the consumer
        drains, and why, and that it still owns its partitions. Nobody takes over because of it; only the end of the
        process shows that nothing is held.
        """
        self._lineage.failed(why)
        failed = membership.change(lambda m: m.failed(why))
        if failed.why == why:
            membership.wait(lambda m: m.last_report is not None and m.last_report.why == why, SAY_WHY_S)
        if self._hosting.last_word is not None:
            self._hosting.last_word(why)
