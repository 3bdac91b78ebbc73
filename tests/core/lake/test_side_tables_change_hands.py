"""Side tables that change hands with their own table: what the old side has in flight is refused there, too."""

import json

import pyarrow as pa
import pytest

from kgs_core.config import Settings, parse_settings
from kgs_core.errors import UnsafeError
from kgs_core.ingest.replay.redrive import Redrive
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.lake.handover import adoption, migration
from kgs_core.lake.topics import side_tables, topic_table
from kgs_core.ports import CommitOutcome
from tests.core.lake.test_adoption import MemoryKafka, put_kafka
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
    assert {"t_dead_letters", "side/a", "side/b", "t"} >= {*done}
    assert killed_after or done == ["t_dead_letters", "side/a", "side/b", "t"]
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


def mended(rows, _topic):
    """Rows of raw values -> those of the table; an `s` that is a number becomes the text of side table a."""
    values = [json.loads(value)["s"] if value else None for value in rows["value"].to_pylist()]
    texts = ["a" if isinstance(value, int) else value for value in values]
    return rows.drop_columns(["value"]).append_column("s", pa.array(texts, pa.string()))


def redriving(folder, group):
    """Settings by whose transform the letter of `WITH_LETTER` is a row of side table a."""
    found = settings_of(folder, group).model_dump(mode="json", by_alias=True)
    found["topics"] = [{"topic": "t", "table": "t", "route": ROUTE, "transform_arrow": f"{__name__}:mended"}]
    return Settings.model_validate(found)


WITH_LETTER = {0: [{"s": 7 if n == 4 else "abc"[n % 3]} for n in range(12)]}


def test_nothing_is_redriven_while_a_side_table_has_changed_hands_alone(tmp_path, kafka):
    """What would be noted there under the old name, no audit of the heir would know."""
    LayoutSink(tmp_path, WITH_LETTER, schema={"s": "string"}, route=ROUTE).started().drain()
    adopting = adoption.GroupAdoption(redriving(tmp_path, "h"), "g")
    *beside, own = adopting.pending(())
    for each in beside:
        adopting.carry_out(each)
    with pytest.raises(UnsafeError, match=r"table .*: group g has handed it over \(kgs adopt\)"):
        Redrive(redriving(tmp_path, "g"), "t").run()
    adopting.carry_out(own)
    assert Redrive(redriving(tmp_path, "h"), "t").run().passed == 1
    assert audit_lake(redriving(tmp_path, "h"), with_log=False).ok


def test_nothing_is_redriven_while_side_tables_alone_know_that_a_topic_has_moved(tmp_path, monkeypatch, kafka):
    LayoutSink(tmp_path, WITH_LETTER, schema={"s": "string"}, route=ROUTE).started().drain()
    kafka.found = MemoryKafka(topic_id="id2", end=100).found
    left = [2]  # dead letters and side table a

    def failpoint(_):
        left[0] -= 1
        if left[0] == 0:
            raise KilledError

    monkeypatch.setattr(migration, "failpoint", failpoint)
    moving = migration.Migration(redriving(tmp_path, "g"))
    with pytest.raises(KilledError):
        moving.carry_out(moving.plan("t", {}, keep=True))
    with pytest.raises(UnsafeError, match="table side/a: has changed hands, and its topic's own table has not yet"):
        Redrive(redriving(tmp_path, "g"), "t").run()
    moving.carry_out(moving.plan("t", {}, keep=True))
    assert Redrive(redriving(tmp_path, "g"), "t").run().passed == 1
    assert audit_lake(redriving(tmp_path, "g"), with_log=False).ok


@pytest.mark.parametrize("point", ["after-dead-letter-commit", "after-side-commit"])
def test_a_topic_moves_only_where_no_table_is_ahead(tmp_path, monkeypatch, kafka, point):
    """What a killed consumer left there would be there again under the new id, where a person does not say so."""
    log = {0: [{"s": 7 if n == 7 else "abc"[n % 3]} for n in range(12)]}
    old = LayoutSink(tmp_path, log, schema={"s": "string"}, route=ROUTE).started()
    old.table.commit(old.read(6))

    def killed(name):
        if name == point:
            raise KilledError

    for module in (topic_table, side_tables):
        monkeypatch.setattr(module, "failpoint", killed)
    with pytest.raises(KilledError):
        old.table.commit(old.read(3))
    kafka.found = MemoryKafka(topic_id="id2", partitions=1).found
    moving = migration.Migration(settings_of(tmp_path, "g"))
    with pytest.raises(UnsafeError, match=r"has t:0 up to 9, and table t only to 6, .* give --offset t:0=OFFSET"):
        moving.plan("t", {}, keep=True)
    assert moving.plan("t", {0: 6}, keep=True).offsets == {0: 6}
    monkeypatch.setattr(topic_table, "failpoint", lambda _: None)
    monkeypatch.setattr(side_tables, "failpoint", lambda _: None)
    plan = moving.plan("t", {0: 6})
    LayoutSink(tmp_path, log, schema={"s": "string"}, route=ROUTE).drain()
    with pytest.raises(UnsafeError, match="somebody commits to it under the old topic id"):
        moving.carry_out(plan)
    moving.carry_out(moving.plan("t", {}, keep=True))
    new = LayoutSink(tmp_path, log, topic_id="id2", schema={"s": "string"}, route=ROUTE).started()
    assert new.read() is None
