"""What a person erases: found again where it comes back, gone from the store, and no more than what was meant."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from kgs_core.errors import ConfigError
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.lake.files import ended_rows
from kgs_core.lake.files.places import PartitionKey
from kgs_core.lake.letters.erase import Eraser
from kgs_core.lake.rule import Fault
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.keep import end_aged
from tests.core.lake.ending_world import FAR, KEYS, PARTITIONS, EndingWorld, patched
from tests.sink import Sink


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Forty records of each partition, all hours old."""
    patched(monkeypatch)
    world = EndingWorld(str(tmp_path), {})
    for partition in range(PARTITIONS):
        world.ingest(partition, 40)
    return world


def audited(world):
    return audit_lake(world.settings, with_log=False).tables[0]


def test_a_row_lost_beside_those_that_were_erased_is_found(world):
    world.erase(k="k1")
    assert audited(world).ok
    table = DeltaTable(world.storage.uri("t"))
    table.alter.set_table_properties({"delta.appendOnly": "false"})
    table.delete("_partition = 1 AND _offset = 20")  # its key is k0
    (finding,) = [f for p in audited(world).partitions for f in p.findings]
    assert (finding.fault, finding.count, [*finding.ranges]) == (Fault.LOST, 1, [(20, 21)])


def test_erased_rows_that_come_back_are_found_and_end_again(world):
    version = DeltaTable(world.storage.uri("t")).version()
    world.erase(k="k1")
    table = DeltaTable(world.storage.uri("t"))
    table.alter.set_table_properties({"delta.appendOnly": "false"})
    table.restore(version)
    found = audited(world)
    assert found.count(Fault.STILL_THERE) == len([p for p in world.loop.by if p in world.loop.rows])
    Eraser(world.settings, "t", keys=["k1"]).run()
    assert audited(world).ok


def test_it_is_gone_from_the_store_at_once_where_that_is_asked_for(world):
    world.maintain()  # files that were replaced before have the rows, too
    found = Eraser(world.settings, "t", keys=["k1"]).run(now=True)
    assert (found.gone_at, found.records) == (None, 16)
    rows = [row for file in Path(world.storage.root).rglob("*.parquet") for row in rows_of(file)]
    assert rows
    assert not [row for row in rows if row["_key"] == b"k1"]
    assert audit_lake(world.settings, with_log=False).ok, "newest rows are at a version that is still there"


def rows_of(file):
    return [] if "_delta_log" in file.parts else pq.read_table(file, partitioning=None).to_pylist()


def test_what_is_left_of_replaced_files_has_not_come_since(world):
    version = world.lake.pin("t").version
    world.erase(k="k1")
    world.keep(30)
    pinned = world.lake.pin("t")
    assert pinned.version > version
    assert not [*pinned.added_since(version)]


def test_what_is_meant_is_only_looked_at_without_yes(world):
    version = DeltaTable(world.storage.uri("t")).version()
    found = Eraser(world.settings, "t", where="n < 10").look()
    assert (found.records, found.found, found.not_looked_at) == (8, {"t": 8}, ["t_dead_letters"])
    assert DeltaTable(world.storage.uri("t")).version() == version
    assert end_aged(world.lake, "g", world.specs, FAR, dry_run=True) == 80
    assert DeltaTable(world.storage.uri("t")).version() == version


def test_records_that_are_read_again_do_not_end_yet(world):
    batch = world.sink.read({0: (40, 50)})
    world.sink.table._commit_dead_letters(batch)  # killed before the rows
    found = Eraser(world.settings, "t", keys=[f"k{n}" for n in range(KEYS)]).run()
    assert (found.records, found.unsettled) == (80, 1)
    world.sink.table.commit(batch)
    assert audited(world).ok


@pytest.mark.parametrize(
    ("meant", "problem"),
    [
        ({"where": "n <"}, "--where: "),
        ({"where": "1 = 1"}, "names no column"),
        ({"where": "n + 1"}, "true or false"),
        ({"where": "n = 'x'"}, "--where: "),
    ],
)
def test_a_condition_that_is_none_is_refused(world, meant, problem):
    with pytest.raises(ConfigError, match=problem):
        Eraser(world.settings, "t", **meant).run()
    assert audited(world).ok
    assert not world.lake.ended("t")


def test_many_decisions_become_one_file_and_stay(storage):
    sink = Sink(storage).started(1)
    lake, places = open_lake(sink.lake), PartitionKey("id1", 0)
    for n in range(ended_rows.MOST_FILES + 5):
        lake.note_ended("t", "keep", {places: np.array([2 * n, 2 * n + 1])})
    assert len(list(Path(storage.root, "t", ended_rows.ENDED_FOLDER).iterdir())) < 10
    assert lake.ended("t")["keep"][places].tolist() == list(range(2 * n + 2))
    assert DeltaTable(storage.uri("t")).vacuum(0, dry_run=True, enforce_retention_duration=False, full=True) == []


def test_a_key_that_no_row_has_by_the_rule_is_refused(world):
    rule = world.settings.topics[0].model_copy(update={"mask": {"_key": "null"}})
    settings = world.settings.model_copy(update={"topics": (rule,)})
    with pytest.raises(ConfigError, match="mask: _key: null, so no row has a key: give --where"):
        Eraser(settings, "t", keys=["k1"])
