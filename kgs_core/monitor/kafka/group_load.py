"""Load of a consumer group that is not kgs's, measured without taking part in it. Reads only."""

from collections.abc import Callable

from kgs_core.config import Settings
from kgs_core.config.rule.topic_rule import TopicRule
from kgs_core.kafka.admin import admin_of
from kgs_core.kafka.consumer_groups import read_group
from kgs_core.monitor.kafka.load import bytes_per_offset, bytes_per_record
from kgs_core.monitor.kafka.monitor import measure
from kgs_core.planning.group_load import GroupLoad, Progress, group_load
from kgs_core.planning.load import Load


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
    admin = admin_of(settings)
    before = read_group(admin, group)
    rules = tuple(TopicRule(topic=topic) for topic in sorted(before.topics))
    measurement = measure(settings.model_copy(update={"topics": rules}), progress, anew=True)
    after = read_group(admin, group)
    logs = {tp: log for tp, log in measurement.reading.partitions.items() if tp.topic in before.topics}
    sizes = {tp: size for tp, log in logs.items() if (size := bytes_per_record(log)) is not None}
    moved = Progress(
        before.committed,
        after.committed,
        after.time_s - before.time_s,
        {tp: log.end_offset for tp, log in logs.items()},
        sizes,
    )
    members = [(one.name, one.partitions) for one in after.members]
    known = measurement.known
    load = Load(known, frozenset(measurement.speeds.keys() - known.keys()), bytes_per_offset=bytes_per_offset(logs))
    return group_load(group, members, moved, known), load
