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
from tests.fuzz_json_scan import ODD, SCHEMA, differences

RULE = TopicRule(topic="t", format="json", schema=dict(FIELDS))
EASY = b'{"long": 7}'


def batch_of(values, schema=SCHEMA, **more):
    return ValueBatch(pa.array(values, pa.binary()), schema, "t", RULE, **more)


def scanned(values, schema=SCHEMA):
    return scan_json(pa.array(values, pa.binary()), schema, takes_unknown=True)


def one(value):
    """The fields that the scan makes of a value; None: it leaves it."""
    found = scanned([EASY, value])
    if len(found.left):
        return None
    return {name: field for name, field in found.table.to_pylist()[1].items() if field is not None}


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


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (r"\"\\\/\b\f\n\r\t", '"\\/\b\f\n\r\t'),
        (r"\u0041\u00e9\u20AC\ud83d\ude00", "Aé€😀"),
        (r"\u0000", "\0"),
        ("x" * 31 + r"\n" + "y" * 40, "x" * 31 + "\n" + "y" * 40),
        ("é" * 50 + r"\t€", "é" * 50 + "\t€"),
        ("", ""),
    ],
)
def test_text_is_read_without_its_escapes(written, text):
    assert one(f'{{"string": "{written}", "x": "{written}"}}'.encode()) == {"string": text}


@pytest.mark.parametrize(
    "number",
    ["0.30000000000000004", "9007199254740993", "-0.0", "1e23", "8.5e-60", "179769313486231570", "5e-64", "1.5E+2"],
)
def test_fraction_is_the_nearest_double(number):
    assert repr(one(f'{{"double": {number}}}'.encode())["double"]) == repr(float(number))


@pytest.mark.parametrize(
    "value",
    [
        b'{"long": 1, "long": 1}',
        b'{"long": 1.0}',
        b'{"int": 2147483648}',
        b'{"byte": -129}',
        b'{"float": 1e39}',
        b'{"double": NaN}',
        b'{"string": "\\ud800"}',
        b'{"string": "\xff"}',
        b'{"string": 5}',
        b'{"l\\u006fng": 1}',
        b'{"date": "2026-02-29"}',
        b'{"timestamp": "2026-01-31T24:00:00Z"}',
        b'{"list": [1]}',
        b'{"x": [1,]}',
        b'{"x": 1}{"x": 2}',
        b'{"x": "\x01"}',
        b"[]",
        b"",
        None,
    ],
)
def test_what_is_not_sure_is_left(value):
    assert one(value) is None


def test_objects_that_no_column_takes_are_passed_over():
    inner = {"a": [1, {"b": "x" * 50, "c": [[], {}, None, True]}], "d": {"e": {"f": -1.5e3}}}
    assert one(json.dumps({"x": inner, "long": 1, "y": [inner]}).encode()) == {"long": 1}


@pytest.mark.parametrize("name", ODD)
def test_name_that_json_writes_with_an_escape_is_left(name):
    """Taken as they stand, its bytes are another name, or no JSON."""
    schema = pa.schema({name: pa.int64()})
    values = [b"{}", b"{}", f'{{"{name}": 1}}'.encode(), json.dumps({name: 2}).encode(), b"{}"]
    assert scanned(values, schema).left.tolist() == ([3] if _is_another(name) else [2, 3])
    batch = batch_of(values, schema, rescue=True)
    together, by_pyarrow = parse_json(batch), parse_by_pyarrow(batch)
    assert (together.table, together.bad, together.rescued) == (by_pyarrow.table, by_pyarrow.bad, by_pyarrow.rescued)
    assert 2 in together.table.column(0).to_pylist()


def _is_another(name):
    """Whether its bytes between quotes are a field without a column, which is passed over."""
    return name == 'q":1,"r'


def test_fields_may_come_in_any_order_and_change_it():
    names = ["a", "b", "c", "d", "e"]
    schema = pa.schema({name: pa.int64() for name in names})
    orders = [names, names[::-1], names, ["c", "a", "e"], ["e", "x", "a", "c"], [], ["b"], names[::-1]]
    rows = [{name: i * 10 + ord(name) for name in order} for i, order in enumerate(orders)]
    found = scanned([json.dumps(row).encode() for row in rows], schema)
    assert found.table.to_pylist() == [{name: row.get(name) for name in names} for row in rows]


def test_what_is_left_comes_between_the_others_in_order():
    values = [EASY, b'{"long": 1.5}', b'{"list": [1, 2]}', EASY, None, b'{"string": "\\ud800"}', EASY, EASY, EASY]
    together, by_pyarrow = parse_json(batch_of(values)), parse_by_pyarrow(batch_of(values))
    assert together.table == by_pyarrow.table
    assert list(together.good) == list(by_pyarrow.good) == [0, 2, 3, 6, 7, 8]
    assert together.bad == by_pyarrow.bad


def test_fields_to_be_rescued_are_left_to_pyarrow():
    values = [EASY, b'{"long": 1, "x": [2]}', EASY, b'{"long": "no"}', EASY, EASY]
    together, by_pyarrow = (parse(batch_of(values, rescue=True)) for parse in (parse_json, parse_by_pyarrow))
    assert together.rescued.to_pylist() == by_pyarrow.rescued.to_pylist() == [None, '{"x": [2]}', None, None, None]
    assert together.table == by_pyarrow.table


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
