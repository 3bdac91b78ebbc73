"""The lake as assets: Kafka's topics, external, and the tables that consumers fill from them.

Which assets there are follows from kgs.yaml alone, so that definitions load while Kafka is away: one pair of topic and
table for each rule. A rule with a pattern is one pair, too; the topics that it finds are lines in its figures. Rules
that name the same table share its asset. Nothing here is computed by Dagster: consumers write the tables, and a sensor
records what it sees (`lake_events`).
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg

from kgs_core.config import Settings, TopicRule
from kgs_core.config.lake_root import split_root
from kgs_core.config.rule.topic_names import IN_BRACES
from kgs_core.model import whole_sum
from kgs_dagster.assets.columns import Source, own_columns, table_columns, topic_columns
from kgs_dagster.metadata import table
from kgs_dagster.settings import GroupConfig

if TYPE_CHECKING:
    from kgs_core.lake.topics.stats import LakeSnapshot, TableView

QUIET_S = 300.0
"""What has not changed is recorded this often, and every minute otherwise."""
FRESHNESS = dg.FreshnessPolicy.time_window(
    warn_window=timedelta(seconds=3 * QUIET_S), fail_window=timedelta(seconds=6 * QUIET_S)
)
_REGEX_PART = re.compile(r"\\(.)|\.[*+]|([^A-Za-z0-9._-])")


@dataclass(frozen=True, slots=True)
class LakeAsset:
    """One table as Dagster shows it.

    Attributes:
        rules: those of kgs.yaml that name it; they are alike in all that concerns it.
        derived: path of a table of newest rows, or of their history -> its key; empty where the rules want none.
        sides: path of each side table, as the rules name it -> its asset.
    """

    rules: tuple[TopicRule, ...]
    topics: tuple[dg.AssetKey, ...]
    table: dg.AssetKey
    derived: Mapping[str, dg.AssetKey] = field(default_factory=dict)
    sides: Mapping[str, dg.AssetKey] = field(default_factory=dict)

    @property
    def rule(self) -> TopicRule:
        """The first rule, for what all say alike."""
        return self.rules[0]

    @property
    def sources(self) -> list[Source]:
        """Each rule with its topics."""
        return list(zip(self.rules, self.topics, strict=True))

    def holds(self, settings: Settings, topic: str) -> bool:
        """Whether a topic comes into it."""
        rule = settings.rule_of(topic)
        return any(rule is each for each in self.rules)


@dataclass(frozen=True, slots=True)
class Seen:
    """Record of one asset, made last.

    Attributes:
        position: sum of the positions of all partitions, when all were known last; None: they never were.
        figures: all that was recorded, to tell whether anything has changed.
    """

    at: float
    position: int | None
    figures: tuple[int | None, ...]

    def is_recent(self, now: float, within_s: float) -> bool:
        """Whether it was made within so many seconds; one of the future was by a clock that was wrong."""
        return 0 <= now - self.at < within_s


def lake_layout(group: GroupConfig) -> tuple[LakeAsset, ...]:
    """Every table with its topics, in the order of kgs.yaml; no key twice."""
    found: dict[str, LakeAsset] = {}
    taken: set[dg.AssetKey] = set()
    for number, rule in enumerate(group.settings.topics):
        name = rule.topic or _plain(str(rule.pattern))
        # Graphs show the last part of a key only: it must not be that of the table
        topic = _free(group.key("kafka", f"topic_{name}"), taken)
        path = f"{number}" if "{topic}" in rule.table else rule.table  # named by the topic: no other rule's
        if (asset := found.get(path)) is not None:
            found[path] = replace(asset, rules=(*asset.rules, rule), topics=(*asset.topics, topic))
            continue
        table = _free(group.key("lake", *_named(rule.table, name).split("/")), taken)

        def keys(paths: Iterable[str], name: str = name) -> dict[str, dg.AssetKey]:
            unique = dict.fromkeys(paths)
            return {path: _free(group.key("lake", *_named(path, name).split("/")), taken) for path in unique}

        derived = keys(rule.newest_rows.tables if rule.newest_rows is not None else ())
        sides = keys(rule.route.tables.values() if rule.route is not None else ())
        found[path] = LakeAsset((rule,), (topic,), table, derived, sides)
    return tuple(found.values())


def _named(path: str, topic: str) -> str:
    """Path of a table in words: a pattern's groups by their names, for there is no one topic that fills them."""
    return IN_BRACES.sub(lambda name: topic if name[1] == "topic" else name[1], path)


def lake_assets(group: GroupConfig) -> list[dg.AssetSpec]:
    """Every topic, and every table with its topics upstream."""
    specs = []
    for asset in lake_layout(group):
        sources = [
            f"topic {rule.topic}" if rule.topic else f"topics that match `{rule.pattern}`" for rule in asset.rules
        ]
        specs += [
            dg.AssetSpec(
                topic,
                description=f"Kafka {what}. Written by others; group {group.name} reads it.",
                group_name=f"lake{group.suffix}",
                kinds={"kafka"},
                metadata=topic_columns(rule),
            )
            for rule, topic, what in zip(asset.rules, asset.topics, sources, strict=True)
        ]
        specs.append(
            dg.AssetSpec(
                asset.table,
                deps=list(asset.topics),
                description=words_of(asset.rule)
                + f"Delta table, filled from {', '.join(sources)} by the consumers of group {group.name}, exactly "
                "once. Materialized when a look finds it caught up or advanced; observed otherwise.",
                group_name=f"lake{group.suffix}",
                kinds=table_kinds(group),
                metadata=table_metadata(group, asset),
                freshness_policy=FRESHNESS,
            )
        )
    return specs


