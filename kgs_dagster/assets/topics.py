"""Observations of Kafka's topics: partitions, how fast they grow, how long they are kept.

Seldom, since nobody decides by it: an event is kept for days, and there may be hundreds of topics.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dagster as dg

from kgs_core.config import TopicRule
from kgs_core.errors import KgsError, TransientError
from kgs_core.reporting.sums import whole_sum
from kgs_dagster.assets.lake import Seen, lake_layout
from kgs_dagster.metadata import table, three_digits
from kgs_dagster.settings import GroupConfig

if TYPE_CHECKING:
    from kgs_core.lake.topics.stats import LakeSnapshot, TableView

EVERY_S = 900.0
"""A topic is recorded so often, and at once where its partitions or its retention have changed."""
_FIGURES = 3
"""Of `Seen`: how many partitions, whether the rate was known, how long records are kept."""
_UNITS = (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1))
Retentions = Mapping[str, str]
"""Topic -> how long it keeps records, for people; topics that are not there do not say."""


@dataclass(frozen=True, slots=True)
class _Topics:
    partitions: int | None
    end: int | None
    retention: str


def topic_events(
    group: GroupConfig, snapshot: "LakeSnapshot", retentions: Retentions, before: Mapping[str, Seen], now: float
) -> tuple[list[dg.AssetObservation], dict[str, Seen]]:
    """Events of the topics of a look at the lake, and the new `before`; see `lake_events`."""
    events: list[dg.AssetObservation] = []
    after: dict[str, Seen] = {}
    layout = lake_layout(group)
    for rule, topic in [pair for asset in layout for pair in zip(asset.rules, asset.topics, strict=True)]:
        views = [view for view in snapshot.tables if group.settings.rule_of(view.topic) is rule and view.ends]
        name = topic.to_user_string()
        last = before.get(name)
        found = _seen(views, retentions)
        if not views or (last is not None and not _is_due(found, last, now)):
            after |= {} if last is None else {name: last}
            continue
        rate = _rate(found, last, now)
        after[name] = Seen(now, found.end, (found.partitions, int(rate is not None), found.retention))
        events.append(dg.AssetObservation(asset_key=topic, metadata=_metadata(rule, views, found, rate)))
    return events, after


def retentions_of(topics: Sequence[str], config_of: Callable[[str], Mapping[str, str]]) -> dict[str, str]:
    """How long each topic keeps records, for people; left out where Kafka does not say, or gives no right to ask."""
    found = {}
    for topic in topics:
        try:
            found[topic] = retention_text(config_of(topic))
        except TransientError:  # Kafka is away: the others would only be waited for
            break
        except KgsError:
            continue
    return found


def retention_text(config: Mapping[str, str]) -> str:
    """A topic's retention in words, as `7 days` or `compacted`."""
    policy = config.get("cleanup.policy", "delete").split(",")
    if "delete" not in policy:
        return "compacted"
    parts = [_time_text(config.get("retention.ms", "")), _size_text(config.get("retention.bytes", ""))]
    limits = " or ".join(part for part in parts if part) or "for ever"
    return f"{limits}, compacted" if "compact" in policy else limits


def _time_text(text: str) -> str:
    ms = int(text) if text.removeprefix("-").isdigit() else -1
    return next((f"{ms / size:g} {unit}" for unit, size in _UNITS if ms >= size), "")


def _size_text(text: str) -> str:
    return f"{three_digits(int(text) / 1e6):g} MB a partition" if text.isdigit() and int(text) > 0 else ""


def _seen(views: "Sequence[TableView]", retentions: Retentions) -> _Topics:
    ends = [end for view in views for end in view.ends.values()]
    texts = sorted({retentions[view.topic] for view in views if view.topic in retentions})
    return _Topics(len(ends), whole_sum(ends), "; ".join(texts))


def _is_due(found: _Topics, last: Seen, now: float) -> bool:
    if len(last.figures) != _FIGURES:  # recorded by another version
        return True
    partitions, has_rate, retention = last.figures
    is_other = found.partitions != partitions or bool(found.retention and found.retention != retention)
    return is_other or not has_rate or not last.is_recent(now, EVERY_S)


def _rate(found: _Topics, last: Seen | None, now: float) -> float | None:
    if last is None or last.position is None or found.end is None or now <= last.at or found.end < last.position:
        return None
    return (found.end - last.position) / (now - last.at)


def _metadata(rule: TopicRule, views: "Sequence[TableView]", found: _Topics, rate: float | None) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "partitions": found.partitions,
        "end_offsets": found.end,
        "records_per_s": None if rate is None else three_digits(rate),
        "retention": found.retention or None,
    }
    if rule.pattern is not None:
        rows = [{"topic": view.topic, "partitions": len(view.ends)} for view in views]
        plain |= {"topics": table(rows, {"topic": "string", "partitions": "int"})}
    return {name: value for name, value in plain.items() if value is not None}
