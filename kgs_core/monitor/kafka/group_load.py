"""Load of a consumer group that is not kgs's, measured without taking part in it. Reads only."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from kgs_core.config import Settings
from kgs_core.config.rule.topic_rule import TopicRule
from kgs_core.errors import PermanentError
from kgs_core.kafka.admin import KafkaAdmin, admin_of
from kgs_core.kafka.consumer_groups import ConsumerGroup, group_now, read_group
from kgs_core.model import TopicPartition
from kgs_core.monitor.kafka.load import bytes_per_offset, bytes_per_record
from kgs_core.monitor.kafka.monitor import measure
from kgs_core.monitor.speeds import Measurement, PartitionReading
from kgs_core.planning.group_load import GroupLoad, Look, group_load
from kgs_core.planning.load import Load

LOOK_EVERY_S = 2.0
"""Less than half of the time between two commits (Kafka's default: 5 s), so that each is seen."""


def measure_group(
    settings: Settings, group: str, progress: Callable[[float, float], None] | None = None
) -> tuple[GroupLoad, Load]:
    """What the group's members read, and the write speeds of its topics, over `monitor.window_s`.

    Args:
        settings: of which the brokers and the monitor's section count; its topics do not.
        progress: is told the seconds measured, and those to measure.

    Raises:
        PortError: Kafka does not answer or refuses; no such group, or one that kgs reads by.
        ConfigError: settings of the client that cannot be used.
    """
    watch = _Watch(admin_of(settings), group)
    rules = tuple(TopicRule(topic=topic) for topic in sorted(watch.topics))
    measurement = measure(settings.model_copy(update={"topics": rules}), progress, show=watch.take)
    logs = {tp: log for tp, log in measurement.reading.partitions.items() if tp.topic in watch.topics}
    if not logs:
        names = ", ".join(sorted(watch.topics))
        raise PermanentError(f"group {group!r}: nothing to measure: {names}: deleted, or internal topics")
    watch.conclude(logs)
    known = measurement.known
    sizes = {tp: size for tp, log in logs.items() if (size := watch.bytes_per_offset(tp, log)) is not None}
    members = [(one.member_id, one.name) for one in watch.group.members]
    found = replace(group_load(group, members, watch.looks, sizes, known), since_ms=watch.since_ms)
    unknown = frozenset(measurement.speeds.keys() - known.keys())
    return found, Load(known, unknown, bytes_per_offset=bytes_per_offset(logs))


class _Watch:
    """Looks at the group beside the measurement of its topics."""

    def __init__(self, admin: KafkaAdmin, group: str) -> None:
        self._admin, self._name = admin, group
        self.group = read_group(admin, group)
        self.topics = self.group.topics
        self.looks: list[Look] = []
        self._asked: ConsumerGroup | None = self.group
        self.since_ms = 0
        self._before: Mapping[TopicPartition, PartitionReading] = {}
        self._grown: dict[TopicPartition, tuple[int, int]] = {}

    def take(self, measurement: Measurement) -> None:
        """A look that was begun gets the ends of the logs; and the next one begins when it is due."""
        reading = measurement.reading
        self.since_ms = self.since_ms or reading.wall_ms
        for tp, log in reading.partitions.items():
            self._note_growth(tp, self._before.get(tp), log)
        self._before = reading.partitions
        if self._asked is not None:
            self._add(self._asked, {tp: (log.log_start, log.end_offset) for tp, log in reading.partitions.items()})
            self._asked = None
        if not self.looks or reading.time_s >= self.looks[-1].time_s + LOOK_EVERY_S:
            self._asked = group_now(self._admin, self._name)

    def conclude(self, partitions: Mapping[TopicPartition, PartitionReading]) -> None:
        """The last look, at a group that is not rebalancing."""
        self.group = read_group(self._admin, self._name)
        starts, ends = (self._admin.offsets(partitions.keys(), which) for which in ("earliest", "latest"))
        self._add(self.group, {tp: (starts[tp], ends[tp]) for tp in partitions})

    def bytes_per_offset(self, tp: TopicPartition, log: PartitionReading) -> float | None:
        """Stored bytes of one offset: as the log has grown meanwhile, else on average; None: not known.

        A log that was compacted, or cut within a segment, has more or fewer offsets than the average says.
        """
        size, offsets = self._grown.get(tp, (0, 0))
        return size / offsets if offsets else bytes_per_record(log)

    def _note_growth(self, tp: TopicPartition, before: PartitionReading | None, log: PartitionReading) -> None:
        if before is None or before.size_bytes is None or log.size_bytes is None:
            return
        size, offsets = log.size_bytes - before.size_bytes, log.end_offset - before.end_offset
        if size > 0 and offsets > 0:  # less where it was cut or compacted in between
            so_far = self._grown.get(tp, (0, 0))
            self._grown[tp] = (so_far[0] + size, so_far[1] + offsets)

    def _add(self, group: ConsumerGroup, logs: Mapping[TopicPartition, tuple[int, int]]) -> None:
        owners = {tp: one.member_id for one in group.members for tp in one.partitions}
        mine = {tp: log for tp, log in logs.items() if tp.topic in self.topics}
        self.looks.append(Look(group.time_s, owners, group.committed, mine))
