"""Complete hours of tables: an asset with a partition for each hour, and the sensor that materializes it.

A user's own assets hang on it: partitioned by hour or day, with automation, freshness and checks as for any other
asset. An hour is materialized once every record of it is in the table, and again when rows of it have come later.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import TypeAdapter, ValidationError

from kgs_core.config.rule.complete_hours import CompleteHours
from kgs_core.errors import one_line
from kgs_core.lake.rule.completeness import HOUR_MS
from kgs_dagster.assets.lake import LakeAsset, lake_layout, storage_metadata, table_kinds
from kgs_dagster.settings import GroupConfig
from kgs_dagster.turn import Turn

if TYPE_CHECKING:
    from kgs_core.lake.rule.completeness import Completeness
    from kgs_core.lake.topics.complete import CompleteView

LOOK_EVERY_S = 60
MOST_AT_ONCE = 500
"""Hours that one tick records; the others come with the next ones."""
_HOUR = "%Y-%m-%d-%H:%M"  # as Dagster names a partition of an hour


@dataclass(frozen=True, slots=True)
class HoursSeen:
    """What the last look has found of one asset.

    Attributes:
        until_ms: start of the first hour that is not complete, ms since 1970.
        versions: table -> version of its log.
        since_ms: start of the first hour that is recorded.
    """

    until_ms: int
    versions: Mapping[str, int] = field(default_factory=dict)
    since_ms: int = 0


_CURSOR = TypeAdapter(dict[str, HoursSeen])


def hours_layout(group: GroupConfig) -> list[tuple[LakeAsset, CompleteHours]]:
    """Tables whose rules ask for complete hours, and how."""
    found = ((asset, asset.rule.complete_hours) for asset in lake_layout(group))
    return [(asset, hours) for asset, hours in found if hours is not None]


def hours_key(asset: LakeAsset) -> dg.AssetKey:
    """Key of the complete hours of a table."""
    *parents, name = asset.table.path
    return dg.AssetKey([*parents, f"{name}_hours"])


def hours_assets(group: GroupConfig) -> list[dg.AssetSpec]:
    """The complete hours of every table whose rule asks for them."""
    return [_spec(group, asset, hours) for asset, hours in hours_layout(group)]


def _spec(group: GroupConfig, asset: LakeAsset, hours: CompleteHours) -> dg.AssetSpec:
    return dg.AssetSpec(
        hours_key(asset),
        deps=[asset.table],
        partitions_def=dg.HourlyPartitionsDefinition(start_date=f"{hours.since:%Y-%m-%d}-00:00", timezone="UTC"),
        description=f"Hours of {asset.table.path[-1]} and its side tables (UTC, by the records' timestamps), each "
        f"materialized when every record of it is there, which may come {hours.lateness_s:g} s later than its "
        "timestamp; again when a later one has come. `kgs complete` says how far the table is.",
        group_name=f"lake{group.suffix}",
        kinds=table_kinds(group),
        metadata=storage_metadata(group, asset.rule, asset.rule.table),
    )


def complete_hours_sensor(group: GroupConfig, view: "Callable[[], CompleteView] | None" = None) -> dg.SensorDefinition:
    """Looks at how far tables are complete, and materializes their hours. Needs no run: nothing is computed."""
    views: list[CompleteView] = []
    turn = Turn()

    def opened() -> "CompleteView":
        from kgs_core.lake.topics.complete import CompleteView

        return CompleteView(group.settings, asked_for=True)

    @dg.sensor(
        name=f"complete_hours_sensor{group.suffix}",
        minimum_interval_seconds=LOOK_EVERY_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Materializes each hour of a table when all its records are there, and again when some come late.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        with turn.taken() as why:
            if why:
                return dg.SkipReason(why)
            if not views:
                views.append((view or opened)())
            before = _load(context.cursor)
            events, after, words = _events(group, views[0], before)
        cursor = _CURSOR.dump_json({**before, **after}).decode()
        return dg.SensorResult(asset_events=events, cursor=cursor, skip_reason=dg.SkipReason("; ".join(words)))

    return sensor


def _events(
    group: GroupConfig, view: "CompleteView", before: Mapping[str, HoursSeen]
) -> tuple[Sequence[dg.AssetMaterialization], dict[str, HoursSeen], Sequence[str]]:
    from kgs_core.lake.topics.complete import versions_of
    from kgs_core.lake.topics.stats import with_sides

    snapshot, found = view.look()
    until = {each.table: each for each in found}
    events: list[dg.AssetMaterialization] = []
    after: dict[str, HoursSeen] = {}
    words: list[str] = []
    for asset, wanted in hours_layout(group):
        name, key = asset.table.path[-1], hours_key(asset)
        topics = [each for each in snapshot.tables if asset.holds(group.settings, each.topic)]
        least = _least([until[each] for each in dict.fromkeys(t.table for t in with_sides(topics)) if each in until])
        if isinstance(least, str):
            words.append(f"{name}: {least}")
            continue
        last = _taken_up(before.get(key.to_user_string()), since_ms := _since_ms(wanted))
        versions = versions_of(topics)
        try:
            late = _late(view, versions, last, since_ms) if last.versions else Counter[int]()
        except Exception as e:  # noqa: BLE001 - stores and pyarrow raise what they like; other tables' hours go on
            words.append(f"{name}: late rows: {type(e).__name__}: {one_line(e)}")
            continue
        hours = range(last.until_ms, min(least, last.until_ms + MOST_AT_ONCE * HOUR_MS) - HOUR_MS + 1, HOUR_MS)
        earlier = range(max(since_ms, last.since_ms - MOST_AT_ONCE * HOUR_MS), last.since_ms, HOUR_MS)
        events += [_event(key, hour) for hour in (*earlier, *hours)] + [
            _event(key, hour, late[hour]) for hour in sorted(late)
        ]
        after[key.to_user_string()] = HoursSeen(
            last.until_ms + len(hours) * HOUR_MS, {**last.versions, **versions}, last.since_ms - len(earlier) * HOUR_MS
        )
        count = len(earlier) + len(hours)
        words.append(f"{name}: complete until {_time(least):%Y-%m-%d %H:%M:%S}Z, {count} hours recorded")
        if late:
            words.append(f"{name}: {late.total()} rows came late, into {len(late)} hours")
    return events, after, words


def _taken_up(last: HoursSeen | None, since_ms: int) -> HoursSeen:
    """What was seen, where hours from `since_ms` on were recorded; otherwise nothing was."""
    if last is None or last.until_ms <= max(since_ms, last.since_ms):
        return HoursSeen(since_ms, last.versions if last is not None else {}, since_ms)
    return last


def _least(found: "Collection[Completeness]") -> int | str:
    """The earliest time that tables are complete until, ms; why it is not known."""
    times = [each.until_ms for each in found if each.until_ms is not None]
    if len(times) < len(found) or not found:
        return next((f"not known: {each.problem}" for each in found if each.problem), "Kafka has no such topic")
    return min(times)


def _late(view: "CompleteView", tables: Collection[str], last: HoursSeen, since_ms: int) -> Counter[int]:
    """Hours that were complete, and rows of them that have come since; of a table that is new, all of them."""
    found: Counter[int] = Counter()
    for table in tables:
        found += view.late_rows(table, last.versions.get(table, -1), last.until_ms)
    return Counter({hour: count for hour, count in found.items() if hour >= since_ms})


def _event(key: dg.AssetKey, hour_ms: int, late_rows: int = 0) -> dg.AssetMaterialization:
    metadata = {"late_rows": late_rows} if late_rows else {}
    return dg.AssetMaterialization(asset_key=key, partition=f"{_time(hour_ms):{_HOUR}}", metadata=metadata)


def _since_ms(hours: CompleteHours) -> int:
    return int(datetime(hours.since.year, hours.since.month, hours.since.day, tzinfo=UTC).timestamp() * 1000)


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _load(cursor: str | None) -> dict[str, HoursSeen]:
    """What was seen before; nothing where the cursor is none of ours: all hours are recorded once more then."""
    try:
        return _CURSOR.validate_json(cursor or "{}", strict=True)
    except ValidationError:
        return {}
