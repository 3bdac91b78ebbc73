"""Complete hours of a table: which partitions of its asset are materialized at which look."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import dagster as dg

from kgs_core.lake.rule.completeness import Completeness
from kgs_core.lake.topics.stats import LakeSnapshot, TableView
from kgs_dagster.definitions import build_defs
from kgs_dagster.sensors.complete_hours import HOUR_MS, complete_hours_sensor, hours_assets
from tests.dagster.groups import group

TOPICS = "[{topic: orders, table: bronze/orders, complete_hours: {since: 2026-11-01}}, {topic: other}]"
SINCE_MS = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp() * 1000)
VIEW = TableView("orders", "bronze/orders", version=1, positions={0: 5}, ends={0: 5}, topic_id="i", partitions=1)
KEY = group(topics=TOPICS).key("lake", "bronze", "orders_hours")


class Looks:
    """Looks at a lake of one table, one after the other."""

    def __init__(self, *looks):
        self.looks, self.asked = list(looks), []

    def look(self):
        found = self.looks[0][0]
        until, problem = (None, found) if isinstance(found, str) else (found, "")
        return LakeSnapshot((VIEW,), ()), (Completeness("bronze/orders", until, 60.0, problem=problem),)

    def late_rows(self, table, since, until_ms):
        self.asked.append((table, since, until_ms))
        return Counter(stamp - stamp % HOUR_MS for stamp in self.looks[0][1])


def ticks(*looks, days=None):
    """Partitions that each tick materializes, with their late rows; `days`: the first day by each tick's rule."""
    view = Looks(*looks)
    cursor, found = None, []
    while view.looks:
        day = days[len(found)] if days else "2026-11-01"
        sensor = complete_hours_sensor(group(topics=TOPICS.replace("2026-11-01", day)), lambda: view)
        tick = sensor.evaluate_tick(dg.build_sensor_context(cursor=cursor))
        cursor = tick.cursor
        found.append([(e.partition, dict(e.metadata)) for e in tick.asset_events])
        assert all(e.asset_key == KEY for e in tick.asset_events)
        view.looks.pop(0)
    return found, view.asked


def hour(number):
    return f"2026-11-01-{number:02}:00"


def test_each_hour_is_materialized_once_when_it_is_complete():
    almost = SINCE_MS + 3 * HOUR_MS - 1
    found, asked = ticks((SINCE_MS - 1, []), (almost, []), (almost + 1, []), (almost + 2, []))
    assert found == [[], [(hour(0), {}), (hour(1), {})], [(hour(2), {})], []]
    assert asked == [("bronze/orders", 1, SINCE_MS + n * HOUR_MS) for n in (0, 2, 3)]


def test_late_rows_materialize_their_hours_again_but_none_before_the_first_day():
    late = [SINCE_MS + 5, SINCE_MS + 6, SINCE_MS - 1]
    found, _ = ticks((SINCE_MS + HOUR_MS, []), (SINCE_MS + HOUR_MS, late))
    assert [[name for name, _ in each] for each in found] == [[hour(0)], [hour(0)]]
    assert found[1][0][1]["late_rows"].value == 2


def test_what_is_not_known_changes_nothing_and_is_said():
    view = Looks(("orders:0: deleted", []))
    tick = complete_hours_sensor(group(topics=TOPICS), lambda: view).evaluate_tick(dg.build_sensor_context())
    assert (tick.asset_events, tick.cursor) == ([], "{}")
    assert "orders:0: deleted" in tick.skip_message


