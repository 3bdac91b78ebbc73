"""The group controlled from outside: by Dagster or `kgs control` of a cluster, started before and not ended here."""

from kgs_core.config import Settings
from kgs_core.demo.replay import PARTITIONS, TOPICS
from kgs_core.demo.supervisor import GroupControl
from kgs_core.errors import ConfigError
from kgs_core.group.topics.topics import create_topics
from kgs_core.kafka.admin import admin_of
from kgs_core.model import TopicPartition


class OutsideControl(GroupControl):
    """Control that starts and ends nothing: who has started the group does."""

    invitation = "kill a consumer, its pod or its controller and watch: it comes again, and nothing is lost or doubled"
    state = "controlled from outside"


def create_demo_topics(settings: Settings) -> None:
    """The demonstration's topics and the group's own, where they are missing: the controller may not have begun yet.

    Raises:
        ConfigError: the group does not read one of them, one holds records already, which the final report would
            count, or the generator could not sign in.
        PortError: Kafka does not answer, or refuses.
    """
    unread = [topic for topic in TOPICS if settings.rule_of(topic) is None]
    problems = [f"--config: topics: no rule for '{topic}', which the demonstration writes: add one" for topic in unread]
    if settings.kafka.client:
        problems.append("--config: kafka.client: the demonstration's generator cannot sign in: use a plain listener")
    if problems:
        raise ConfigError(problems)
    admin = admin_of(settings)
    there = admin.describe(TOPICS)
    partitions = [TopicPartition(topic, n) for topic, found in there.items() for n in range(found.partitions)]
    ends = admin.offsets(partitions, "latest") if partitions else {}
    if used := sorted({tp.topic for tp, end in ends.items() if end}):
        raise ConfigError([f"--config: topic '{t}' holds records already: delete it and its table" for t in used])
    for topic in TOPICS:
        if topic not in there:
            admin.create_topic(topic, PARTITIONS, 1, {})
    create_topics(settings, admin)
