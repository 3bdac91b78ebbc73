"""Side tables that change hands, and routes that begin meanwhile: what the old side has in flight is refused, too."""

import json
import shutil

import pyarrow as pa
import pytest

from kgs_core.errors import UnsafeError
from kgs_core.ingest.replay.redrive import Redrive
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.lake.delta.delta_log import load_transactions
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.handover import adoption, migration
from kgs_core.lake.rule.positions import CLOSED
from kgs_core.ports import CommitOutcome
from tests.core.lake.changing_hands import MemoryKafka, adopting, carry_out, planned
from tests.core.lake.test_side_tables import ROUTE
from tests.failpoints import KilledError
from tests.kgs_yaml import kgs_yaml
from tests.layout_sink import LayoutSink
from tests.meanwhile import before

pytestmark = pytest.mark.usefixtures("memory_kafka")
LOG = {p: [{"s": "abc"[n % 3]} for n in range(18)] for p in (0, 1)}


def settings_of(folder, group="h", tables=ROUTE["tables"]):
    rule = {"format": "json", "schema": {"s": "string"}, "route": {"column": "s", "tables": tables}}
    return kgs_yaml(folder, rule, group=group)


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
def test_a_first_route_that_begins_meanwhile_moves_with_its_side_tables(tmp_path, monkeypatch, is_late):
    sink(tmp_path).started()
    found, (letters, rows) = adopting(settings_of(tmp_path))
    assert (letters.table, rows.table) == ("t_dead_letters", "t")
    if is_late:
        before(monkeypatch, adoption, "hand_over", lambda: killed_ahead(tmp_path))
    else:
        killed_ahead(tmp_path)
    found.carry_out(rows)
    assert_exact(tmp_path, "h")


def test_what_was_begun_can_be_taken_back_also_of_a_side_table_that_only_an_earlier_route_names(tmp_path):
    """The tables beside that of the rows have changed hands, and then the other name is not wanted any more."""
    sink(tmp_path, route=ROUTE).started().drain()
    found, (*beside, _) = adopting(settings_of(tmp_path, "h", {"a": "side/a"}))
    carry_out(found, beside)
    carry_out(*adopting(settings_of(tmp_path, "g", {"a": "side/a"}), "h"))
    assert_exact(tmp_path, "g")


def test_a_side_table_that_was_away_meanwhile_is_moved_when_it_is_back(tmp_path):
    killed_ahead(tmp_path)
    away = shutil.move(tmp_path / "side/a", tmp_path / "away")
    carry_out(*adopting(settings_of(tmp_path)))
    shutil.move(away, tmp_path / "side/a")
    with pytest.raises(UnsafeError, match=r"table side/a: group g fills it .* kgs adopt --from-group g"):
        sink(tmp_path, "h", route=ROUTE).started().read()
    assert carry_out(*adopting(settings_of(tmp_path))) == ["side/a"]
    assert_exact(tmp_path, "h")


def claimed(folder):
    """A consumer of the old topic begins its first route, and has committed nothing by it."""
    sink(folder, route=ROUTE).started().read(6)


@pytest.mark.parametrize("begin", [claimed, killed_ahead])
def test_a_route_that_begins_under_the_old_topic_id_moves_with_its_side_tables(
    tmp_path, monkeypatch, memory_kafka, begin
):
    """Unless it has rows there that its own table does not know of: by the new id nobody would know them either."""
    sink(tmp_path).started()
    memory_kafka.found = MemoryKafka("id2").found
    moving, plan = planned(settings_of(tmp_path, "g", {"c": "side/c"}))
    before(monkeypatch, migration, "close_life", lambda: begin(tmp_path))
    if begin is killed_ahead:
        with pytest.raises(UnsafeError, match=r"table side/a: has t:0 up to 6, and table t only to 0"):
            moving.carry_out(plan)
    else:
        moving.carry_out(plan)
    for table, is_moved in (("side/a", begin is claimed), ("t", begin is claimed)):
        stored = load_transactions(Storage(str(tmp_path)), table)
        assert [stored[f"g/t@id1/{p}"] == CLOSED for p in (0, 1)] == [is_moved] * 2


def test_a_table_of_several_topics_moves_with_the_side_tables_of_all_whichever_was_named(tmp_path, memory_kafka):
    memory_kafka.list_topics = lambda: ["t", "u"]
    route = {"column": "s", "tables": {"a": "side/u"}}
    of_u = {"topic": "u", "topic_id": "id2", "table": "t", "route": route}
    sink(tmp_path, route={"column": "s", "tables": {"a": "side/t"}}).started()
    killed_ahead(tmp_path, **of_u)
    rule = {"pattern": "[tu]", "table": "t", "format": "json", "schema": {"s": "string"}}
    shared = {**rule, "route": {"column": "s", "tables": {"a": "side/{topic}"}}}
    found = adoption.GroupAdoption(kgs_yaml(tmp_path, shared, group="h"), "g")
    assert {*carry_out(found, found.pending(["t"]))} == {"t", "t_dead_letters", "side/t", "side/u"}
    heir = sink(tmp_path, "h", **of_u).started()
    heir.drain(most=5)
    assert [(row["_partition"], row["_offset"]) for row in heir.rows("side/u")] == places_of("a")