def words_of(rule: TopicRule) -> str:
    """The rule's own words about its table, in front of others."""
    return f"{rule.description}\n\n" if rule.description else ""


def lake_events(
    group: GroupConfig, snapshot: "LakeSnapshot", before: Mapping[str, Seen], now: float
) -> tuple[list[dg.AssetMaterialization | dg.AssetObservation], dict[str, Seen]]:
    """Events of a look at the lake, and the new `before`: what was recorded, by the user string of the asset's key.

    What is not known is left out: it is not zero.
    """
    events: list[dg.AssetMaterialization | dg.AssetObservation] = []
    after: dict[str, Seen] = {}
    for asset in lake_layout(group):
        tables = [table for table in snapshot.tables if asset.holds(group.settings, table.topic)]
        name = asset.table.to_user_string()
        last = before.get(name)
        figures = _figures(tables)
        position = whole_sum(each for table in tables for each in table.positions.values())
        if is_no_news(tables, figures, last, now):
            after |= {} if last is None else {name: last}
            continue
        known = last.position if last is not None else None
        after[name] = Seen(now, known if position is None else position, tuple(figures.values()))
        is_up_to_date = figures["lag"] == 0 or (position is not None and known is not None and position > known)
        kind = dg.AssetMaterialization if is_up_to_date else dg.AssetObservation
        metadata: dict[str, Any] = {key: value for key, value in figures.items() if value is not None}
        metadata |= own_columns(asset.sources, (column for table in tables for column in table.fields))
        metadata["partitions" if _is_of_one_topic(asset) else "topics"] = _lines(asset, tables)
        events.append(kind(asset_key=asset.table, metadata=metadata))
    return events, after


def is_no_news(
    tables: Collection["TableView"], figures: Mapping[str, int | None], last: Seen | None, now: float
) -> bool:
    """Whether tables are away, and will be compared when they are back; or are as they were recorded just now."""
    if not any(table.version is not None for table in tables):
        return True
    return last is not None and last.figures == tuple(figures.values()) and last.is_recent(now, QUIET_S)


def _figures(tables: Sequence["TableView"]) -> dict[str, int | None]:
    """The plain numbers, which Dagster draws over time; their names must stay."""
    from kgs_core.lake.topics.stats import each_once

    each = each_once(tables)
    return {
        "rows": whole_sum(table.rows for table in each),
        "dead_letters": whole_sum(table.dead_letters for table in each),
        "size_bytes": whole_sum(table.size_bytes for table in each),
        "files": whole_sum(table.files for table in each),
        "lag": whole_sum(table.lag for table in tables),
        "tables": len(each),
    }


def _is_of_one_topic(asset: LakeAsset) -> bool:
    return len(asset.rules) == 1 and asset.rule.topic is not None


def _lines(asset: LakeAsset, tables: Sequence["TableView"]) -> dg.TableMetadataValue:
    """A line per partition, or per topic where there are many."""
    rows: list[dict[str, Any]]
    if _is_of_one_topic(asset):
        rows = [
            {"partition": p, "position": view.positions.get(p), "end": end, "lag": view.lag_of(p)}
            for view in tables
            for p, end in sorted(view.ends.items())
        ]
    else:
        rows = [
            {"topic": t.topic, "table": t.table, "rows": t.rows, "lag": t.lag, "files": t.files, "size": t.size_bytes}
            for t in tables
        ]
    return table(rows, {name: "string" if name in ("topic", "table") else "int" for name in (rows[0] if rows else ())})


def table_metadata(group: GroupConfig, asset: LakeAsset) -> dict[str, Any]:
    """Metadata of a table: where it lies, its columns and where they come from."""
    rule = asset.rule
    return {
        **storage_metadata(group, rule, rule.table),
        "format": ", ".join(dict.fromkeys(each.format for each in asset.rules)),
        "rows_promised": rule.rows,
        **table_columns(asset.sources),
    }


def storage_metadata(group: GroupConfig, rule: TopicRule, table: str) -> dict[str, Any]:
    """Where a table lies, and as what; with a pattern, how its tables' paths are made, which have no one name."""
    lake = group.settings.lake
    path = rule.filled(table, rule.topic) if rule.topic is not None else table
    name = {} if IN_BRACES.search(path) else {"dagster/table_name": path.replace("/", ".")}
    return {"path": f"{lake.root.rstrip('/')}/{path}", **name, "dagster/storage_kind": "delta"}


def table_kinds(group: GroupConfig) -> set[str]:
    """Kinds that the UI shows of a table: its format, and the store where that is one."""
    store = split_root(group.settings.lake.root).kind
    return {"delta", store} if store else {"delta"}


def _plain(pattern: str) -> str:
    r"""A name for all topics of a pattern, as near to it as a name can be: `flights\..*` is `flights.any`."""

    def part(match: re.Match[str]) -> str:
        if match[1] is not None:
            return match[1] if re.fullmatch(r"[._-]", match[1]) else "_"
        return "_" if match[2] is not None else "any"

    return _REGEX_PART.sub(part, pattern)


def _free(key: dg.AssetKey, taken: set[dg.AssetKey]) -> dg.AssetKey:
    """The key, or the first of `key_2`, `key_3`, ... that is not taken; takes it."""
    *parents, name = key.path
    number = 1
    while key in taken:
        number += 1
        key = dg.AssetKey([*parents, f"{name}_{number}"])
    taken.add(key)
    return key
