"""A topic whose route leads into side tables: what is committed first, what is dropped, what a route may become."""

import time
from collections import Counter

import pytest

from kgs_core.errors import UnsafeError
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.lake.delta import combined_commit
from kgs_core.lake.rule import Fault
from kgs_core.ports import CommitOutcome
from tests.failpoints import KilledError
from tests.kgs_yaml import kgs_yaml
from tests.layout_sink import COLUMNS, LayoutSink

ROUTE = {"column": "s", "tables": {"a": "side/a", "b": "side/b"}}
OTHER = {"column": "s", "tables": {"a": "side/b", "c": "side/c"}}
VALUES = ("a", "b", "c", None)
POINTS = (
    *("after-dead-letter-commit", "after-side-commit", "before-commit", "after-commit"),
    *("route-claimed", "side-fenced"),
)


class Clock:
    """Real, but a sleep is over at once: nobody else works meanwhile, so only patience ends an owner's wait."""

    time = staticmethod(time.time)  # noqa: TID251 - files have ages

    def __init__(self):
        self._slept_s = 0.0

    def monotonic(self):
        return time.monotonic() + self._slept_s

    def sleep(self, seconds):
        self._slept_s += seconds


def log_of(records=28, partitions=2):
    """Values in turn; every seventh is bad."""

    def record(p, n):
        return {"s": VALUES[(n + p) % 4], "i": "bad" if n % 7 == 6 else n}

    return {p: [record(p, n) for n in range(records)] for p in range(partitions)}


def ruled(route):
    return {} if route is None else {"route": route}


def audited(sink, route=ROUTE):
    rule = {"format": "json", "schema": COLUMNS, **ruled(route)}
    return audit_lake(kgs_yaml(sink.storage.root, rule), with_log=False).tables[0]


def places(sink, table):
    return Counter((row["_partition"], row["_offset"]) for row in sink.rows(table))


def expected(log, route=ROUTE, *, below=None):
    """Own table and side tables -> places of their rows."""
    tables = {} if route is None else route["tables"]
    found = {"t": Counter(), **{table: Counter() for table in tables.values()}}
    for p, records in log.items():
        for n, record in enumerate(records):
            if record["i"] != "bad" and (below is None or n < below.get(p, 0)):
                found[tables.get(record["s"], "t")][p, n] += 1
    return found


def assert_exact(sink, log, route=ROUTE):
    wanted = expected(log, route)
    assert {table: places(sink, table) for table in wanted} == wanted
    table = audited(sink, route)
    assert table.ok, [str(f) for p in table.partitions for f in p.findings]
    assert table.rows == sum(sum(each.values()) for each in wanted.values())


@pytest.fixture
def killer(killer, monkeypatch):
    """Whoever waits for another one waits no longer than it must."""
    monkeypatch.setattr(combined_commit, "time", Clock())
    return killer


def test_rows_go_by_their_value_and_all_others_into_the_own_table(tmp_path):
    log = log_of()
    sink = LayoutSink(tmp_path, log, route=ROUTE).started()
    batches = sink.drain(most=9)
    assert_exact(sink, log)
    (batch,) = LayoutSink(tmp_path / "b", {0: [{"s": "a"}] * 5}, route=ROUTE).started().drain()
    assert (batch.files, list(batch.sides)) == ([], ["side/a"])
    assert {table for batch in batches for table in batch.sides} == {"side/a", "side/b"}


@pytest.mark.parametrize(
    ("point", "times", "commit"),
    [*((point, 1, "direct") for point in POINTS), *(("after-side-commit", n, "combined") for n in (1, 2))],
)
def test_killed_at_each_write_and_read_again_in_another_split(tmp_path, killer, point, times, commit):
    log = log_of()

    def sink():
        return LayoutSink(tmp_path, log, commit=commit, route=ROUTE)

    killer[point] = times
    first = sink().started()
    with pytest.raises(KilledError):
        first.drain(most=11)
    sink().drain(most=5)
    assert_exact(sink(), log)


def test_another_route_is_refused_while_a_side_table_is_ahead(tmp_path, killer):
    log = log_of()
    killer["after-side-commit"] = 1
    with pytest.raises(KilledError):
        LayoutSink(tmp_path, log, route=ROUTE).started().drain(most=11)
    for route in ({"route": OTHER}, {}):
        changed = LayoutSink(tmp_path, log, **route)
        changed.table.open()
        with pytest.raises(
            UnsafeError, match=r"table side/a: has rows of t:0 up to 11 by another route, and t stands at 0"
        ):
            changed.read()
    assert audited(changed).ok  # what lies ahead is no fault
    LayoutSink(tmp_path, log, route=ROUTE).drain()
    assert_exact(changed, log)


