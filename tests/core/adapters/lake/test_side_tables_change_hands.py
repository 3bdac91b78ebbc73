"""Side tables that change hands with their own table: what the old side has in flight is refused there, too."""

import pytest

from kgs_core.adapters.lake import adoption, migration
from kgs_core.adapters.lake.audit import audit_lake
from kgs_core.config import parse_settings
from kgs_core.errors import UnsafeError
from kgs_core.ports import CommitOutcome
from tests.core.adapters.lake.test_adoption import MemoryKafka, put_kafka
from tests.layout_sink import LayoutSink

ROUTE = {"column": "s", "tables": {"a": "side/a", "b": "side/b"}}
LOG = {p: [{"s": "abc"[n % 3]} for n in range(18)] for p in (0, 1)}
TEXT = """
group: {group}
kafka: {{bootstrap_servers: "127.0.0.1:9"}}
lake: {{root: {root}, checkpoint_interval: 5}}
topics: [{{topic: t, table: t, format: json, schema: {{s: string}}, route: {{column: s, tables: {tables}}}}}]
"""


class KilledError(BaseException):
    """In the place of the end of the process."""


def settings_of(folder, group="h", tables="{a: side/a, b: side/b}"):
    return parse_settings(TEXT.format(group=group, root=folder, tables=tables).encode(), "kgs.yaml", {})


def adopt(settings):
    adopting = adoption.GroupAdoption(settings, "g")
    pending = adopting.pending(())
    for each in pending:
        adopting.carry_out(each)
    return [each.table for each in pending]


@pytest.fixture
def kafka(monkeypatch):
    found = MemoryKafka(end=100)
    put_kafka(monkeypatch, found)
    return found


@pytest.mark.parametrize("killed_after", [None, 1, 2])
def test_another_group_takes_all_tables_over(tmp_path, monkeypatch, kafka, killed_after):
    """Killed after so many of them, and run again. One of them is the side table of an earlier route."""
    old = LayoutSink(tmp_path, LOG, schema={"s": "string"}, route=ROUTE).started()
    held = old.read(18)
    assert old.table.commit(old.read(6)) is CommitOutcome.COMMITTED
    left = [killed_after]

    def failpoint(_):
        if left[0] is not None:
            left[0] -= 1
            if left[0] == 0:
                raise KilledError

    monkeypatch.setattr(adoption, "failpoint", failpoint)
    later = settings_of(tmp_path, tables="{a: side/a}")
    if killed_after:
        with pytest.raises(KilledError):
            adopt(later)
        left[0] = None
    done = adopt(later)
    assert {"side/a", "side/b", "t"} >= {*done}
    assert killed_after or done == ["side/a", "side/b", "t"]
    assert old.table.commit(held) is CommitOutcome.REFUSED
    with pytest.raises(UnsafeError, match="handed over"):
        old.read(1)
    new = LayoutSink(tmp_path, LOG, group="h", schema={"s": "string"}, route=ROUTE).started()
    new.drain(most=5)
    for value, table in (("a", "side/a"), ("b", "side/b"), ("c", "t")):
        wanted = [(p, n) for p in LOG for n in range(18) if LOG[p][n]["s"] == value]
        assert [(row["_partition"], row["_offset"]) for row in new.rows(table)] == wanted
    assert audit_lake(settings_of(tmp_path), with_log=False).ok


def test_a_topic_that_has_moved_begins_a_new_life_in_all_tables(tmp_path, kafka):
    old = LayoutSink(tmp_path, LOG, schema={"s": "string"}, route=ROUTE).started()
    old.table.commit(old.read(6))
    held = old.read(3)
    moved = MemoryKafka(topic_id="id2", end=100)
    kafka.found = moved.found
    move = migration.Migration(settings_of(tmp_path, "g"))
    move.carry_out(move.plan("t", {}, keep=True))
    assert old.table.commit(held) is CommitOutcome.REFUSED
    new = LayoutSink(tmp_path, LOG, topic_id="id2", schema={"s": "string"}, route=ROUTE).started()
    new.drain(most=5)
    assert audit_lake(settings_of(tmp_path, "g"), with_log=False).ok
    assert len(new.rows("side/a")) == 12
