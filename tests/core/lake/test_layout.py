"""Partition columns, values in the log, names of folders: as the rule says, and read back."""

import datetime as dt
import json
import os
from pathlib import Path
from unittest.mock import patch
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.config import TopicRule
from kgs_core.errors import UnsafeError
from kgs_core.lake.delta.delta_lake import DeltaLake
from kgs_core.lake.delta.delta_maintenance import maintain_table
from kgs_core.lake.files import layout as layout_module
from kgs_core.lake.files.layout import Partitioned, folder_of, layout_of, table_schema
from kgs_core.lake.files.row_schema import IDENTITY, parsed_schema
from kgs_core.ports import CommitOutcome
from tests.layout_sink import COLUMNS, LayoutSink


def rule(**layout):
    return TopicRule.model_validate({"topic": "t", "format": "json", "schema": COLUMNS, **layout})


def read_by_deltalake(sink):
    found = QueryBuilder().register("t", DeltaTable(sink.storage.uri("t"))).execute("select * from t").read_all()
    rows = pa.table(found).drop_columns(["_headers"]).to_pylist()
    return sorted(rows, key=lambda row: (row["_partition"], row["_offset"]))


def test_values_of_every_type_are_in_the_log_as_delta_has_them(tmp_path):
    log = {0: [
        {"s": "ä/b", "i": -7, "b": True, "d": "2026-01-31"},
        {"s": "", "i": 0, "b": False, "d": "0001-01-01"},
        {"s": "__HIVE_DEFAULT_PARTITION__", "d": "9999-12-31"},
    ]}  # fmt: skip
    sink = LayoutSink(tmp_path, log, partition_by=["s", "i", "b", "d"]).started()
    sink.drain()
    assert sorted((add["partitionValues"] for add in sink.adds()), key=str) == sorted([
        {"s": "ä/b", "i": "-7", "b": "true", "d": "2026-01-31"},
        {"s": None, "i": "0", "b": "false", "d": "0001-01-01"},
        {"s": None, "i": None, "b": None, "d": "9999-12-31"},
    ], key=str)  # fmt: skip
    (made,) = [action["metaData"] for action in sink.entries() if "metaData" in action]
    assert made["partitionColumns"] == ["s", "i", "b", "d"]
    for rows in (sink.rows(), read_by_deltalake(sink)):
        assert [(r["s"], r["i"], r["b"], r["d"]) for r in rows] == [
            ("ä/b", -7, True, dt.date(2026, 1, 31)),
            (None, 0, False, dt.date(1, 1, 1)),
            (None, None, None, dt.date(9999, 12, 31)),
        ]
    (protocol,) = [action["protocol"] for action in sink.entries() if "protocol" in action]
    assert protocol == {"minReaderVersion": 1, "minWriterVersion": 2}


def test_computed_day_and_hour_are_utc_and_the_files_have_no_partition_column(tmp_path):
    log = {0: [{"t": f"2026-02-01T00:{n:02}:00+00:30"} for n in (10, 40)]}
    sink = LayoutSink(tmp_path, log, partition_by=["day(_timestamp)", "hour(t)"]).started()
    sink.drain()
    assert [add["partitionValues"] for add in sink.adds()] == [
        {"_timestamp_day": "2026-01-31", "t_hour": "2026-01-31T23"},
        {"_timestamp_day": "2026-01-31", "t_hour": "2026-02-01T00"},
    ]
    assert [(r["_timestamp_day"], r["t_hour"]) for r in sink.rows()] == [
        (dt.date(2026, 1, 31), "2026-01-31T23"),
        (dt.date(2026, 1, 31), "2026-02-01T00"),
    ]
    for add in sink.adds():
        columns = pq.read_schema(Path(sink.storage.uri("t"), unquote(add["path"]))).names
        stats = json.loads(add["stats"])
        assert columns == [*COLUMNS, *parsed_schema(sink.spec.rule).names[len(COLUMNS) :]]
        assert not {"_timestamp_day", "t_hour"} & {*stats["minValues"], *stats["nullCount"]}