@pytest.mark.parametrize("killed_after", [None, 1, 2])
def test_another_group_takes_all_tables_over(tmp_path, killer, memory_kafka, killed_after):
    """Killed after so many of them, and run again. One of them is the side table of an earlier route."""
    old = sink(tmp_path, route=ROUTE).started()
    held = old.read(18)
    assert old.table.commit(old.read(6)) is CommitOutcome.COMMITTED
    later = settings_of(tmp_path, tables={"a": "side/a"})
    if killed_after:
        killer["adopted"] = killed_after
        with pytest.raises(KilledError):
            carry_out(*adopting(later))
    done = carry_out(*adopting(later))
    assert {"t_dead_letters", "side/a", "side/b", "t"} >= {*done}
    assert killed_after or done == ["t_dead_letters", "side/a", "side/b", "t"]
    assert old.table.commit(held) is CommitOutcome.REFUSED
    with pytest.raises(UnsafeError, match="handed over"):
        old.read(1)
    assert_exact(tmp_path, "h")


def test_a_topic_that_has_moved_begins_a_new_life_in_all_tables(tmp_path, memory_kafka):
    old = sink(tmp_path, route=ROUTE).started()
    old.table.commit(old.read(6))
    held = old.read(3)
    memory_kafka.found = MemoryKafka("id2").found
    moving, plan = planned(settings_of(tmp_path, "g"))
    moving.carry_out(plan)
    assert old.table.commit(held) is CommitOutcome.REFUSED
    new = sink(tmp_path, topic_id="id2", route=ROUTE).started()
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
    return kgs_yaml(folder, {"route": ROUTE, "transform_arrow": f"{__name__}:mended"}, group=group)


WITH_LETTER = {0: [{"s": 7 if n == 4 else "abc"[n % 3]} for n in range(12)]}


def test_nothing_is_redriven_while_a_side_table_has_changed_hands_alone(tmp_path, memory_kafka):
    """What would be noted there under the old name, no audit of the heir would know."""
    LayoutSink(tmp_path, WITH_LETTER, schema={"s": "string"}, route=ROUTE).started().drain()
    found, (*beside, own) = adopting(redriving(tmp_path, "h"))
    carry_out(found, beside)
    with pytest.raises(UnsafeError, match=r"table .*: group g has handed it over \(kgs adopt\)"):
        Redrive(redriving(tmp_path, "g"), "t").run()
    found.carry_out(own)
    assert Redrive(redriving(tmp_path, "h"), "t").run().passed == 1
    assert audit_lake(redriving(tmp_path, "h"), with_log=False).ok


def test_nothing_is_redriven_while_side_tables_alone_know_that_a_topic_has_moved(tmp_path, killer, memory_kafka):
    LayoutSink(tmp_path, WITH_LETTER, schema={"s": "string"}, route=ROUTE).started().drain()
    memory_kafka.found = MemoryKafka("id2").found
    killer["adopted"] = 2  # dead letters and side table a
    moving, plan = planned(redriving(tmp_path, "g"))
    with pytest.raises(KilledError):
        moving.carry_out(plan)
    with pytest.raises(UnsafeError, match="table side/a: has changed hands, and its topic's own table has not yet"):
        Redrive(redriving(tmp_path, "g"), "t").run()
    moving.carry_out(moving.plan("t", {}, keep=True))
    assert Redrive(redriving(tmp_path, "g"), "t").run().passed == 1
    assert audit_lake(redriving(tmp_path, "g"), with_log=False).ok


@pytest.mark.parametrize("point", ["after-dead-letter-commit", "after-side-commit"])
def test_a_topic_moves_only_where_no_table_is_ahead(tmp_path, killer, memory_kafka, point):
    """What a killed consumer left there would be there again under the new id, where a person does not say so."""
    log = {0: [{"s": 7 if n == 7 else "abc"[n % 3]} for n in range(12)]}
    old = LayoutSink(tmp_path, log, schema={"s": "string"}, route=ROUTE).started()
    old.table.commit(old.read(6))
    killer[point] = 1
    with pytest.raises(KilledError):
        old.table.commit(old.read(3))
    memory_kafka.found = MemoryKafka("id2", partitions=1).found
    with pytest.raises(UnsafeError, match=r"has t:0 up to 9, and table t only to 6, .* give --offset t:0=OFFSET"):
        planned(settings_of(tmp_path, "g"))
    moving, plan = planned(settings_of(tmp_path, "g"), {0: 6})
    assert plan.offsets == {0: 6}
    LayoutSink(tmp_path, log, schema={"s": "string"}, route=ROUTE).drain()
    with pytest.raises(UnsafeError, match="a consumer still commits to it under the old topic id"):
        moving.carry_out(plan)
    moving.carry_out(moving.plan("t", {}, keep=True))
    new = LayoutSink(tmp_path, log, topic_id="id2", schema={"s": "string"}, route=ROUTE).started()
    assert new.read() is None
