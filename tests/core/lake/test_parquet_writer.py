"""Files and their statistics: a reader that skips files by them must never miss a row."""

import datetime as dt
import errno
import io
import json
import math
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.fs import LocalFileSystem

from kgs_core.errors import TransientError
from kgs_core.lake.files.parquet_writer import MAX_STRING_STATISTIC, write_table
from kgs_core.lake.files.row_schema import TIMESTAMP
from kgs_core.lake.files.storage import Storage

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
COLUMNS = {
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "string": (pa.string(), st.text(max_size=MAX_STRING_STATISTIC + 3)),
    "double": (pa.float64(), st.floats()),
    "boolean": (pa.bool_(), st.booleans()),
    "timestamp": (TIMESTAMP, st.integers(-(10**15), 10**15) | st.integers(-(2**63), 2**63 - 1)),
    "date": (pa.date32(), st.integers(-9999, 9999) | st.integers(-(2**31), 2**31 - 1)),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, (_, values) in COLUMNS.items()}), max_size=12)


def batch_of(rows):
    arrays = [pa.array([row.get(f.name) for row in rows], f.type) for f in SCHEMA]
    return pa.record_batch(arrays, schema=SCHEMA)


def written(folder, *batches):
    file = write_table(Storage(str(folder)), "t", batches, SCHEMA)
    return file, json.loads(file.stats)


@pytest.fixture
def tmp_path(tmp_path):
    """A lake with the folder of a table."""
    (tmp_path / "t").mkdir()
    return tmp_path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake")
    (folder / "t").mkdir()
    return folder


def ticks(text):
    """Microseconds since 1970 of a statistic."""
    assert len(text) == len("2026-01-31T00:00:00.000Z")
    return (dt.datetime.fromisoformat(text) - EPOCH) // dt.timedelta(microseconds=1)


def days(text):
    return (dt.date.fromisoformat(text) - EPOCH.date()).days


@settings(max_examples=200)
@given(ROWS, st.integers(0, 12))
def test_bounds_never_lie_inside_and_nulls_are_counted(folder, rows, cut):
    rows = [r | {"string": _encodable(r["string"])} for r in rows]
    file, stats = written(folder, batch_of(rows[:cut]), batch_of(rows[cut:]))
    assert (stats["numRecords"], file.rows) == (len(rows), len(rows))
    as_number = {"timestamp": ticks, "date": days}
    for name in COLUMNS:
        values = [r[name] for r in rows if r[name] is not None]
        assert stats["nullCount"].get(name, len(rows) - len(values)) == len(rows) - len(values)
        if "minValues" in stats and values:
            read = as_number.get(name, lambda bound: bound)
            assert read(stats["minValues"][name]) <= min(values)
            assert read(stats["maxValues"][name]) >= max(values)


def _encodable(text):
    return None if text is None else text.encode("utf-8", "ignore").decode()


UNBOUNDED = [
    {"timestamp": dt.datetime.max.replace(tzinfo=dt.UTC)},  # rounded up it would lie in the year 10000
    {"timestamp": 2**63 - 1},
    {"timestamp": -(2**63)},
    {"date": 2**31 - 1},
    {"date": -(2**31)},
    {"double": math.nan},
    {"double": -math.inf},
]


@pytest.mark.parametrize("row", UNBOUNDED)
def test_file_with_a_value_that_has_no_safe_bound_has_none_at_all(tmp_path, row):
    _, stats = written(tmp_path, batch_of([row | {"long": 1}, {"double": 0.0, "timestamp": 0, "date": 0}]))
    assert stats.keys() == {"numRecords", "nullCount"}


@pytest.mark.parametrize("tail", ["x", "\U0010ffff", "\U0010ffff\U0010ffff"])
def test_bounds_of_long_texts_are_cut_outwards(tmp_path, tail):
    text = "é" * MAX_STRING_STATISTIC + tail
    _, stats = written(tmp_path, batch_of([{"string": text}]))
    assert stats["minValues"] == {"string": text[:MAX_STRING_STATISTIC]}
    assert stats["maxValues"]["string"] >= text
    assert len(stats["maxValues"]["string"]) <= len(text)


def test_dictionary_is_given_up_where_values_do_not_come_again(tmp_path):
    rows = 50_000
    schema = pa.schema([("few", pa.int64()), ("different", pa.int64())])
    few, different = pa.array([n % 1000 for n in range(rows)]), pa.array([n * 2**40 for n in range(rows)])
    file = write_table(Storage(str(tmp_path)), "t", [pa.record_batch([few, different], schema=schema)], schema)
    group = pq.ParquetFile(tmp_path / "t" / file.path).metadata.row_group(0)
    assert group.column(0).total_uncompressed_size < 2 * rows
    assert group.column(1).total_uncompressed_size < 8 * rows + 32_768


class Disk:
    """pyarrow's local file system with so many bytes left."""

    def __init__(self, room):
        self.room = room
        self.real = LocalFileSystem()

    def __getattr__(self, name):
        return getattr(self.real, name)

    def open_output_stream(self, path):
        return pa.PythonFile(File(self, path), mode="w")


class File(io.FileIO):
    def __init__(self, disk, path):
        super().__init__(path, "w")
        self.disk = disk

    def write(self, data):
        if len(data) > self.disk.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.disk.room -= len(data)
        return super().write(data)


def test_full_disk_passes_wherever_the_file_is_when_it_comes(tmp_path, monkeypatch):
    """At the first byte, among the rows, in the footer: never the writer's complaint that it has no footer."""
    batches = [batch_of([{"string": str(n)}] * 100) for n in range(3)]
    size = write_table(Storage(str(tmp_path)), "t", batches, SCHEMA).size
    for room in range(0, size, 40):
        disk = Disk(room)
        monkeypatch.setattr(Storage, "filesystem", lambda _, disk=disk: disk)
        with pytest.raises(TransientError, match=r"table t: cannot write .*No space left on device"):
            write_table(Storage(str(tmp_path)), "t", batches, SCHEMA)
        assert len(os.listdir(tmp_path / "t")) == 1, "a file that is not whole was left behind"


def test_what_is_no_fault_of_disk_or_store_stays_what_it_is(tmp_path):
    def batches():
        yield batch_of([{"long": 1}])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_table(Storage(str(tmp_path)), "t", batches(), SCHEMA)
    assert os.listdir(tmp_path / "t") == []
