"""The log entries as they are: every action of every kind of commit. Tables of old versions are read by them."""

import json
from pathlib import Path

import pytest

from kgs_core.lake.files.storage import Storage
from kgs_core.ports import CommitOutcome
from tests.sink import Sink

HEADERS = {
    "type": "array",
    "elementType": {"type": "struct", "fields": [("key", "string"), ("value", "binary")]},
    "containsNull": True,
}
ORIGIN = [
    ("_topic_id", "string"),
    ("_partition", "integer"),
    ("_offset", "long"),
    ("_timestamp", "timestamp"),
    ("_key", "binary"),
    ("_headers", HEADERS),
]
MADE_BY_CHANCE = ("id", "createdTime", "path", "size", "modificationTime")
NO_NULLS = dict.fromkeys(["_topic_id", "_partition", "_offset", "_timestamp"], 0)


def fields(columns):
    return [{"name": name, "type": typed(kind), "nullable": True, "metadata": {}} for name, kind in columns]


def typed(kind):
    if isinstance(kind, str):
        return kind
    return kind | {"elementType": {"type": "struct", "fields": fields(kind["elementType"]["fields"])}}


def made(columns):
    return [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "name": None,
                "description": None,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": {"type": "struct", "fields": fields(columns)},
                "partitionColumns": [],
                "configuration": {
                    "delta.appendOnly": "true",
                    "delta.checkpointInterval": "5",
                    "delta.enableExpiredLogCleanup": "true",
                    "delta.logRetentionDuration": "interval 24 hours",
                },
            }
        },
    ]


def added(rows, low, high, nulls):
    stats = {"numRecords": rows, "minValues": low, "maxValues": high, "nullCount": nulls}
    return {"add": {"partitionValues": {}, "dataChange": True, "stats": stats}}


def bounds(partition, offset, **more):
    origin = {"_topic_id": "id1", "_partition": partition, "_offset": offset}
    return more | origin | {"_timestamp": f"2023-11-14T22:13:20.{offset:03}Z"}


def moved(**apps):
    return [{"txn": {"appId": app, "version": version}} for app, version in apps.items()]


def actions_of(path):
    """Actions of one entry in their order; what tells of the writer, or is made by chance, is left out."""
    for line in path.read_text().splitlines():
        [(kind, action)] = json.loads(line).items()
        if kind == "commitInfo":
            continue
        nested = {key: json.loads(action[key]) for key in ("schemaString", "stats") if key in action}
        action = {key: value for key, value in (action | nested).items() if key not in MADE_BY_CHANCE}
        yield {kind: action}


@pytest.fixture
def entries(tmp_path):
    """Table -> actions of every entry: a start, a batch with rows and dead letters, a batch of rows alone, a loss."""
    sink = Sink(Storage(str(tmp_path))).started(2)
    assert sink.ingest({0: (0, 6), 1: (0, 3)}) is CommitOutcome.COMMITTED
    assert sink.table.accept_gap(1, 3, 9) is CommitOutcome.COMMITTED
    assert sink.ingest({0: (6, 7)}) is CommitOutcome.COMMITTED
    logs = {table: sorted(Path(tmp_path, table, "_delta_log").glob("*.json")) for table in ("t", "t_dead_letters")}
    return {table: [list(actions_of(path)) for path in paths] for table, paths in logs.items()}


def test_entries_of_the_rows_table(entries):
    half = 2**31
    assert entries["t"] == [
        made([("n", "long"), *ORIGIN]),
        moved(**{"g/t@id1/0": 0, "g/t@id1/0/start": 0, "g/t@id1/1": 0, "g/t@id1/1/start": 0, "kgs/starts": 1}),
        [
            added(8, bounds(0, 0, n=0), bounds(1, 5, n=1_000_002), {"n": 0, **NO_NULLS}),
            *moved(**{"g/t@id1/0": 6, "g/t@id1/0/epoch": 6 * half, "g/t@id1/1": 3, "g/t@id1/1/epoch": 3 * half}),
        ],
        moved(**{"g/t@id1/1": 9, "g/t@id1/1/gap/3": 9}),
        [
            added(1, bounds(0, 6, n=6), bounds(0, 6, n=6), {"n": 0, **NO_NULLS}),
            *moved(**{"g/t@id1/0": 7, "g/t@id1/0/epoch": 7 * half}),
        ],
    ]


def test_entries_of_the_dead_letters_table(entries):
    dead_letter = bounds(0, 4, error="[not_json] not a JSON object")
    assert entries["t_dead_letters"] == [
        made([("value", "binary"), ("error", "string"), *ORIGIN]),
        [added(1, dead_letter, dead_letter, {"error": 0, **NO_NULLS}), *moved(**{"g/t@id1/0": 6, "g/t@id1/1": 3})],
    ]
