"""Batches of tables with a layout: cut where values are too many, killed anywhere, split anyhow: the same rows."""

import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Row

from kgs_core.config import TopicRule
from kgs_core.config.rule.layout import MOST_BYTES_OF_FOLDERS, MOST_BYTES_OF_NAME
from kgs_core.ingest.fetch.topic_records import records_of
from kgs_core.ingest.worker import dataframe_writer
from kgs_core.ingest.worker.arrow_task import TaskContext
from kgs_core.ingest.worker.dataframe_task import DataFrameProcessor, ReadNote
from kgs_core.ingest.worker.dataframe_writer import notes_of, write_rows
from kgs_core.ingest.worker.process_batch import TransformError, prepare_topic
from kgs_core.ingest.worker.topic_job import TopicJob
from kgs_core.lake.delta.delta_maintenance import maintain_table
from kgs_core.lake.files import layout as layout_module
from kgs_core.lake.files.layout import Partitioned, folder_of, unfit
from kgs_core.model import OffsetRange
from kgs_core.ports import CommitOutcome
from tests.failpoints import KilledError
from tests.layout_sink import COLUMNS, GivenRecord, LayoutSink
from tests.processing import sorted_of
from tests.waiting import wait_for_upkeep

VALUES = st.fixed_dictionaries(
    {},
    optional={
        "s": st.sampled_from(["", "a", "a/b", "ä~", "%", "..", "x" * 300]),
        "i": st.integers(-2, 2),
        "b": st.booleans(),
        "d": st.sampled_from(["2026-01-31", "0001-01-01"]),
        "x": st.floats(-2, 2, width=16),
    },
)
LAYOUTS = st.fixed_dictionaries(
    {
        "partition_by": st.lists(
            st.sampled_from(["s", "i", "b", "d", "day(_timestamp)", "hour(_timestamp)", "_partition"]),
            unique=True,
            max_size=3,
        ),
    }
)


