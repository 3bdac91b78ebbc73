"""Reader of all the group's topics, for whoever must know the whole group: the controller, the sensor, `kgs status`."""

import logging
import time
from collections.abc import Mapping, Sequence

from kgs_core.errors import KgsError, TransientError, UnsafeError, one_line
from kgs_core.group.protocol import Message, Received
from kgs_core.group.topics.hanging_transactions import HangingTransactions
from kgs_core.group.topics.reader import GroupReader, NotAtEndError, ReadMessage, Refusals
from kgs_core.group.topics.topics import GroupTopic, GroupTopics
from kgs_core.model import TopicPartition

REPORTS_BACK_MS = 150_000
"""Every incarnation reports in full every 60 s, so that its sets are in here twice. Of those that have been silent for
longer, `Target.known` and their last Assignments tell all that they may own."""
READ_TIMEOUT_S = 40.0
"""A dead controller's transaction holds readers back until the coordinator ends it: 27 s, looked at every 10 s."""
SILENCE_S = 5.0
"""Without a report for so long, a reader makes sure that there is none to be read."""
LATE_S = 0.2
"""What was written while its leader was asked is there by then."""
_log = logging.getLogger(__name__)


class KafkaGroupTopicReader:
    """Port `GroupTopicReader` on Kafka. For one thread.

    "To the end" is the end of the log, not that of its committed part: an assignment behind somebody's open transaction
    would be missed otherwise, and with it what a consumer may own. So a reader waits until the transaction is over.
    """

    def __init__(
        self, topics: GroupTopics, timeout_s: float = READ_TIMEOUT_S, hanging: HangingTransactions | None = None
    ) -> None:
        """`hanging` is asked to end what hangs at the time-out; only for who has fenced the older controllers."""
        self._topics = topics
        self._hanging = hanging
        self._timeout_s = timeout_s
        self._refusals = Refusals()
        self._reader: GroupReader | None = None
        self._held: list[ReadMessage] = []
        self._last_kept = ""
        self._heard_at = 0.0

    def read_to_end(self) -> Sequence[Received[Message]]:
        """See `GroupTopicReader`. Every call begins anew; one that fails leaves `poll` where it was.

        Raises:
            UnsafeError: a topic was made again since it was opened, or its Assignments are where another setting has
                put them: what their consumers may own would be overlooked.
        """
        self._topics.check()
        starts = self._starts()
        ends = self._topics.admin.offsets(starts, "latest")
        reader = GroupReader(self._topics, starts, self._refusals)
        try:
            read = self._take_up_to(reader, ends)
            self._topics.check()  # else this may be the end of another topic
            self._refuse_another_layout(reader)
        except BaseException:
            reader.close()
            raise
        self.close()
        self._reader, self._heard_at = reader, time.monotonic()
        return [each.received for each in read]

    def poll(self, timeout_s: float) -> Sequence[Received[Message]]:
        """See `GroupTopicReader`.

        Raises:
            TransientError: Kafka does not answer, or `read_to_end` has not been successful yet. Reports that cannot be
                read are not taken for silence of those who send them.
        """
        if self._reader is None:
            raise TransientError(f"group {self._topics.settings.group}: its topics are not read to their ends yet")
        deadline = time.monotonic() + timeout_s
        while True:
            self._take(self._reader, deadline - time.monotonic())
            self._end_own()
            self._make_sure(self._reader)
            if self._held or time.monotonic() >= deadline:
                held, self._held = self._held, []
                return [each.received for each in held]

    def close(self) -> None:
        """End the client."""
        if self._reader is not None:
            self._reader.close()
        self._reader, self._held = None, []

    def _take(self, reader: GroupReader, timeout_s: float) -> None:
        self._held += reader.take(timeout_s)
        reader.rewind()
        # Reports come all the time; what others decide by is never taken from a topic that was made again
        if reader.problem or any(each.kind is not GroupTopic.REPORTS for each in self._held):
            self._topics.check()
            reader.problem = ""
        else:
            self._topics.check_now_and_then()

    def _take_up_to(self, reader: GroupReader, ends: Mapping[TopicPartition, int]) -> list[ReadMessage]:
        timeout_s = self._timeout_s + self._topics.extra_time_s
        try:
            return reader.take_up_to(ends, timeout_s)
        except NotAtEndError as e:
            behind = [tp for tp in e.behind if tp.topic == self._topics.name(GroupTopic.ASSIGNMENTS)]
            if self._hanging is None or not behind:
                raise
            if kept := self._try_to_end(self._hanging, behind):
                raise TransientError(f"{e}: {kept}") from e
            return [*e.read, *reader.take_up_to(ends, timeout_s)]

    def _make_sure(self, reader: GroupReader) -> None:
        """Asks the leader of the reports where none has come: a client whose connections are down gives out nothing."""
        now = time.monotonic()
        if any(each.kind is GroupTopic.REPORTS for each in self._held):
            self._heard_at = now
        elif now - self._heard_at >= SILENCE_S:
            (reports,) = self._topics.partitions(GroupTopic.REPORTS)
            end = self._topics.admin.offsets([reports], "latest", committed_reads=True)[reports]
            if end > reader.positions[reports]:
                self._take(reader, LATE_S)
            if end > reader.positions[reports]:
                raise TransientError(f"{reports}: read to offset {reader.positions[reports]} of {end} so far")
            self._heard_at = now

    def _end_own(self) -> None:
        """Commits what this controller has committed, and Kafka has not carried out everywhere.

        Else nobody would read those Assignments, and this controller, which has no reason to read anew, would wait.
        """
        if self._hanging is None or self._reader is None:
            return
        positions, now, written = self._reader.positions, time.monotonic(), self._topics.written
        for tp in [tp for tp, (offset, _) in written.items() if positions.get(tp, 0) > offset]:
            del written[tp]
        late = {tp: offset for tp, (offset, at) in written.items() if now - at > READ_TIMEOUT_S}
        if late:
            written.update({tp: (offset, now) for tp, offset in late.items()})
            kept = self._try_to_end(self._hanging, [*late], late)
            if kept and kept != self._last_kept:
                _log.warning("%s: written, committed and not to be read: %s", ", ".join(map(str, sorted(late))), kept)
            self._last_kept = kept

    def _try_to_end(
        self,
        hanging: HangingTransactions,
        behind: Sequence[TopicPartition],
        written: Mapping[TopicPartition, int] | None = None,
    ) -> str:
        """What `HangingTransactions.end_in` says; no failure of it is worse than to wait on."""
        try:
            return hanging.end_in(behind, written)
        except KgsError as e:
            return one_line(e)

    def _refuse_another_layout(self, reader: GroupReader) -> None:
        for member, tp in sorted(reader.misplaced.items()):
            raise UnsafeError(
                f"{tp}: holds an Assignment of consumer {member.consumer}, which belongs into partition "
                f"{self._topics.queue(member.consumer)}: the topic was given more partitions, or the group shared them "
                "otherwise: end its consumers, and start them after this controller"
            )

    def _starts(self) -> dict[TopicPartition, int]:
        topics, admin = self._topics, self._topics.admin
        (reports,) = topics.partitions(GroupTopic.REPORTS)
        tps = [*topics.partitions(GroupTopic.ASSIGNMENTS), *topics.partitions(GroupTopic.OPERATOR), reports]
        starts = admin.offsets(tps, "earliest")
        # Counted back from the newest one: by the brokers' clock, and what was said last before an outage is in it
        newest = admin.newest_timestamp(reports)
        if newest is not None:
            starts |= admin.offsets_at([reports], newest - REPORTS_BACK_MS)
        return starts
