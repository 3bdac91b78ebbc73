"""Rules whose topics share a table: which may, and what they must agree in. Pure."""

import re
from collections.abc import Collection, Iterator

from kgs_core.config.rule.topic_names import IN_BRACES
from kgs_core.config.rule.topic_rule import TopicRule
from kgs_core.config.rule.value_formats import FORMATS

_SAME = (
    "key_columns",
    "topic_column",
    "unknown_fields",
    "rows",
    "evolve",
    "partition_by",
    "description",
    "comments",
    "newest_rows",
    "route",
    "complete_hours",
    "mask",
    "keep",
)
_IN_WORDS = {"key_columns": "key_format, key_schema and key_prefix"}


def differences(one: TopicRule, other: TopicRule) -> list[str]:
    """Settings that two rules must agree in if their topics share a table, and do not; by their names in kgs.yaml.

    What the rules leave to a registry or to a transform shows when the tables are opened.
    """
    if one is other:
        return []
    found = [_IN_WORDS.get(name, name) for name in _SAME if getattr(one, name) != getattr(other, name)]
    if set(one.headers) != set(other.headers):
        found.append("headers")
    if one.newest_rows is not None and one.format != other.format:
        found.append("format (of a table with newest_rows)")
    return [*_columns(one, other), *found]


def _columns(one: TopicRule, other: TopicRule) -> list[str]:
    """Columns of the values, as far as the rules say them: the same ones, or where columns are added the same types."""
    if any(rule.has_transform or not rule.names_columns for rule in (one, other)):
        return []
    ours, theirs = one.value_columns, other.value_columns
    if one.evolve != "none":
        both = ours.keys() & theirs.keys()
        ours, theirs = ({name: columns[name] for name in both} for columns in (ours, theirs))
    unlike = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    if not unlike:
        return []
    has_schema = any(FORMATS[rule.format].columns is None for rule in (one, other))
    return [f"{'schema' if has_schema else 'format'} (column {', '.join(unlike)})"]


def problems_of_sharing(rules: Collection[TopicRule]) -> Iterator[str]:
    """Rules that name one table and do not agree, as far as that shows without any topic; the later is named first."""
    named: dict[str, tuple[int, TopicRule]] = {}
    for number, rule in enumerate(rules):
        if IN_BRACES.search(rule.table):
            continue
        first, other = named.setdefault(rule.table, (number, rule))
        if unlike := differences(other, rule):
            yield (
                f"topics[{number}].table: '{rule.table}' is also the table of topics[{first}], and they differ in "
                f"{', '.join(unlike)}: make these alike, or name another table"
            )
        elif other is not rule and _is_newest_by_offset(rule):
            yield (
                f"topics[{number}].newest_rows: '{rule.table}' is also the table of topics[{first}], and offsets of "
                "two topics cannot be compared: set order: timestamp, or put the topic_column into the key"
            )


def _is_newest_by_offset(rule: TopicRule) -> bool:
    latest = rule.newest_rows
    return latest is not None and latest.order == "offset" and not {*rule.topic_columns} & {*rule.newest_key}


def problems_of_side_tables(rules: Collection[TopicRule]) -> Iterator[str]:
    """Tables of routes that are also another rule's, as far as that shows without any topic."""
    own = {rule.table.lower(): number for number, rule in reversed(list(enumerate(rules)))}
    named: dict[str, tuple[int, TopicRule]] = {}
    for number, rule in enumerate(rules):
        for path in dict.fromkeys(rule.route.tables.values() if rule.route is not None else ()):
            if IN_BRACES.search(path):
                continue
            first, other = named.setdefault(path.lower(), (number, rule))
            whose = own.get(path.lower(), first if other.table != rule.table else number)
            if whose != number:
                yield (
                    f"topics[{number}].route: '{path}' is also a table of topics[{whose}]: rows of a route have a "
                    "table of their own: name another one"
                )


def may_be_shared(rule: TopicRule, rules: Collection[TopicRule]) -> bool:
    """Whether several topics may come into the table of a topic of `rule`."""
    if rule.pattern is not None and "{topic}" not in rule.table:
        return True
    return any(_may_meet(rule.table, other.table) for other in rules if other is not rule)


def _may_meet(one: str, other: str) -> bool:
    if "{topic}" in one and one == other:
        return False
    return any(_shape(a).fullmatch(IN_BRACES.sub("", b)) for a, b in ((one, other), (other, one)))


def _shape(table: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in re.split(r"\{\w+\}", table)), re.IGNORECASE)