ESCAPED = {"x": 1, "ü": 6, "東": 9, "~": 3, "/": 3, " ": 3, "": 1}
LONG = st.builds(lambda it, size: it * (size // ESCAPED[it]), st.sampled_from([*ESCAPED]), st.integers(150, 245))
SHORT = st.sampled_from([None, "a", "東"])
NAMES = ["s", "t", "customer", "ü"]
TEXTS = pa.schema([(name, pa.string()) for name in NAMES])
ORIGIN = pa.schema([("i", pa.int64()), ("_topic_id", pa.string()), ("_timestamp", pa.timestamp("us", "UTC"))])


@given(
    st.lists(st.fixed_dictionaries(dict.fromkeys(NAMES, LONG | LONG | SHORT)), max_size=4),
    st.sampled_from([NAMES, NAMES, [*NAMES[:3], "i"], ["_topic_id", *NAMES[1:]], ["s", "hour(_timestamp)"]]),
    st.integers(0, 4),
)
def test_values_are_unfit_where_their_folders_are_too_long_for_a_file_system_or_for_a_key_of_s3(rows, by, cut):
    rule = TopicRule.model_validate({"topic": "t", "format": "json", "schema": {"s": "string"}, "partition_by": by})
    values = pa.Table.from_pylist(rows, TEXTS)
    values = pa.concat_tables([values.slice(0, cut), values.slice(cut)])
    bad = unfit(rule, values)  # without the origin, as values are judged
    for n, row in enumerate(rows):
        of = {word: row[word] or None for word in by if word in NAMES} | {
            word: None for word in by if word not in NAMES
        }
        folder = folder_of(of).replace("hour%28_timestamp%29", "_timestamp_hour")
        too_long = len(folder) > MOST_BYTES_OF_FOLDERS or max(map(len, folder.split("/"))) > MOST_BYTES_OF_NAME
        assert (n in bad) == too_long
    origin = {"i": -(2**63), "_topic_id": "x" * 22, "_timestamp": 0}
    good = pa.Table.from_pylist(
        [row | origin for n, row in enumerate(rows) if n not in bad], pa.unify_schemas([TEXTS, ORIGIN])
    )
    assert all(len(folder_of(found)) <= MOST_BYTES_OF_FOLDERS for found, _ in Partitioned(rule, good).files())


@settings(max_examples=40)
@given(
    st.dictionaries(st.integers(0, 2), st.lists(VALUES, min_size=1, max_size=6), min_size=1),
    LAYOUTS,
    st.integers(1, 4),
    st.data(),
)
def test_any_layout_and_any_split_give_the_same_rows(log, layout, most, data):
    """But for the one thing that Delta cannot say: an empty text as a partition value is null. Too long is bad."""
    with tempfile.TemporaryDirectory() as folder, patch.object(layout_module, "MOST_FILES", most):
        sink = LayoutSink(folder, log, **layout).started()
        while (batch := sink.read(data.draw(st.integers(1, 6)))) is not None:
            assert batch.ranges
            if "_partition" not in layout["partition_by"]:
                assert len(batch.files) <= most
            assert sink.table.commit(batch) is CommitOutcome.COMMITTED
        wait_for_upkeep()  # it writes checkpoints beside, also after the folder is gone
        found = [tuple(row[c] for c in ("_partition", "_offset", *COLUMNS)) for row in sink.rows()]
        in_folders = "s" in layout["partition_by"]
        assert [row[:6] for row in found] == [
            (p, o, None if in_folders and v.get("s") == "" else v.get("s"), v.get("i"), v.get("b"), row_date(v))
            for p, values in sorted(log.items())
            for o, v in enumerate(values)
            if not (in_folders and len(v.get("s", "")) > 200)
        ]
        assert [row[7] for row in found] == [
            v.get("x") for p in sorted(log) for v in log[p] if not (in_folders and len(v.get("s", "")) > 200)
        ]


def row_date(value):
    import datetime as dt

    return dt.date.fromisoformat(value["d"]) if "d" in value else None


KILLS = [*(f"file-written:{n}" for n in (1, 2, 3)), "before-commit:1", "after-commit:1"]


@pytest.mark.parametrize("kill", KILLS)
def test_killed_between_files_and_commit_nothing_is_lost_or_doubled_and_leftovers_go(tmp_path, killer, kill):
    log = {p: [{"s": "abc"[n % 3], "i": n} for n in range(9)] for p in (0, 1)}
    name, count = kill.split(":")
    LayoutSink(tmp_path, log, partition_by=["s"]).started()
    killer[name] = int(count)
    with pytest.raises(KilledError):
        LayoutSink(tmp_path, log, partition_by=["s"]).drain(6)
    sink = LayoutSink(tmp_path, log, partition_by=["s"])
    sink.drain(5)
    assert [(r["_partition"], r["_offset"], r["i"]) for r in sink.rows()] == [(p, o, o) for p, o in sink.expected()]
    root = Path(sink.storage.uri("t"))
    live = {add["path"] for add in sink.adds()}
    there = {str(path.relative_to(root)) for path in root.rglob("*.parquet")}
    left = {"file-written": int(count), "before-commit": 3, "after-commit": 0}[name]
    assert len(there - live) == left
    for path in there - live:
        os.utime(root / path, (0, 0))
    upkeep = maintain_table(sink.storage, "t")
    assert (upkeep.problem, upkeep.removed) == (None, left)
    assert [(r["_partition"], r["_offset"]) for r in sink.rows()] == sink.expected()


@pytest.fixture
def most_files(monkeypatch):
    return lambda most: monkeypatch.setattr(layout_module, "MOST_FILES", most)


def test_what_is_left_for_later_is_not_counted(tmp_path, most_files):
    most_files(1)
    log = {0: [{"s": "a", "i": 1}, {"s": "b"}, {"s": "b"}]}
    sink = LayoutSink(tmp_path, log, partition_by=["s"]).started()
    first, second = sink.drain()
    assert (first.ranges, second.ranges) == ({0: OffsetRange(0, 1)}, {0: OffsetRange(1, 3)})
    assert (first.records, second.records) == (1, 2)
    assert (first.consumed_bytes, second.consumed_bytes) == (len(b'{"s": "a", "i": 1}'), 2 * len(b'{"s": "b"}'))
    assert first.oldest_ms < second.oldest_ms


def one_row_of_all(rows, topic):
    """One row for all records: it must be made of those alone that are in the batch."""
    whole = rows.slice(0, 1)
    at = whole.schema.get_field_index("i")
    return whole.set_column(at, "i", pa.array([rows.num_rows], pa.int32()))


def many_values(rows, topic):
    """Three rows of each record, each with a value of its own."""
    tables = [rows.set_column(1, "i", pa.array([n] * rows.num_rows, pa.int32())) for n in range(3)]
    return pa.concat_tables(tables)


def test_transform_is_asked_again_for_what_is_left_in_the_batch(tmp_path, most_files):
    most_files(2)
    log = {0: [{"s": "a"}, {"s": "a"}, {"s": "b"}, {"s": "b"}]}
    layout = {"partition_by": ["s", "hour(_timestamp)"]}
    hook = {"transform_arrow": f"{__name__}:many_values", "rows": "any"}
    sink = LayoutSink(tmp_path, log, partition_by=["i", "hour(_timestamp)"], **hook).started()
    batches = sink.drain()
    assert [len(batch.files) for batch in batches] == [3] * 4, "one record is taken, whatever it makes"
    other = LayoutSink(tmp_path / "other", log, **layout, transform_arrow=f"{__name__}:one_row_of_all", rows="any")
    other.started().drain()
    assert sum(row["i"] for row in other.rows()) == 4


def test_value_of_a_transform_that_no_folder_can_have_is_the_transforms_fault(tmp_path):
    sink = LayoutSink(tmp_path, {0: [{}]}, partition_by=["s"], transform_arrow=f"{__name__}:long_text").started()
    with pytest.raises(TransformError, match="value of partition column s: too long for a folder"):
        sink.read()


def long_text(rows, topic):
    return rows.set_column(0, "s", pa.array(["x" * 300] * rows.num_rows, pa.string()))


def job_of(sink):
    return TopicJob(sink.plan(), {})


def records_in(log, ranges):
    return records_of([GivenRecord(p, o, log[p][o]) for p, r in ranges.items() for o in range(r.start, r.end)])


@pytest.fixture
def processor(monkeypatch):
    """Of dataframes, with the plan's two ends joined: Spark hands batches from one to the other as they are.

    What a run of it was asked for is in `runs`.
    """

    def run(self, job, ranges, notes):
        self.runs.append(ranges)
        found = sorted_of(job, records_in(self.log, ranges))
        notes.value.append(replace(ReadNote.of(job, ranges), rows=found.rows.num_rows))
        batches = iter(found.rows.combine_chunks().to_batches(max_chunksize=3))
        told = [row for batch in write_rows(self._context, job, batches) for row in batch.to_pylist()]
        return notes_of([Row(**row) for row in told])

    def make(sink):
        context = SimpleNamespace(accumulator=lambda *_: SimpleNamespace(value=[]))
        task = TaskContext({"queued.max.messages.kbytes": 1000}, sink.storage, None)
        made = DataFrameProcessor(SimpleNamespace(sparkContext=context), task, 1.0)
        made.runs, made.log = [], sink.log
        return made

    monkeypatch.setattr(DataFrameProcessor, "_run", run)
    monkeypatch.setattr(dataframe_writer, "failpoint", lambda *_: None)
    return make


@pytest.mark.parametrize(
    ("layout", "counts"), [({"partition_by": ["s", "day(_timestamp)"]}, (2, 3, 4)), ({}, (1, 1, 1))]
)
def test_writer_of_dataframes_writes_and_cuts_as_the_other(tmp_path, processor, most_files, layout, counts):
    """Counts: batches, runs of the writer, partition values."""
    most_files(2)
    log = {p: [{"s": "abcd"[n // 2], "i": -n} for n in range(8)] for p in (0, 1)}
    sink = LayoutSink(tmp_path, log, transform="m:f", **layout).started()
    dataframes, landed = processor(sink), 0
    while ranges := {p: OffsetRange(at, 8) for p, at in sink.table.positions(set(log)).next_offset.items() if at < 8}:
        result = dataframes.read(job_of(sink), ranges)
        (batch,) = result.batches
        assert len(batch.files) <= 2
        assert sink.table.commit(batch) is CommitOutcome.COMMITTED
        landed += 1
    values = {json.dumps(add["partitionValues"], sort_keys=True) for add in sink.adds()}
    assert (landed, len(dataframes.runs), len(values)) == counts
    assert [(r["_partition"], r["_offset"], r["s"]) for r in sink.rows()] == [
        (p, o, "abcd"[o // 2]) for p, o in sink.expected()
    ]


@pytest.mark.parametrize("layout", [{}, {"partition_by": ["s", "day(_timestamp)"]}])
def test_writer_of_dataframes_leaves_out_what_a_side_table_has(tmp_path, processor, layout):
    """Killed between side tables and the own table: the rows that are left out are none that the transform lost."""
    log = {p: [{"s": "abc"[n % 3], "i": -n} for n in range(9)] for p in (0, 1)}
    route = {"column": "s", "tables": {"a": "side/a", "b": "side/b"}}
    made = [LayoutSink(tmp_path, log, transform="m:f", route=route, **layout).started() for _ in range(2)]
    for sink, end in zip(made, (4, 9), strict=True):
        result = processor(sink).read(sink.job(sink.table.positions({0, 1})), {p: OffsetRange(0, end) for p in log})
        assert not result.failed
        (batch,) = result.batches
        outcome = sink.table._sides.commit(batch, {}) if end == 4 else sink.table.commit(batch)
        assert outcome is CommitOutcome.COMMITTED
    for value, table in (("a", "side/a"), ("b", "side/b"), ("c", "t")):
        wanted = [(p, o) for p in (0, 1) for o in range(9) if log[p][o]["s"] == value]
        assert [(r["_partition"], r["_offset"]) for r in sink.rows(table)] == wanted


def test_stopped_partition_is_named_only_where_its_record_is_in_the_batch(tmp_path, most_files):
    """`on_error: stop`: a bad record behind the cut is met by a later batch, and stops the partition there."""
    most_files(1)
    log = {0: [{"s": "a"}, {"s": "b"}, {"i": "no number"}]}
    sink = LayoutSink(tmp_path, log, partition_by=["s"], on_error="stop").started()
    records = records_in(log, {0: OffsetRange(0, 3)})
    first, _ = prepare_topic(sink.storage, job_of(sink), records, {0: OffsetRange(0, 3)})
    assert (first.batch.ranges, first.cuts) == ({0: OffsetRange(0, 1)}, {})
    rest = {0: OffsetRange(1, 3)}
    second, _ = prepare_topic(sink.storage, job_of(sink), records_in(log, rest), rest)
    assert (second.batch.ranges, second.cuts[0][0]) == ({0: OffsetRange(1, 2)}, 2)
