"""What fills the database of the Dagster instance of DAGSTER_HOME: `python -m bench.growth`. Reads only."""

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click
import dagster as dg

_DAY_S, _MINUTE_S = 86_400.0, 60.0
_SAMPLE = 20
"""Runs of each job whose events are counted, the newest: with SQLite each has a file of its own."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One kind of row.

    Attributes:
        kind: for people.
        rows: of this kind that are there.
        bytes_each: size of what it says, without indexes; None: there is none to measure.
        a_day: rows of the last 24 h; of an instance that has seen less, as many as it would be at this pace.
    """

    kind: str
    rows: int
    bytes_each: float | None
    a_day: float


def growth(instance: dg.DagsterInstance, now: float) -> list[Growth]:
    """Ticks, runs with their events, and events without a run."""
    return [*_ticks(instance, now), *_runs(instance, now), *_events_without_run(instance, now)]


def _ticks(instance: dg.DagsterInstance, now: float) -> Iterator[Growth]:
    import sqlalchemy as db
    from dagster._core.storage.schedules.schema import JobTickTable as Ticks

    names = {state.selector_id: state.name for state in instance.all_instigator_state()}
    query = db.select(Ticks.c.selector_id, Ticks.c.status, Ticks.c.timestamp, db.func.length(Ticks.c.tick_body))
    storage: Any = instance.schedule_storage
    with storage.connect() as connection:
        rows = connection.execute(query).fetchall()
    kinds = ((f"tick of {names.get(row[0], row[0])}, {row[1].lower()}", row[2], row[3]) for row in rows)
    yield from _counted(kinds, now)


def _events_without_run(instance: dg.DagsterInstance, now: float) -> Iterator[Growth]:
    import sqlalchemy as db
    from dagster._core.storage.event_log.schema import SqlEventLogStorageTable as Events

    columns = (Events.c.asset_key, Events.c.dagster_event_type, Events.c.timestamp, db.func.length(Events.c.event))
    storage: Any = instance.event_log_storage
    with storage.index_connection() as connection:
        rows = connection.execute(db.select(*columns).where(Events.c.run_id == "")).fetchall()
    kinds = ((f"{row[1].lower()} of {_asset(row[0])}", row[2], row[3]) for row in rows)
    yield from _counted(kinds, now)


def _asset(key: str | None) -> str:
    found = dg.AssetKey.from_db_string(key) if key else None
    return found.to_user_string() if found else "no asset"


def _counted(rows: Iterator[tuple[str, Any, int]], now: float) -> Iterator[Growth]:
    found: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for kind, moment, size in rows:
        found[kind].append((now - moment.replace(tzinfo=None).timestamp() - time.timezone, size))
    span_s = _span_s([age_s for each in found.values() for age_s, _ in each])
    for kind, each in sorted(found.items()):
        recent = sum(age_s <= _DAY_S for age_s, _ in each)
        mean = sum(size for _, size in each) / len(each)
        yield Growth(kind, len(each), mean, recent * _DAY_S / span_s)


def _span_s(ages_s: list[float]) -> float:
    """What of the last 24 h the instance has seen; a minute at least."""
    return max(_MINUTE_S, min(_DAY_S, max(ages_s) - min(ages_s))) if ages_s else _DAY_S


def _runs(instance: dg.DagsterInstance, now: float) -> Iterator[Growth]:
    records: dict[str, list[dg.RunRecord]] = defaultdict(list)
    for record in instance.get_run_records():
        records[record.dagster_run.job_name].append(record)
    ages = {job: [now - each.create_timestamp.timestamp() for each in found] for job, found in records.items()}
    span_s = _span_s([age_s for found in ages.values() for age_s in found])
    for job, found in sorted(records.items()):
        sizes = [_events_of(instance, each.dagster_run.run_id) for each in found[:_SAMPLE]]
        recent = sum(age_s <= _DAY_S for age_s in ages[job])
        yield Growth(f"run of {job}", len(found), sum(sizes) / len(sizes), recent * _DAY_S / span_s)


def _events_of(instance: dg.DagsterInstance, run_id: str) -> int:
    import sqlalchemy as db
    from dagster._core.storage.event_log.schema import SqlEventLogStorageTable as Events

    storage: Any = instance.event_log_storage
    query = db.select(db.func.coalesce(db.func.sum(db.func.length(Events.c.event)), 0)).where(Events.c.run_id == run_id)
    with storage.run_connection(run_id) as connection:
        return int(connection.execute(query).scalar() or 0)


def main() -> None:
    """Print a line for each kind, the one that grows most first."""
    with dg.DagsterInstance.get() as instance:
        found = growth(instance, time.time())
    click.echo(f"{'rows':>9} {'bytes each':>11} {'rows a day':>11} {'MB a day':>9}  kind")
    for each in sorted(found, key=lambda one: -one.a_day * (one.bytes_each or 0.0)):
        size = each.bytes_each or 0.0
        click.echo(f"{each.rows:>9,} {size:>11,.0f} {each.a_day:>11,.0f} {each.a_day * size / 1e6:>9.2f}  {each.kind}")
    total = sum(each.a_day * (each.bytes_each or 0.0) for each in found)
    click.echo(f"{total / 1e6:.1f} MB a day at this pace, without indexes, before anything is pruned")


if __name__ == "__main__":
    main()
