"""A consumer's writer: its reports, each durable before the next."""

from kgs_core.adapters.group.durable_writer import DurableWriter
from kgs_core.adapters.group.topics import GroupTopic, GroupTopics
from kgs_core.protocol import Heartbeat, Report, Starting
from kgs_core.protocol.codec import encode


class KafkaReportWriter:
    """Port `ReportWriter` on Kafka. For the one thread that reports.

    A report that was given up may still arrive, even after a later one: readers go by its sequence number.
    """

    def __init__(self, topics: GroupTopics) -> None:
        self._writer = DurableWriter(topics.settings)
        (self._tp,) = topics.partitions(GroupTopic.REPORTS)

    def send(self, report: Report | Heartbeat | Starting, timeout_s: float) -> None:
        """See `ReportWriter`.

        Raises:
            TransientError: not known to be there within `timeout_s`.
            PermanentError: refused.
            ProtocolError: the report is not valid.
        """
        key, value = encode(report)
        self._writer.append(self._tp, key, value, timeout_s)

    def close(self) -> None:
        """End the client."""
        self._writer.close()
