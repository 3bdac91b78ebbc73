"""Intents on a disk: what is written is read; what cannot be understood is nobody's but its writer's."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from kgs_core.lake.delta.delta_maintenance import maintain_table
from kgs_core.lake.files.intent_store import INTENT_FOLDER, IntentStore, decode_intent, encode_intent, new_name
from kgs_core.lake.rule.combining import CommitIntent
from kgs_core.ports import CommitOutcome, FileWritten
from tests.one_column import file_of, table_at, values_in

INTENT = CommitIntent(
    {"ä/1": None, "b": 3},
    {"ä/1": 2, "b": 9},
    [FileWritten("f.parquet", 7, 5, "{}")],
    {"along": 4},
    looked_at=12,
    table="id",
)


def test_what_is_put_is_read_until_it_is_removed(storage):
    table_at(storage)
    store, name = IntentStore(storage, "t"), new_name()
    assert store.ages() == {}
    store.put(name, encode_intent(INTENT))
    (age_s,) = store.ages().values()
    assert 0 <= age_s < 60
    assert decode_intent(store.read(name)) == INTENT
    store.remove([name, "never-there.json"])
    assert store.ages() == {}
    with pytest.raises(FileNotFoundError):
        store.read(name)


@pytest.mark.parametrize(
    "change",
    [
        {"form": 3}, {"expected": {}}, {"new": {}}, {"new": {"a": "1"}}, {"new": {"a": True}}, {"expected": [1]},
        {"files": []}, {"files": [{"path": "../f", "size": 1, "rows": 1, "stats": ""}]}, {"looked_at": None},
        {"files": [{"path": "_delta_log", "size": 1, "rows": 1, "stats": ""}]}, {"along": None}, {"table": 7},
        {"files": [{"path": "a=1/f", "size": 1, "rows": 1, "stats": ""}]}, {"consumer": 7},
        {"files": [{"path": "../f", "size": 1, "rows": 1, "stats": "", "values": {"a": "1"}}]},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_not_understood_is_no_intent(change):
    assert decode_intent(json.dumps(json.loads(encode_intent(INTENT)) | change).encode()) is None


def test_files_in_folders_of_their_partition_values_are_read_back():
    files = [FileWritten(f"d={d}/f.parquet", 7, 5, "{}", {"d": value}) for d, value in (("x", None), ("ä%2F", "ä/"))]
    intent = replace(INTENT, files=files, consumer="3")
    assert decode_intent(encode_intent(intent)) == intent


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"1", b"null", b"\xff", encode_intent(INTENT)[:-5]])
def test_what_is_broken_is_no_intent(data):
    assert decode_intent(data) is None


def test_intent_needs_a_file():
    with pytest.raises(ValueError, match="needs a file"):
        encode_intent(replace(INTENT, files=()))


def test_writers_pass_over_what_they_cannot_take_and_end_what_is_over(storage):
    """Broken, of a file that is gone, overtaken, of another table: none holds up a commit; one that fits is taken."""
    table = table_at(storage, commits="combined")
    assert table.commit({"a": None}, {"a": 1}, [file_of(storage, 1)]) is CommitOutcome.COMMITTED
    store, gone = IntentStore(storage, "t"), FileWritten("gone.parquet", 7, 5, "{}")
    intent = CommitIntent({"b": None}, {"b": 1}, [gone], looked_at=1, table=table._log.metadata.table_id)
    store.put("broken.json", b"{")
    store.put("gone.json", encode_intent(intent))
    store.put("over.json", encode_intent(replace(intent, expected={"a": None}, files=[file_of(storage, 7)])))
    store.put("other.json", encode_intent(replace(intent, files=[file_of(storage, 9)], table="made before")))
    fits = replace(intent, expected={"c": None}, new={"c": 1}, files=[file_of(storage, 8)])
    store.put("fits.json", encode_intent(fits))
    assert table.commit({"a": 1}, {"a": 2}, [file_of(storage, 2)]) is CommitOutcome.COMMITTED
    assert values_in(storage) == [1, 2, 8]
    assert table.versions(["a", "b", "c"]) == {"a": 2, "b": None, "c": 1}


def test_maintenance_removes_old_intents_and_leaves_young_ones(storage):
    table_at(storage).commit({"a": None}, {"a": 1}, [file_of(storage, 1)])
    store = IntentStore(storage, "t")
    for name in ("young.json", "old.json", "old.json#"):
        store.put(name, encode_intent(INTENT))
    for name in ("old.json", "old.json#"):
        path = Path(storage.uri("t"), INTENT_FOLDER, name)
        os.utime(path, (path.stat().st_mtime - 25 * 3600,) * 2)
    upkeep = maintain_table(storage, "t")
    assert upkeep.problem is None
    assert list(store.ages()) == ["young.json"]
    assert maintain_table(storage, "t", dry_run=True).problem is None