@pytest.mark.parametrize("later", [OTHER, None])
def test_another_route_while_all_tables_are_level(tmp_path, later):
    """The audit goes on knowing rows of the route before; going back is one more change."""
    log = log_of(14)
    LayoutSink(tmp_path, log, route=ROUTE).started().drain()
    more = log_of(28)
    changed = LayoutSink(tmp_path, more, **ruled(later)).started()
    changed.drain(most=7)
    before = expected(log)
    after = expected({p: records[14:] for p, records in more.items()}, later)
    for table in {*before, *after}:
        moved = Counter({(p, n + 14): 1 for p, n in after.get(table, ())})
        assert places(changed, table) == before.get(table, Counter()) + moved
    assert audited(changed, later).ok
    back = LayoutSink(tmp_path, log_of(35), route=ROUTE).started()
    back.drain(most=7)
    assert audited(back).ok
    assert audited(back).rows + audited(back).dead_letters == 70


@pytest.mark.parametrize(("before", "later"), [(ROUTE, OTHER), (ROUTE, None), (None, ROUTE)])
def test_an_owner_by_the_route_of_before_that_wakes_up_late_is_refused_in_every_table(tmp_path, before, later):
    """Its batch, made before the change, has rows that the new owner has put elsewhere."""
    log = log_of()
    old = LayoutSink(tmp_path, log, **ruled(before)).started()
    held = old.read(20)
    new = LayoutSink(tmp_path, log, **ruled(later)).started()
    new.read(3)
    assert old.table.commit(held) is CommitOutcome.REFUSED
    new.drain(most=6)
    assert old.table.commit(held) is CommitOutcome.REFUSED
    assert_exact(new, log, later)
    assert before is None or not places(new, "side/a")


@pytest.mark.parametrize("point", ["route-claimed", "side-fenced"])
def test_a_change_of_route_that_was_killed_is_gone_on_with(tmp_path, killer, point):
    log = log_of()
    LayoutSink(tmp_path, {p: records[:14] for p, records in log.items()}, route=ROUTE).started().drain()
    killer[point] = 1
    with pytest.raises(KilledError):
        LayoutSink(tmp_path, log, route=OTHER).started().drain()
    sink = LayoutSink(tmp_path, log, route=OTHER)
    sink.drain(most=6)
    found = audited(sink, OTHER)
    assert found.ok
    assert found.rows + found.dead_letters == 56


def test_side_tables_that_are_others_are_refused_before_anything_is_written(tmp_path):
    own = LayoutSink(tmp_path, log_of(), table="side/a").started()
    sink = LayoutSink(tmp_path, log_of(), route=ROUTE).started()
    with pytest.raises(UnsafeError, match="table side/a: is, or was, the own table of topic t"):
        sink.read()
    with pytest.raises(UnsafeError, match="table side/a: group g fills it"):
        LayoutSink(tmp_path, log_of(), group="h", route=ROUTE, table="u").started().read()
    assert own.rows("side/a") == []


def test_a_route_beside_another_own_table_needs_other_side_tables(tmp_path):
    log = log_of()
    LayoutSink(tmp_path, log, route=ROUTE).started().drain()
    moved = LayoutSink(tmp_path, log, route=ROUTE, table="u").started()
    with pytest.raises(UnsafeError, match="table side/a: has rows that a route put beside another table than u"):
        moved.read()


def test_the_audit_finds_what_is_lost_or_doubled_in_a_side_table(tmp_path):
    log = {0: [{"s": "a"}, {"s": "x"}, {"s": "b"}, {"s": "a"}, {"s": "a"}]}
    sink = LayoutSink(tmp_path, log, route=ROUTE).started()
    held = sink.read(2)
    sink.drain(most=2)
    assert audited(sink).ok
    sink.table._sides.tables["side/a"].commit({}, {}, held.sides["side/a"].files)
    found = audited(sink)
    assert (found.rows, found.count(Fault.DOUBLED), found.count(Fault.LOST)) == (6, 1, 0)
    position = sink.ids.position(0)
    sink.table._rows.commit({position: 5}, {position: 9}, ())
    assert audited(sink).count(Fault.LOST) == 4


def test_columns_that_are_added_come_into_every_table(tmp_path):
    """One of the side tables is new in the same moment."""
    log = {0: [{"s": each, "i": 7} for each in "abcb"]}
    before = {"column": "s", "tables": {"a": "side/a"}}
    narrow = LayoutSink(tmp_path, {0: log[0][:2]}, schema={"s": "string"}, route=before).started()
    narrow.drain()
    wide = LayoutSink(tmp_path, log, schema={"s": "string", "i": "int"}, evolve="add_columns", route=ROUTE).started()
    wide.drain()
    assert [row["i"] for row in wide.rows()] == [None, 7]
    assert [row["i"] for row in wide.rows("side/a")] == [None]
    assert [row["i"] for row in wide.rows("side/b")] == [7]
    with pytest.raises(UnsafeError, match="table t: its columns are not the configured ones"):
        LayoutSink(tmp_path, log, schema={"s": "string", "more": "int"}, route=ROUTE).started()
