"""Routes that begin while tables change hands, and side tables of other topics: no row of theirs comes twice."""

import shutil

import pytest

from kgs_core.config import parse_settings
from kgs_core.errors import UnsafeError
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.lake.delta.delta_log import load_transactions
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.handover import adoption, migration
from kgs_core.lake.rule.positions import CLOSED
from tests.core.lake.test_adoption import MemoryKafka, put_kafka
from tests.core.lake.test_side_tables_change_hands import LOG, ROUTE, settings_of
from tests.layout_sink import LayoutSink


@pytest.fixture
def kafka(monkeypatch):
    found = MemoryKafka(end=100)
    put_kafka(monkeypatch, found)
    return found


def sink(folder, group="g", **rule):
    return LayoutSink(folder, LOG, group=group, schema={"s": "string"}, **rule)


def killed_ahead(folder, **rule):
    """A consumer of the old name begins its first route, and is killed when the side tables have its batch."""
    found = sink(folder, **{"route": ROUTE, **rule}).started()
    found.table._sides.commit(found.read(6), {})
    assert found.rows(found.spec.side_tables["a"])


def places_of(value):
    return [(p, n) for p in LOG for n in range(18) if LOG[p][n]["s"] == value]


def assert_exact(folder, group):
    heir = sink(folder, group, route=ROUTE).started()
    heir.drain(most=5)
    for value, table in (("a", "side/a"), ("b", "side/b"), ("c", "t")):
        rows = [(row["_partition"], row["_offset"]) for row in heir.rows(table)]
        assert rows == places_of(value)
    assert audit_lake(settings_of(folder, group), with_log=False).ok


@pytest.mark.parametrize(
    "is_late", [False, True], ids=["before the tables move", "when their logs have been looked at"]
)
def test_a_first_route_that_begins_meanwhile_moves_with_its_side_tables(tmp_path, monkeypatch, kafka, is_late):
    sink(tmp_path).started()
    adopting = adoption.GroupAdoption(settings_of(tmp_path), "g")
    pending = adopting.pending(())
    assert [each.table for each in pending] == ["t_dead_letters", "t"]
    found, due = adoption.hand_over, [killed_ahead]

    def hand_over(*given):
        if due:
            due.pop()(tmp_path)
        return found(*given)

    if not is_late:
        due.pop()(tmp_path)
    monkeypatch.setattr(adoption, "hand_over", hand_over)
    adopting.carry_out(pending[1])
    assert_exact(tmp_path, "h")


def test_what_was_begun_can_be_taken_back_also_of_a_side_table_that_only_an_earlier_route_names(tmp_path, kafka):
    """The tables beside that of the rows have changed hands, and then the other name is not wanted any more."""
    sink(tmp_path, route=ROUTE).started().drain()
    adopting = adoption.GroupAdoption(settings_of(tmp_path, "h", "{a: side/a}"), "g")
    for each in adopting.pending(())[:-1]:
        adopting.carry_out(each)
    back = adoption.GroupAdoption(settings_of(tmp_path, "g", "{a: side/a}"), "h")
    for each in back.pending(()):
        back.carry_out(each)
    assert_exact(tmp_path, "g")


def test_a_side_table_that_was_away_meanwhile_is_moved_when_it_is_back(tmp_path, kafka):
    killed_ahead(tmp_path)
    away = shutil.move(tmp_path / "side/a", tmp_path / "away")
    adopting = adoption.GroupAdoption(settings_of(tmp_path), "g")
    for each in adopting.pending(()):
        adopting.carry_out(each)
    shutil.move(away, tmp_path / "side/a")
    with pytest.raises(UnsafeError, match=r"table side/a: group g fills it .* kgs adopt --from-group g"):
        sink(tmp_path, "h", route=ROUTE).started().read()
    (back,) = adopting.pending(())
    adopting.carry_out(back)
    assert_exact(tmp_path, "h")


def claimed(folder):
    """A consumer of the old topic begins its first route, and has committed nothing by it."""
    sink(folder, route=ROUTE).started().read(6)


@pytest.mark.parametrize("begin", [claimed, killed_ahead])
def test_a_route_that_begins_under_the_old_topic_id_moves_with_its_side_tables(tmp_path, monkeypatch, kafka, begin):
    """Unless it has rows there that its own table does not know of: by the new id nobody would know them either."""
    sink(tmp_path).started()
    kafka.found = MemoryKafka("id2").found
    moving = migration.Migration(settings_of(tmp_path, "g", "{c: side/c}"))
    plan, due = moving.plan("t", {}, keep=True), [begin]
    found = migration.close_life

    def close_life(*given):
        if due:
            due.pop()(tmp_path)
        return found(*given)

    monkeypatch.setattr(migration, "close_life", close_life)
    if begin is killed_ahead:
        with pytest.raises(UnsafeError, match=r"table side/a: has t:0 up to 6, and table t only to 0"):
            moving.carry_out(plan)
    else:
        moving.carry_out(plan)
    for table, is_moved in (("side/a", begin is claimed), ("t", begin is claimed)):
        stored = load_transactions(Storage(str(tmp_path)), table)
        assert [stored[f"g/t@id1/{p}"] == CLOSED for p in (0, 1)] == [is_moved] * 2


SHARED = """
group: {group}
kafka: {{bootstrap_servers: "127.0.0.1:9"}}
lake: {{root: {root}, checkpoint_interval: 5}}
topics:
  - pattern: "[tu]"
    table: t
    format: json
    schema: {{s: string}}
    route: {{column: s, tables: {{a: "side/{{topic}}"}}}}
"""


def test_a_table_of_several_topics_moves_with_the_side_tables_of_all_whichever_was_named(tmp_path, kafka):
    kafka.list_topics = lambda: ["t", "u"]
    route = {"column": "s", "tables": {"a": "side/u"}}
    of_u = {"topic": "u", "topic_id": "id2", "table": "t", "route": route}
    sink(tmp_path, route={"column": "s", "tables": {"a": "side/t"}}).started()
    killed_ahead(tmp_path, **of_u)
    adopting = adoption.GroupAdoption(parse_settings(SHARED.format(group="h", root=tmp_path).encode(), "k", {}), "g")
    pending = adopting.pending(["t"])
    assert {each.table for each in pending} == {"t", "t_dead_letters", "side/t", "side/u"}
    for each in pending:
        adopting.carry_out(each)
    heir = sink(tmp_path, "h", **of_u).started()
    heir.drain(most=5)
    assert [(row["_partition"], row["_offset"]) for row in heir.rows("side/u")] == places_of("a")
