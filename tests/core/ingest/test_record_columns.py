"""Columns beside those of the value: what of a key or a header is bad is bad for that record alone."""

import pyarrow as pa
import pytest
from confluent_kafka.cimpl import Message

from kgs_core.ingest.fetch.topic_records import records_of
from kgs_core.ingest.formats.json.json_objects import parse_json
from kgs_core.ingest.formats.parsed import Parsed, ValueBatch
from kgs_core.ingest.formats.record_columns import parse_changes, side_by_side
from tests.processing import sorted_of
from tests.topic_jobs import topic_job

RULE = {
    "format": "json",
    "schema": {"a": "long", "s": {"b": "array<struct<c: int>>"}},
    "unknown_fields": "rescue",
    "key_format": "json",
    "key_schema": {"id": "long", "m": "map<string,int>"},
    "headers": {"trace": "traceparent", "tenant": "x-tenant"},
}


def sort(*records, **more):
    """Rows and dead letters of records, each (value, key, headers)."""
    messages = [
        Message(topic="t", partition=0, offset=i, value=value, key=key, headers=headers, timestamp=(1, i))
        for i, (value, key, headers) in enumerate(records)
    ]
    job = topic_job(RULE | more)
    found = sorted_of(job, records_of(messages))
    assert found.rows.schema == job.plan.schema
    return found


def one(value=b"{}", key=None, headers=None, **more):
    """The row of one record, or why it is bad."""
    found = sort((value, key, headers), **more)
    rows = found.rows.to_pylist() or found.dead_letters["error"].to_pylist()
    return rows[0]


KEYS = {
    "none": (None, {"key_id": None, "key_m": None}),
    "an object": (b'{"id": 5, "m": {"a": 1}}', {"key_id": 5, "key_m": [("a", 1)]}),
    "no fields": (b"{}", {"key_id": None, "key_m": None}),
    "a field that is no column": (b'{"x": 5}', {"key_id": None, "_rescued": None}),
    "empty": (b"", "[empty] key: empty value"),
    "a wrong kind": (b'{"id": "5"}', "[wrong_type] key: column id: a text, wanted is a whole number (long)"),
    "no JSON": (b"5", "[not_json] key: not a JSON object"),
}


@pytest.mark.parametrize("kind", KEYS)
def test_key_becomes_columns_or_a_bad_record(kind):
    key, wanted = KEYS[kind]
    found = one(key=key)
    assert found == wanted if isinstance(wanted, str) else found.items() >= wanted.items()


def test_key_as_text():
    more = {"key_format": "string", "key_schema": None}
    assert one(key="é".encode(), **more)["key"] == "é"
    assert one(key=None, **more)["key"] is None
    assert one(key=b"\xff", **more) == "[not_utf8] key: not UTF-8"


def test_key_prefix_is_the_users():
    assert one(key=b'{"id": 5}', key_prefix="k.")["k.id"] == 5


