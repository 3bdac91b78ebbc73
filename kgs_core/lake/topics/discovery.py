"""Topics that have tables: those of Kafka, and those that only the lake still knows."""

import logging
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from kgs_core.config import Settings, TableSpec, TopicRule, resolve_tables
from kgs_core.config.tables import tables_of_gone_topics
from kgs_core.errors import ConfigError, PermanentError, TransientError
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.lake.topics.kept_bills import BILL_FOLDER
from kgs_core.lake.topics.shared_table import topics_by_id
from kgs_core.model import TopicId
from kgs_core.ports import Lake

_NAME = re.compile(r"\{\w+\}")
_log = logging.getLogger(__name__)
LOG_FOLDER = "_delta_log"
AWAY_AFTER = 2
"""Number of tables in a row with unreadable logs after which the store counts as unavailable."""


@dataclass(frozen=True, slots=True)
class UnreadTable:
    """A table with an unreadable log: if Kafka no longer has its topic, the topic is not found.

    `rule`: the rule that may have made it.
    """

    table: str
    rule: TopicRule
    error: TransientError


def find_tables(
    settings: Settings,
    lake: Lake,
    in_kafka: Collection[str],
    chosen: Collection[str] | None,
    unread: list[UnreadTable] | None = None,
) -> list[TableSpec]:
    """The tables of every topic that a rule fits, also of topics that Kafka no longer has.

    Args:
        in_kafka: names of the topics that exist.
        chosen: only these; None: all.
        unread: receives skipped tables with unreadable logs; None: the first one raises.

    Raises:
        ConfigError: a chosen topic that no rule fits, or that neither Kafka nor the lake has; two topics that are there
            in one table.
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
    gone = _only_in_lake(settings, lake, found, unread)
    if chosen is not None and (unknown := sorted(set(chosen) - found - gone)):
        refuse_unknown(unread)
        raise ConfigError([f"--topic {topic}: no such topic, and no table of it: check the name" for topic in unknown])
    specs = resolve_tables(settings, found)
    of_gone, problems = tables_of_gone_topics(settings, gone, specs.values())
    for problem in problems:
        _log.warning("a topic that Kafka no longer has is left out: %s", problem)
    specs = dict(sorted((specs | of_gone).items()))
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


def refuse_unknown_tables(named: Collection[str], known: Collection[str], unread: Collection[UnreadTable]) -> None:
    """Refuse names of tables that no topic fills."""
    if unknown := sorted({*named}.difference(known)):
        refuse_unknown(unread)
        raise ConfigError([f"table {name}: no topic fills it: see 'topics' in the configuration" for name in unknown])


def refuse_unknown(unread: Collection[UnreadTable] | None) -> None:
    """Refuse to call a name unknown while an unreadable table may belong to it.

    Raises:
        TransientError: there are some.
    """
    for each in unread or ():
        raise each.error


def _only_in_lake(settings: Settings, lake: Lake, known: Collection[str], unread: list[UnreadTable] | None) -> set[str]:
    """Topics beside those in `known` whose tables this group has filled, by rules with a pattern."""
    rules = ((topic, settings.rule_of(topic)) for topic in known)
    # What such a rule names by the topic, no other topic of it can have filled
    taken = {(id(rule), rule.table_of(topic)) for topic, rule in rules if rule is not None and "{topic}" in rule.table}
    looked_at = (
        (rule, table)
        for rule in settings.topics
        if rule.pattern is not None
        for table in _folders_of(lake, rule)
        if (id(rule), table) not in taken
    )
    found: set[str] = set()
    in_a_row = 0
    for rule, table in looked_at:
        try:
            topics = _filled_from(lake, table, settings.group)
        except TransientError as e:
            in_a_row += 1
            if unread is None or in_a_row >= AWAY_AFTER:
                raise
            unread.append(UnreadTable(table, rule, e))
            continue
        in_a_row = 0
        found |= {
            topic
            for topic in topics
            if topic not in known and settings.rule_of(topic) is rule and rule.table_of(topic) == table
        }
    return found


def _folders_of(lake: Lake, rule: TopicRule) -> Iterator[str]:
    """Existing paths whose shape fits the tables of the rule."""
    found = [""]
    for part in rule.table.split("/"):
        pieces = _NAME.split(part)
        if len(pieces) == 1:
            found = [f"{path}{part}/" for path in found]
            continue
        shape = re.compile(".*".join(re.escape(piece) for piece in pieces))
        found = [
            f"{path}{name}/"
            for path in found
            for name in _listed(lake, path.rstrip("/"))
            if shape.fullmatch(name) and name not in (LOG_FOLDER, BILL_FOLDER)
        ]
    yield from (path.rstrip("/") for path in found)


def _listed(lake: Lake, path: str) -> list[str]:
    """Folders within a path; below the root, folders without read permission (as `lost+found`) are skipped."""
    try:
        return lake.folders(path)
    except PermanentError as e:
        if not path or not isinstance(e.__cause__, PermissionError):
            raise
        _log.warning("left out, unless Kafka has its topics: %s: %s", path, e)
        return []


def _filled_from(lake: Lake, table: str, group: str) -> set[str]:
    """Topics with positions of this group in a table; a dead-letter table has those of its rows' table."""
    try:
        apps = lake.all_versions(table)
    except PermanentError as e:  # a table of somebody else may lie there, and a broken one stops no other
        _log.warning("left out, unless Kafka has its topic: %s", e)
        return set()
    return {*topics_by_id(apps, group).values()}
