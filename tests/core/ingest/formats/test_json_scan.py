"""The compiled scan takes what pyarrow's reader would take, makes the same of it, and leaves it the rest."""

import ctypes
import json
import mmap

import pyarrow as pa
import pytest

from bench.records import FIELDS, SMALL_BYTES, SMALL_FIELDS, record_values
from kgs_core.config import TopicRule
from kgs_core.ingest.formats.json.json_objects import parse_by_pyarrow, parse_json
from kgs_core.ingest.formats.json.json_scanner import scan_json
from kgs_core.ingest.formats.parsed import ValueBatch
from kgs_core.lake.files.row_schema import value_schema
from tests.fuzz_json_scan import SCHEMA, differences

EASY = b'{"long": 7}'


def batch_of(values, schema=SCHEMA, **more):
    return ValueBatch(pa.array(values, pa.binary()), schema, **more)


def scanned(values, schema=SCHEMA):
    return scan_json(pa.array(values, pa.binary()), schema, takes_unknown=True)


@pytest.mark.slow
def test_what_is_taken_is_what_pyarrow_makes_of_it():
    wrong, tally = differences(40_000, seed=7)
    assert wrong == []
    assert tally["taken"] > 0.7 * tally["good"]


@pytest.mark.parametrize(
    ("fields", "size"), [(FIELDS, None), (SMALL_FIELDS, SMALL_BYTES)], ids=["of 1 KB", "of 100 bytes"]
)
def test_all_records_of_the_benchmarks_are_taken(fields, size):
    values = record_values(500, size=size) if size else record_values(500)
    batch = batch_of(values, value_schema(TopicRule(topic="t", format="json", schema=dict(fields))))
    found = scanned(values, batch.columns)
    assert not len(found.left)
    assert found.table == parse_by_pyarrow(batch).table


def test_where_most_are_left_the_scan_is_given_up():
    assert scanned([b'{"list": []}', EASY, b'{"list": []}'] * 1000) is None
    late = [EASY] * 64 + [b'{"list": []}'] * 1000
    assert scanned(late) is None
    assert parse_json(batch_of(late)).table == parse_by_pyarrow(batch_of(late)).table


def test_null_that_has_bytes_is_left():
    offsets = pa.array([0, len(EASY), 2 * len(EASY)], pa.int32()).buffers()[1]
    values = pa.Array.from_buffers(pa.binary(), 2, [pa.py_buffer(b"\x01"), offsets, pa.py_buffer(EASY * 2)])
    assert scan_json(values, SCHEMA, takes_unknown=True).left.tolist() == [1]


def test_slice_is_scanned_from_its_first_value():
    values = pa.array([b"no", EASY, b'{"long": 8}', b"no"], pa.binary())[1:3]
    assert scan_json(values, SCHEMA, takes_unknown=True).table["long"].to_pylist() == [7, 8]


@pytest.mark.parametrize("text", ["x" * 40, "\\n" * 20, "é" * 20, "x", ""])
def test_no_byte_behind_the_values_is_read(text):
    """The values end where memory ends that may be read."""
    value = json.dumps({"x": "", "string": "TEXT"}).replace("TEXT", text).encode()
    count = mmap.PAGESIZE // len(value)
    size = count * len(value)
    with mmap.mmap(-1, 2 * mmap.PAGESIZE) as memory:
        memory[mmap.PAGESIZE - size : mmap.PAGESIZE] = value * count
        begin = ctypes.addressof(held := ctypes.c_char.from_buffer(memory))
        end = begin + mmap.PAGESIZE
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(end), mmap.PAGESIZE, 0) == 0
        offsets = pa.array(range(0, size + 1, len(value)), pa.int32()).buffers()[1]
        values = pa.Array.from_buffers(pa.binary(), count, [None, offsets, pa.foreign_buffer(end - size, size, held)])
        found = scan_json(values, SCHEMA, takes_unknown=True)
        assert found.table["string"].to_pylist() == [json.loads(value)["string"]] * count
        assert not len(found.left)
        del values, held
