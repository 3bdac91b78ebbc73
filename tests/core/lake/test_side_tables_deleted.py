"""Side tables that are deleted or moved, whose logs have nothing yet, or that do not take a column."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from kgs_core.config import TableSpec, TopicRule
from kgs_core.config.settings import LakeSettings
from kgs_core.errors import PortError, TransientError, UnsafeError
from kgs_core.lake.rule.positions import AppIds
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.topic_table import TopicTable
from kgs_core.model import TopicId
from kgs_core.ports import CommitOutcome
from tests.core.lake.changing_hands import adopting, carry_out
from tests.core.lake.test_adoption_routes import LOG, settings_of
from tests.core.lake.test_side_tables import ROUTE, assert_exact, audited, expected, log_of, places
from tests.failpoints import KilledError
from tests.layout_sink import LayoutSink

ELSEWHERE = {"column": "s", "tables": {"a": "side/new", "b": "side/b"}}


@pytest.mark.parametrize("evolve", ["none", "add_columns"])
def test_one_in_use_is_not_made_again_and_may_come_back(tmp_path, evolve):
    log = log_of()
    sink = LayoutSink(tmp_path, log, route=ROUTE, evolve=evolve).started()
    assert sink.table.commit(sink.read(9)).name == "COMMITTED"
    away = shutil.move(tmp_path / "side/a", tmp_path / "away")
    again = LayoutSink(tmp_path, log, route=ROUTE, evolve=evolve)
    with pytest.raises(UnsafeError, match=r"^table side/a: not there: it was moved or deleted, with rows of the route"):
        again.table.open()
    for other in ({"topic_id": "id2"}, {"group": "h"}):  # the topic made again, and a group that has adopted it
        with pytest.raises(UnsafeError, match="not there: it was moved or deleted"):
            LayoutSink(tmp_path, log, route=ROUTE, evolve=evolve, **other).table.open()
    assert not (tmp_path / "side/a").exists()
    shutil.move(away, tmp_path / "side/a")
    again.table.open()
    again.drain(most=9)
    assert_exact(again, log)


def test_another_table_gets_the_rows_from_then_on(tmp_path):
    log = log_of()
    sink = LayoutSink(tmp_path, log, route=ROUTE).started()
    held = sink.read(9)
    assert sink.table.commit(held).name == "COMMITTED"
    shutil.rmtree(tmp_path / "side/a")
    other = LayoutSink(tmp_path, log, route=ELSEWHERE).started()
    other.drain(most=9)
    ends = {p: r.end for p, r in held.ranges.items()}
    assert sorted(places(other, "side/new")) == sorted(
        (p, n) for p, rows in log.items() for n, row in enumerate(rows)
        if row["s"] == "a" and row["i"] != "bad" and n >= ends[p]
    )  # fmt: skip


@pytest.mark.parametrize("is_taken_up", [True, False], ids=["was taken up before", "is new"])
def test_one_of_an_earlier_route_whose_log_is_broken_may_be_moved_away(tmp_path, is_taken_up):
    """Not passed over: whether it is ahead cannot be told, nor can an owner by its route be kept from it."""
    log = log_of()
    LayoutSink(tmp_path, log, route=ROUTE).started().drain(most=9)
    if is_taken_up:
        LayoutSink(tmp_path, log, route=ELSEWHERE).started().drain(most=9)
    (tmp_path / "side/a/_delta_log" / f"{1:020}.json").unlink()
    words = r"^table side/a: .*: an earlier route of topic t leads there: .* move its folder away"
    with pytest.raises(PortError, match=words):
        LayoutSink(tmp_path, log, route=ELSEWHERE).started().drain(most=9)
    with pytest.raises(PortError, match=r"^table side/a: ") as without:
        LayoutSink(tmp_path, log, route=ROUTE).started().drain(most=9)
    assert "earlier route" not in str(without.value)
    shutil.move(tmp_path / "side/a", tmp_path / "away")
    LayoutSink(tmp_path, log, route=ELSEWHERE).started().drain(most=9)


def test_one_that_nothing_was_committed_beside_is_made_again(tmp_path, killer):
    """What it had was ahead of the own table, and is read again."""
    log = log_of()
    sink = LayoutSink(tmp_path, log, route=ROUTE).started()
    killer["after-side-commit"] = 2
    with pytest.raises(KilledError):
        sink.drain(most=9)
    assert places(sink, "side/a")
    shutil.rmtree(tmp_path / "side/a")
    again = LayoutSink(tmp_path, log, route=ROUTE).started()
    again.drain(most=9)
    assert_exact(again, log)


def test_the_note_is_made_once(tmp_path):
    log = log_of()
    sink = LayoutSink(tmp_path, log, route=ROUTE).started()
    sink.drain(most=9)
    entries = [path.read_text() for path in sorted(Path(tmp_path, "t/_delta_log").glob("*.json"))]
    noting = [entry for entry in entries if '"version":2' in entry.replace(" ", "") and "/side/" in entry]
    assert len(noting) == 1


@pytest.mark.parametrize("later", [{"column": "s", "tables": {"c": "side/c"}}, None])
def test_an_owner_that_slept_before_its_first_mark_writes_nothing_by_its_old_route(tmp_path, killer, later):
    log = {0: [{"s": "abc"[n % 3], "i": n} for n in range(28)]}  # none is bad: a dead letter would refuse it, too
    new = LayoutSink(tmp_path, log, **({} if later is None else {"route": later}))
    old = LayoutSink(tmp_path, log, route=ROUTE).started()
    killer["route-claimed"] = lambda: new.started().drain()
    held = old.read(20)
    assert old.table.commit(held) is CommitOutcome.REFUSED
    wanted = expected(log, later)
    assert {table: places(new, table) for table in wanted} == wanted
    assert not places(new, "side/a")
    assert audited(new, later).ok


def test_an_owner_that_slept_before_its_first_mark_writes_nothing_under_its_old_group(tmp_path, memory_kafka, killer):
    log, settings = LOG, settings_of(tmp_path)
    old = LayoutSink(tmp_path, log, schema={"s": "string"}, route=ROUTE).started()
    killer["route-claimed"] = lambda: carry_out(*adopting(settings))
    with pytest.raises(UnsafeError, match="handed over"):
        old.read(18)
    new = LayoutSink(tmp_path, log, group="h", schema={"s": "string"}, route=ROUTE).started()
    new.drain(most=5)
    assert sum(places(new, "side/a").values()) == 12


def test_a_side_table_that_does_not_take_a_column_is_asked_again(tmp_path, monkeypatch):
    """Until it has, no file has the column: compaction would take it out of the rows for good."""
    rule = TopicRule.model_validate({"topic": "t", "format": "avro", "evolve": "add_columns", "route": ROUTE})
    lake = open_lake(LakeSettings(root=str(tmp_path)), "7")
    ids, spec = AppIds("g", "t", TopicId("id1")), TableSpec("t", "t", "t_dead_letters", rule)
    columns = pa.schema([("s", pa.string())])
    table = TopicTable(lake, spec, ids, columns, columns)
    table.open()
    before, ask = (table.columns, table.schema), lake.columns

    def columns_of(name, *args):
        if name == "side/b":
            raise TransientError("no answer")
        return ask(name, *args)

    monkeypatch.setattr(lake, "columns", columns_of)
    more = pa.schema([("more", pa.int64())])  # as a consumer asks for them: without those that are there
    with pytest.raises(TransientError, match="no answer"):
        table.add_columns(more)
    assert (table.columns, table.schema) == before
    monkeypatch.setattr(lake, "columns", ask)
    table.add_columns(more)
    for name in ("t", "side/a", "side/b"):
        assert "more" in lake.open(name).schema.names
    assert "more" in table.columns.names