@given(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)))
def test_days_of_any_time_are_those_of_python_or_null(us):
    column = pa.table({"w": pa.array([us], pa.timestamp("us", "UTC"))})
    words = ["day(w)", "hour(w)"]
    found = Partitioned(rule(partition_by=words), column).files() if us is not None else [({}, None)]
    try:
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=us or 0)
        wanted = {"w_day": moment.date().isoformat(), "w_hour": moment.isoformat()[:13]}
    except OverflowError:
        wanted = {"w_day": None, "w_hour": None}
    assert found[0][0] == (wanted if us is not None else {})


def test_target_file_size_of_the_table_is_that_of_maintenance(tmp_path):
    text = np.random.default_rng(1).bytes(200_000).hex()
    sink = LayoutSink(tmp_path, {0: [{"s": text}] * 6}).started()
    DeltaTable(sink.storage.uri("t")).alter.set_table_properties({"delta.targetFileSize": "1000000"})
    sink.drain(1)
    upkeep = maintain_table(sink.storage, "t")
    assert upkeep.problem is None
    assert upkeep.files[0] == 6
    assert 2 <= upkeep.files[1] < 6


def test_table_and_columns_are_described_when_it_is_made(tmp_path):
    comments = {"s": "what it says", "_timestamp_day": "day of Kafka's time"}
    words = {"description": "Flights, as they come", "comments": comments, "partition_by": ["day(_timestamp)"]}
    LayoutSink(tmp_path, {0: [{}]}, **words).started().drain()
    LayoutSink(tmp_path, {0: [{}, {}]}, partition_by=["day(_timestamp)"]).started().drain()
    table = DeltaTable(str(tmp_path / "t"))
    assert table.metadata().description == "Flights, as they come"
    assert {f.name: f.metadata["comment"] for f in table.schema().fields if f.metadata} == comments


@pytest.mark.parametrize(
    ("made", "wanted", "words"),
    [
        ({}, ["s"], "is not partitioned, its rule in kgs.yaml says partitioned by s"),
        ({"partition_by": ["s"]}, [], "is partitioned by s, its rule in kgs.yaml says not partitioned"),
        ({"partition_by": ["s", "i"]}, ["i", "s"], "is partitioned by s, i, its rule .* says partitioned by i, s"),
    ],
)
def test_table_of_another_layout_is_refused(tmp_path, made, wanted, words):
    LayoutSink(tmp_path, {0: [{}]}, **made).started()
    with pytest.raises(UnsafeError, match=words):
        LayoutSink(tmp_path, {0: [{}]}, partition_by=wanted).started()


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"partition_by": ["nope"]}, "there is no column 'nope'"),
        ({"partition_by": ["x"]}, "'x' is double: take a column of text"),
        ({"partition_by": ["_key"]}, "'_key' is binary"),
        ({"partition_by": ["t"]}, r"'t' is a timestamp: say day\(t\)"),
        ({"partition_by": ["_offset"]}, r"take day\(_timestamp\)"),
        ({"partition_by": ["hour(d)"]}, "is not a timestamp but date32"),
        ({"partition_by": ["day(s)"]}, "is not a timestamp but string"),
        ({"sort_by": ["nope"]}, "sort_by: there is no column 'nope'"),
        ({"sort_by": ["s"], "partition_by": ["s"]}, "sort_by: column 's' has no order inside a file"),
        ({"sort_by": ["_headers"]}, "sort_by: column '_headers' has no order"),
        ({"comments": {"nope": "x"}}, "comments: there is no column 'nope'"),
    ],
)
def test_layout_that_does_not_fit_the_columns_is_refused(layout, words):
    with pytest.raises(ValueError, match=words):
        table_schema(rule(**layout), parsed_schema(rule()))


def test_computed_column_that_is_there_already_is_refused():
    with pytest.raises(ValueError, match="a column 't_day' exists already"):
        table_schema(rule(partition_by=["day(t)"]), parsed_schema(rule()).append(pa.field("T_day", pa.int32())))


def test_names_of_folders():
    assert folder_of({}) == ""
    assert folder_of({"_d": "2026-01-31", "s": None}) == "_d=2026-01-31/s=__HIVE_DEFAULT_PARTITION__"
    assert folder_of({"a b": "x/y=%ü~"}) == "a%20b=x%2Fy%3D%25%C3%BC%7E"
    assert folder_of({"a": ".."}) == "a=.."


