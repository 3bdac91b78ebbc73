"""Which topics have tables: those that Kafka has, and those that only the lake still knows."""

import re
from collections.abc import Collection, Iterator

from kgs_core.adapters.kafka.admin import KafkaAdmin
from kgs_core.config import Settings, TableSpec, TopicRule, resolve_tables
from kgs_core.errors import ConfigError
from kgs_core.exactly_once.positions import parse_app_id
from kgs_core.model import TopicId
from kgs_core.ports import Lake

_TOPIC = "{topic}"


def find_tables(
    settings: Settings, lake: Lake, in_kafka: Collection[str], chosen: Collection[str] | None
) -> list[TableSpec]:
    """The tables of every topic that a rule fits, also of topics that Kafka no longer has.

    Args:
        in_kafka: names of the topics that exist.
        chosen: only these; None: all.

    Raises:
        ConfigError: a chosen topic that no rule fits, or that neither Kafka nor the lake has; two topics in one table.
        PermanentError: the lake cannot be listed.
    """
    if chosen is not None:
        wrong = [
            f"--topic {topic}: no rule in 'topics' fits it: check the name"
            for topic in chosen
            if settings.rule_of(topic) is None
        ]
        if wrong:
            raise ConfigError(wrong)
    named = {rule.topic for rule in settings.topics if rule.topic is not None}
    found = {*in_kafka, *named}
    found |= _only_in_lake(settings, lake, found)
    if chosen is not None and (unknown := sorted(set(chosen) - found)):
        raise ConfigError([f"--topic {topic}: no such topic, and no table of it: check the name" for topic in unknown])
    specs = resolve_tables(settings, found)
    return [spec for topic, spec in specs.items() if chosen is None or topic in chosen]


def find_topic(settings: Settings, admin: KafkaAdmin, topic: str) -> tuple[TableSpec, TopicId, int]:
    """Table, present id and number of partitions of one topic that Kafka has.

    Raises:
        ConfigError: Kafka has no such topic, or no rule fits it.
        PortError: Kafka did not answer.
    """
    described = admin.describe([topic]).get(topic)
    if described is None:
        raise ConfigError([f"topic {topic}: Kafka {settings.kafka.bootstrap_servers} has no such topic"])
    # All topics, not this one alone: two that would share a table are a mistake here as well.
    spec = resolve_tables(settings, admin.list_topics()).get(topic)
    if spec is None:
        raise ConfigError([f"topic {topic}: no rule of the configuration fits it: look at its 'topics'"])
    return spec, described.topic_id, described.partitions


def _only_in_lake(settings: Settings, lake: Lake, known: Collection[str]) -> set[str]:
    """Topics whose tables were filled by this group, by the rules that have a pattern, beside those known."""
    return {
        topic
        for rule in settings.topics
        if rule.pattern is not None
        for topic in _folders_of(lake, rule)
        if topic not in known
        and settings.rule_of(topic) is rule
        and _is_filled_from(lake, rule.table_of(topic), settings.group, topic)
    }


def _folders_of(lake: Lake, rule: TopicRule) -> Iterator[str]:
    """What the topics would be called whose folders are there."""
    parts = rule.table.split("/")
    depth = next(i for i, part in enumerate(parts) if _TOPIC in part)
    first, *others = (re.escape(text) for text in parts[depth].split(_TOPIC))
    shape = re.compile(first + "(.+)" + r"\1".join(others))
    for name in lake.folders("/".join(parts[:depth])):
        match = shape.fullmatch(name)
        if match is not None:
            yield match.group(1)


def _is_filled_from(lake: Lake, table: str, group: str, topic: str) -> bool:
    """A table of dead letters looks like the table of a topic of that name, but has positions of another."""
    found = (parse_app_id(app) for app in lake.all_versions(table))
    return any(app is not None and (app.group, app.topic) == (group, topic) for app in found)
