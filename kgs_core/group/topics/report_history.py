"""Reports that the group's topic still holds of a range of time, for who looks back."""

from kgs_core.config import Settings
from kgs_core.errors import PortError, ProtocolError
from kgs_core.group.protocol import Received
from kgs_core.group.protocol.codec import decode
from kgs_core.group.topics.topics import GroupTopic
from kgs_core.kafka.admin import admin_of
from kgs_core.kafka.clients import consumer_of
from kgs_core.kafka.records import Record, read_until
from kgs_core.model import OffsetRange, TopicPartition
from kgs_core.reporting.usage import GroupUsage, Period, UsageCount

LEAD_MS = 150_000
"""Read before the range: every incarnation reports in full once a minute, so what it owns is known at its beginning."""
_PATIENCE_S = 30.0
_AT_ONCE = 5000


def load_usage(settings: Settings, period: Period) -> GroupUsage:
    """What the consumers of a group have reported of `period`. Nothing is known where the group has no such topic.

    Raises:
        PortError: Kafka does not answer, or refuses.
    """
    topic = GroupTopic.REPORTS.of(settings.group)
    admin, tp = admin_of(settings), TopicPartition(topic, 0)
    if topic not in admin.describe([topic]):
        return GroupUsage()
    while True:
        since = admin.offsets_at([tp], max(0, period.since_ms - LEAD_MS))[tp]
        until = admin.offsets_at([tp], period.until_ms)[tp]
        first = admin.offsets([tp], "earliest")[tp]
        try:
            return _read(settings, tp, first, OffsetRange(since, max(since, until)), period)
        except PortError:
            if admin.offsets([tp], "earliest")[tp] <= first:
                raise
            # The oldest reports were deleted between the question and the reading


def _read(settings: Settings, tp: TopicPartition, first: int, span: OffsetRange, period: Period) -> GroupUsage:
    count, refused, known_since_ms = UsageCount(settings.membership.suspect_after_s), 0, None
    where = settings.kafka.bootstrap_servers
    with consumer_of(settings) as consumer:
        for record in read_until(consumer, tp, OffsetRange(first, first + 1), _PATIENCE_S, where=where):
            known_since_ms = record.timestamp()[1]
        for record in read_until(consumer, tp, span, _PATIENCE_S, where=where, at_once=_AT_ONCE):
            refused += not _take(count, record, period.until_ms)
    return count.usage(period, known_since_ms, refused)


def _take(count: UsageCount, record: Record, until_ms: int) -> bool:
    """Whether the record is a message. One written later, by the clock of a broker that is ahead, is passed over."""
    time_ms = record.timestamp()[1]
    if time_ms >= until_ms:
        return True
    try:
        message = decode(record.key(), record.value())
    except ProtocolError:
        return False
    count.take((Received(message, record.offset(), time_ms),))
    return True