def test_a_table_whose_late_rows_cannot_be_read_holds_up_no_other():
    both = TOPICS.replace("{topic: other}", "{topic: other, complete_hours: {since: 2026-11-01}}")

    class Broken(Looks):
        def look(self):
            other = replace(VIEW, topic="other", table="other")
            until = self.looks[0][0]
            return LakeSnapshot((VIEW, other), ()), tuple(
                Completeness(name, until, 60.0) for name in ("bronze/orders", "other")
            )

        def late_rows(self, table, since, until_ms):
            if table == "other":
                return super().late_rows(table, since, until_ms)
            raise FileNotFoundError("gone")

    view = Broken((SINCE_MS + HOUR_MS, []))
    sensor = complete_hours_sensor(group(topics=both), lambda: view)
    first = sensor.evaluate_tick(dg.build_sensor_context())
    assert len(first.asset_events) == 2
    view.looks = [(SINCE_MS + 2 * HOUR_MS, [])]
    second = sensor.evaluate_tick(dg.build_sensor_context(cursor=first.cursor))
    assert [e.asset_key.path[-1] for e in second.asset_events] == ["other_hours"]
    assert "orders: late rows: FileNotFoundError: gone" in second.skip_message


def test_side_tables_have_their_part_in_an_hour_and_one_that_is_new_is_late_as_a_whole():
    class Side(Looks):
        def look(self):
            side, versions = TableView("orders", "side", version=self.looks[0][2]), self.looks[0][0]
            until = {"bronze/orders": versions, "side": None if side.version is None else versions}
            view = replace(VIEW, sides=(side,))
            return LakeSnapshot((view,), ()), tuple(Completeness(name, at, 60.0) for name, at in until.items())

    until = SINCE_MS + HOUR_MS
    seen = {"until_ms": until, "since_ms": SINCE_MS, "positions": {"i": {"0": 5}}}
    old = json.dumps({KEY.to_user_string(): seen})
    view, cursor, found = Side((until, [], 7), (until, [SINCE_MS], 8), (until + HOUR_MS, [], None)), old, []
    for _ in range(3):
        sensor = complete_hours_sensor(group(topics=TOPICS), lambda: view)
        tick = sensor.evaluate_tick(dg.build_sensor_context(cursor=cursor))
        cursor = tick.cursor
        found.append([e.partition for e in tick.asset_events])
        view.looks.pop(0)
    assert found == [[], [hour(0)], []], "of a side table that is away nothing is known"
    assert view.asked == [("bronze/orders", 1, until), ("side", 7, until)], "not with the cursor of 0.1"


def test_hours_go_back_no_further_than_one_tick_can_record():
    (first, second), _ = ticks((SINCE_MS + 600 * HOUR_MS, []), (SINCE_MS + 600 * HOUR_MS, []))
    assert (len(first), len(second)) == (500, 100)


def test_a_first_day_that_changes_adds_the_hours_before_and_drops_those_that_are_none_any_more():
    until = SINCE_MS + 25 * HOUR_MS
    days = ["2026-11-02", "2026-11-01", "2026-11-01", "2026-11-04", "2026-11-04", "2026-10-01", "2026-10-01"]
    found, _ = ticks(*[(until, [])] * 4, (until + 72 * HOUR_MS, []), *[(until + 72 * HOUR_MS, [])] * 2, days=days)
    assert [len(each) for each in found] == [1, 24, 0, 0, 25, 500, 316]
    assert [each[0][0] for each in found if each] == [
        "2026-11-02-00:00",
        "2026-11-01-00:00",
        "2026-11-04-00:00",
        "2026-10-14-04:00",
        "2026-10-01-00:00",
    ]
    of_the_future, _ = ticks(*[(until, [])] * 2, days=["2026-12-01", "2026-11-01"])
    assert [len(each) for each in of_the_future] == [0, 25]


def test_only_rules_that_ask_for_hours_have_any():
    ours = group(topics=TOPICS)
    (spec,) = hours_assets(ours)
    assert spec.key == KEY
    assert spec.partitions_def == dg.HourlyPartitionsDefinition("2026-11-01-00:00", timezone="UTC")
    assert hours_assets(group()) == []
    named = SimpleNamespace(**{s.name: s for s in build_defs(groups=[ours]).sensors or ()})
    assert named.complete_hours_sensor
    assert "complete_hours_sensor" not in {s.name for s in build_defs(groups=[group()]).sensors or ()}
