"""Observations of Kafka's topics: partitions, and how fast they grow.

Seldom, since nobody decides by it: an event is kept for days, and there may be hundreds of topics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dagster as dg

from kgs_core.config import TopicRule
from kgs_core.reporting.sums import whole_sum
from kgs_dagster.assets.lake import Seen, lake_layout
from kgs_dagster.metadata import table, three_digits
from kgs_dagster.settings import GroupConfig

if TYPE_CHECKING:
    from kgs_core.lake.topics.stats import LakeSnapshot, TableView

EVERY_S = 900.0
"""A topic is recorded so often, and at once where its partitions have changed."""
_FIGURES = 2
"""Of `Seen`: how many partitions, whether the rate was known."""


@dataclass(frozen=True, slots=True)
class _Topics:
    partitions: int | None
    end: int | None


def topic_events(
    group: GroupConfig, snapshot: "LakeSnapshot", before: Mapping[str, Seen], now: float
) -> tuple[list[dg.AssetObservation], dict[str, Seen]]:
    """Events of the topics of a look at the lake, and the new `before`; see `lake_events`."""
    events: list[dg.AssetObservation] = []
    after: dict[str, Seen] = {}
    layout = lake_layout(group)
    for rule, topic in [pair for asset in layout for pair in zip(asset.rules, asset.topics, strict=True)]:
        views = [view for view in snapshot.tables if group.settings.rule_of(view.topic) is rule and view.ends]
        name = topic.to_user_string()
        last = before.get(name)
        found = _seen(views)
        if not views or (last is not None and not _is_due(found, last, now)):
            after |= {} if last is None else {name: last}
            continue
        rate = _rate(found, last, now)
        after[name] = Seen(now, found.end, (found.partitions, int(rate is not None)))
        events.append(dg.AssetObservation(asset_key=topic, metadata=_metadata(rule, views, found, rate)))
    return events, after


def _seen(views: "Sequence[TableView]") -> _Topics:
    ends = [end for view in views for end in view.ends.values()]
    return _Topics(len(ends), whole_sum(ends))


def _is_due(found: _Topics, last: Seen, now: float) -> bool:
    if len(last.figures) != _FIGURES:  # recorded by another version
        return True
    partitions, has_rate = last.figures
    return found.partitions != partitions or not has_rate or not last.is_recent(now, EVERY_S)


def _rate(found: _Topics, last: Seen | None, now: float) -> float | None:
    if last is None or last.position is None or found.end is None or now <= last.at or found.end < last.position:
        return None
    return (found.end - last.position) / (now - last.at)


def _metadata(rule: TopicRule, views: "Sequence[TableView]", found: _Topics, rate: float | None) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "partitions": found.partitions,
        "end_offsets": found.end,
        "records_per_s": None if rate is None else three_digits(rate),
    }
    if rule.pattern is not None:
        rows = [{"topic": view.topic, "partitions": len(view.ends)} for view in views]
        plain |= {"topics": table(rows, {"topic": "string", "partitions": "int"})}
    return {name: value for name, value in plain.items() if value is not None}
