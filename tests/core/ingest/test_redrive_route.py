"""Dead letters of a topic with a route: each becomes a row of the table that its value leads to, once."""

import json
from collections import Counter
from contextlib import nullcontext

import pyarrow as pa
import pytest

from kgs_core.errors import ConfigError, UnsafeError
from kgs_core.ingest.replay.redrive import Redrive
from kgs_core.ingest.replay.redrive_result import RedriveResult
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.late_rows import LateRows
from tests.core.lake.changing_hands import MemoryKafka, adopting, carry_out, put_kafka
from tests.core.lake.test_side_tables import ROUTE
from tests.failpoints import KilledError
from tests.kgs_yaml import kgs_yaml
from tests.layout_sink import LayoutSink

SCHEMA = {"s": "string", "i": "int"}
LOG = {0: [{"s": "abc"[n % 3], "i": "1" if n % 2 else 1} for n in range(12)]}  # every other one is bad


def mended(rows, topic):
    """Rows of raw values -> those of the table, with numbers that are texts."""
    values = [json.loads(value) if value else {"s": None, "i": 0} for value in rows["value"].to_pylist()]
    out = rows.drop_columns(["value"]).append_column("s", pa.array([v["s"] for v in values], pa.string()))
    return out.append_column("i", pa.array([int(v["i"]) for v in values], pa.int32()))


def settings_of(sink, **tables):
    route = {"column": "s", "tables": tables or ROUTE["tables"]}
    return kgs_yaml(sink.storage.root, {"transform_arrow": f"{__name__}:mended", "route": route})


@pytest.fixture
def sink(tmp_path):
    found = LayoutSink(tmp_path, LOG, schema=SCHEMA, route=ROUTE).started()
    found.drain(most=5)
    return found


def offsets(sink):
    return {table: [row["_offset"] for row in sink.rows(table)] for table in ("t", "side/a", "side/b")}


def assert_all_once(sink, settings=None):
    assert offsets(sink) == {"side/a": [0, 3, 6, 9], "side/b": [1, 4, 7, 10], "t": [2, 5, 8, 11]}
    (table,) = audit_lake(settings or settings_of(sink), with_log=False).tables
    assert table.ok, [str(f) for p in table.partitions for f in p.findings]


def test_rows_of_another_route_wait_for_consumers_that_go_by_it(sink):
    with pytest.raises(UnsafeError, match="go by another route than the configured one: start consumers"):
        Redrive(settings_of(sink, a="side/b"), "t").run()
    LayoutSink(sink.storage.root, LOG, schema=SCHEMA, route={"column": "s", "tables": {"a": "side/b"}}).started().read()
    with pytest.raises(UnsafeError, match="another route"):
        Redrive(settings_of(sink), "t").run()
    assert Redrive(settings_of(sink, a="side/b"), "t").run().passed == 6

    assert audit_lake(settings_of(sink, a="side/b"), with_log=False).ok


def test_a_side_table_is_redriven_by_the_name_of_the_own_table(sink):
    with pytest.raises(ConfigError, match=r"side/a: no topic fills it.*it is a side table of t: name that"):
        Redrive(settings_of(sink), "side/a")


@pytest.mark.parametrize("step", ["redrive-written", "redriven"])
def test_redriven_rows_come_late_into_own_and_side_tables_once_also_after_a_kill(sink, killer, step):
    """So that Dagster materializes their hours again."""
    settings, late, found = settings_of(sink), LateRows(), Counter()
    since = {table: open_lake(settings.lake).pin(table).version for table in offsets(sink)}
    killer[step] = 2
    for is_killed in (True, False):
        with pytest.raises(KilledError) if is_killed else nullcontext():
            Redrive(settings, "t").run()
        for table, version in since.items():
            pinned = open_lake(settings.lake).pin(table)
            found[table] += late.of(table, pinned, version, 2**50).total()
            since[table] = pinned.version
    assert found == {"t": 2, "side/a": 2, "side/b": 2}


def test_between_side_tables_and_rows_that_change_hands_nothing_is_redriven(sink, monkeypatch, killer):
    """Else the side table's note of it would be the old name's, and the heir's audit would find rows twice."""
    put_kafka(monkeypatch, MemoryKafka())
    heir = settings_of(sink).model_copy(update={"group": "h"})
    found, (*beside, rows) = adopting(heir)
    killer["redrive-written"] = lambda: carry_out(found, beside)
    for settings in (settings_of(sink), heir):
        with pytest.raises(UnsafeError, match=r"table .*: group \w has handed it over \(kgs adopt\), or never had it"):
            Redrive(settings, "t").run()
    assert not killer
    found.carry_out(rows)
    assert audit_lake(heir, with_log=False).ok
    assert Redrive(heir, "t").run().passed == 6
    assert_all_once(sink, heir)


def test_letters_of_an_earlier_life_go_by_the_route_of_then(tmp_path, monkeypatch):
    """A later life's route leads into a side table that the earlier one never had."""
    narrow = {"column": "s", "tables": {"a": "side/a"}}
    LayoutSink(tmp_path, LOG, schema=SCHEMA, route=narrow).started().drain()
    sink = LayoutSink(tmp_path, LOG, schema=SCHEMA, route=ROUTE, topic_id="id2").started()
    sink.drain()
    redriven = Counter()
    add = RedriveResult.add

    def counted(self, other):
        redriven.update(passed=other.passed, done=other.done)
        add(self, other)

    monkeypatch.setattr(RedriveResult, "add", counted)
    with pytest.raises(UnsafeError, match=r"topic id id1.*with the route of then; those of other topic ids are done"):
        Redrive(settings_of(sink), "t").run()
    assert redriven == {"passed": 6, "done": 0}
    for done in (0, 6):
        redriven.clear()
        with pytest.raises(UnsafeError, match="topic id id2"):
            Redrive(settings_of(sink, a="side/a"), "t").run()
        assert redriven == {"passed": 6 - done, "done": done}
    assert audit_lake(settings_of(sink), with_log=False).ok
