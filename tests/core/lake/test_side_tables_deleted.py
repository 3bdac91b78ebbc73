"""Side tables that somebody deletes or moves: never made again without the rows that they had."""

import shutil
from pathlib import Path

import pytest

from kgs_core.errors import PortError, UnsafeError
from tests.core.lake.test_side_tables import ROUTE, KilledError, assert_exact, killer, log_of, places  # noqa: F401
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


def test_one_that_nothing_was_committed_beside_is_made_again(tmp_path, killer):  # noqa: F811
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