def test_audit_reads_identity_columns_that_are_partition_columns(tmp_path):
    sink = LayoutSink(tmp_path, {p: [{"s": "a b"}] * 3 for p in (0, 1)}, partition_by=["_partition", "s"]).started()
    sink.drain()
    pinned = DeltaLake(sink.lake).pin("t")
    rows = [row for file in pinned.files() for row in pinned.read(file, [*IDENTITY, "s"]).to_pylist()]
    assert sorted((r["_partition"], r["_offset"], r["_topic_id"], r["s"]) for r in rows) == [
        (p, o, "id1", "a b") for p, o in sink.expected()
    ]
    found = pinned.contents()
    assert (found.rows, {f["name"]: f["type"] for f in found.fields}["s"]) == (6, "string")


def test_foreign_folders_in_those_of_partitions_stop_vacuum(tmp_path):
    sink = LayoutSink(tmp_path, {0: [{"s": "a:b"}, {"s": "c"}]}, partition_by=["s"]).started()
    sink.drain()
    foreign = Path(sink.storage.uri("t"), "s=a%3Ab", "u=1", "x.parquet")
    foreign.parent.mkdir()
    foreign.write_bytes(b"x")
    os.utime(foreign, (0, 0))
    assert "s=a%3Ab/u=1/x.parquet" in maintain_table(sink.storage, "t").problem


@given(
    st.dictionaries(st.integers(0, 3), st.lists(st.integers(0, 5), min_size=1, max_size=8), min_size=1),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_cut_leaves_prefixes_with_few_values_and_takes_something(log, most, rows_of_one):
    """A record may have several rows, as with `rows: any`: each has a value of its own."""
    every = [(p, o, s + n) for p, values in log.items() for o, s in enumerate(values) for n in range(rows_of_one)]
    rows = pa.table({
        "_partition": pa.array([p for p, _, _ in every], pa.int32()),
        "_offset": pa.array([o for _, o, _ in every], pa.int64()),
        "i": pa.array([i for _, _, i in every], pa.int32()),
    })  # fmt: skip
    with patch.object(layout_module, "MOST_FILES", most):
        left = Partitioned(rule(partition_by=["i"]), rows).cut()
    if left is None:
        assert len({i for _, _, i in every}) <= max(most, rows_of_one)
        return
    taken = [(p, o, i) for p, o, i in every if o < left.get(p, 99)]
    assert taken
    assert len({i for _, _, i in taken}) <= max(most, rows_of_one)
    assert all(end < len(log[p]) for p, end in left.items())


def test_other_consumers_take_files_of_all_partition_values_along(tmp_path):
    from kgs_core.lake.files.intent_store import IntentStore, encode_intent, new_name
    from kgs_core.lake.rule.combining import CommitIntent

    sink = LayoutSink(tmp_path, {0: [{"s": "a"}, {"s": "b/~"}], 1: [{"s": "c"}]}, partition_by=["s"]).started()
    whole = sink.read()
    position = sink.ids.position
    sink.log = {1: sink.log[1]}
    mine = sink.read()
    theirs = [f for f in whole.files if f.partition_values["s"] != "c"]
    store, table_id = IntentStore(sink.storage, "t"), sink.table._rows._log.metadata.table_id
    left = CommitIntent({position(0): 0}, {position(0): 2}, theirs, looked_at=99, consumer="3", table=table_id)
    store.put(new_name(), encode_intent(left))
    sink.table._rows = DeltaLake(sink.lake, "7", "combined").table("t", sink.table.schema, layout_of(sink.spec.rule))
    assert sink.table.commit(mine) is CommitOutcome.COMMITTED
    assert [r["s"] for r in sink.rows()] == ["a", "b/~", "c"]
    words = [action["commitInfo"] for action in sink.entries() if "commitInfo" in action][-1]["kgs"]
    topic = {"group": "g", "topic": "t", "topicId": "id1"}
    assert words["batches"] == 2
    assert words["committed"] == [
        {"consumer": "7", **topic, "offsets": {"1": [0, 1]}},
        {"consumer": "3", **topic, "offsets": {"0": [0, 2]}},
    ]