HEADERS = {
    "none": (None, (None, None)),
    "one": ([("traceparent", b"00-1")], ("00-1", None)),
    "the last of several": ([("traceparent", b"1"), ("x-tenant", b"a"), ("traceparent", b"2")], ("2", "a")),
    "the last, which is null": ([("traceparent", b"1"), ("traceparent", None)], (None, None)),
    "names differ by case": ([("Traceparent", b"1")], (None, None)),
    "empty": ([("traceparent", b"")], ("", None)),
    "not UTF-8, and no column": ([("other", b"\xff")], (None, None)),
    "not UTF-8, and not the last": ([("traceparent", b"\xff"), ("traceparent", b"1")], ("1", None)),
    "not UTF-8": ([("traceparent", b"\xff")], "[not_utf8] header traceparent: not UTF-8"),
    "both not UTF-8": ([("x-tenant", b"\xff"), ("traceparent", b"\xff")], "[not_utf8] header traceparent: not UTF-8"),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_header_becomes_a_column_or_a_bad_record(kind):
    headers, wanted = HEADERS[kind]
    found = one(headers=headers)
    assert (found if isinstance(wanted, str) else (found["trace"], found["tenant"])) == wanted


RESCUES = {
    "nothing": (b'{"a": 1, "s": {"b": [{"c": 1}]}}', None),
    "nothing at all": (b"{}", None),
    "of the record": (b'{"x": 1.50, "a": 1, "y": {"z": [null, true, "\\u00e9\\n"]}}',
                      '{"x": 1.50, "y": {"z": [null, true, "é\\n"]}}'),
    "of a struct": (b'{"s": {"b": null, "x": -0.0}}', '{"s": {"x": -0.0}}'),
    "of an item": (b'{"s": {"b": [{"c": 1}, {"c": 2, "d": 1e400000}]}}', "s"),
    "of the second item": (b'{"s": {"b": [{"c": 1}, null, {"c": 2, "d": 9}]}}', '{"s": {"b": [null, null, {"d": 9}]}}'),
    "a name twice": (b'{"x": 1, "x": 2}', '{"x": 1, "x": 2}'),
    "a name that differs by case": (b'{"A": 1}', '{"A": 1}'),
    "a number no column takes": (b'{"x": 12345678901234567890123, "y": NaN}',
                                 '{"x": 12345678901234567890123, "y": NaN}'),
    "bytes not UTF-8": (b'{"x": "\xff"}', '{"x": "\\udcff"}'),
    "as deep as is rescued": (b'{"x": ' + b"[" * 199 + b"]" * 199 + b"}", '{"x": ' + "[" * 199 + "]" * 199 + "}"),
    "too deep": (b'{"x": ' + b"[" * 200 + b"]" * 200 + b"}", "nested deeper than 200 levels"),
    "a bracket in a text is no level": (b'{"x": "' + b"[" * 900 + b'"}', '{"x": "' + "[" * 900 + '"}'),
}  # fmt: skip


@pytest.mark.parametrize("kind", RESCUES)
def test_fields_without_a_column_are_rescued(kind):
    value, wanted = RESCUES[kind]
    found = one(value)
    if kind in ("of an item", "too deep"):  # a number that pyarrow refuses wherever it stands
        assert isinstance(found, str)
    else:
        assert found["_rescued"] == wanted


def test_without_rescue_there_is_no_column_and_no_bad_record():
    assert "_rescued" not in one(RESCUES["too deep"][0], unknown_fields="ignore")


def test_keys_of_maps_are_no_unknown_fields():
    schema = {"m": "map<string,struct<a: int>>", "l": "array<map<string,int>>"}
    assert one(b'{"m": {"k": {"a": 1}}, "l": [{"z": 1}]}', schema=schema)["_rescued"] is None
    found = one(b'{"m": {"k": {"a": 1}, "j": {"b": 2}}}', schema=schema)
    assert found["_rescued"] == '{"m": {"j": {"b": 2}}}'
    assert found["m"] == [("k", {"a": 1}), ("j", {"a": None})]


def test_record_waits_where_one_of_its_parsers_does_unless_it_is_bad_already():
    def column(name, *values):
        return pa.table({name: pa.array(values, pa.int64())})

    first = Parsed(column("a", 0, 2), [0, 2], {1: "bad"}, {3: "registry"})
    second = Parsed(column("b", 10), [0], {3: "worse"}, {1: "registry", 2: "registry"})
    both = side_by_side([first, second])
    assert both.table.to_pydict() == {"a": [0], "b": [10]}
    assert (both.good, both.bad, both.waiting) == ([0], {1: "bad", 3: "worse"}, {2: "registry"})


def test_what_is_bad_in_any_case_depends_on_no_registry():
    lacked = {1: 5.0, 2: 5.0}
    first = Parsed(pa.table({"a": [0]}), [0], {1: "no schema", 2: "no schema"}, unknown=lacked)
    second = Parsed(pa.table({"b": [0]}), [0], {1: "bad", 2: "no schema"}, unknown={2: 3.0})
    assert side_by_side([first, second]).unknown == side_by_side([second, first]).unknown == {2: 3.0}


def test_of_change_events_no_value_and_null_are_rows_of_nulls():
    values = pa.array([b'{"n": 1, "m": 2}', None, b"bad", b"null", b'{"n": 3}'], pa.binary())
    batch = ValueBatch(values, pa.schema([("n", pa.int64())]), rescue=True)
    found = parse_changes(parse_json, batch)
    assert (found.table["n"].to_pylist(), list(found.good)) == ([1, None, None, 3], [0, 1, 3, 4])
    assert found.rescued.to_pylist() == ['{"m": 2}', None, None, None]
    assert found.bad == {2: "not a JSON object"}
