"""Side tables that have nothing in their logs yet: whoever claimed them and sleeps is refused there, too."""

import pytest

from kgs_core.errors import UnsafeError
from kgs_core.lake.topics import side_tables
from kgs_core.ports import CommitOutcome
from tests.core.lake import test_side_tables_change_hands as change_hands
from tests.core.lake.test_adoption import MemoryKafka, put_kafka
from tests.core.lake.test_side_tables import ROUTE, audited, expected, places
from tests.layout_sink import LayoutSink


@pytest.fixture
def meanwhile(monkeypatch):
    """What others do, once, while an owner stands between its claim and its first mark in a side table."""
    others = []

    def failpoint(name, *_):
        if name == "route-claimed" and others:
            others.pop()()

    monkeypatch.setattr(side_tables, "failpoint", failpoint)
    return others


@pytest.mark.parametrize("later", [{"column": "s", "tables": {"c": "side/c"}}, None])
def test_an_owner_that_slept_before_its_first_mark_writes_nothing_by_its_old_route(tmp_path, meanwhile, later):
    log = {0: [{"s": "abc"[n % 3], "i": n} for n in range(28)]}  # none is bad: a dead letter would refuse it, too
    new = LayoutSink(tmp_path, log, **({} if later is None else {"route": later}))
    old = LayoutSink(tmp_path, log, route=ROUTE).started()
    meanwhile.append(lambda: new.started().drain())
    held = old.read(20)
    assert old.table.commit(held) is CommitOutcome.REFUSED
    wanted = expected(log, later)
    assert {table: places(new, table) for table in wanted} == wanted
    assert not places(new, "side/a")
    assert audited(new, later).ok


def test_an_owner_that_slept_before_its_first_mark_writes_nothing_under_its_old_group(tmp_path, monkeypatch, meanwhile):
    put_kafka(monkeypatch, MemoryKafka(end=100))
    log, settings = change_hands.LOG, change_hands.settings_of(tmp_path)
    old = LayoutSink(tmp_path, log, schema={"s": "string"}, route=ROUTE).started()
    meanwhile.append(lambda: change_hands.adopt(settings))
    with pytest.raises(UnsafeError, match="handed over"):
        old.read(18)
    new = LayoutSink(tmp_path, log, group="h", schema={"s": "string"}, route=ROUTE).started()
    new.drain(most=5)
    assert sum(places(new, "side/a").values()) == 12
