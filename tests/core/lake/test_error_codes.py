"""Codes of dead letters: those that docs/tables.md promises, for every reason that a format gives."""

import ast
import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from kgs_core.accel import avro_steps
from kgs_core.ingest.formats.avro.avro import parse_avro
from kgs_core.ingest.formats.json import json_objects
from kgs_core.ingest.formats.parsed import ValueBatch
from kgs_core.ingest.formats.protobuf.protobuf_messages import MessageDecoder, natural_columns
from kgs_core.ingest.formats.record_columns import header_columns, parse_keys
from kgs_core.lake.files.row_schema import HEADERS, schema_of
from kgs_core.lake.rule.error_codes import CODES, OTHER, code_of, with_code
from tests.core.ingest.avro_values import encoded, record
from tests.protobuf_values import EVERYTHING, Everything, message_class
from tests.topic_jobs import parse_json, values_of

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/tables.md").read_text().split("## Dead letters")[1].split("\n## ")[0]
DEEP = b'{"q": ' + b"[" * 100_000 + b"]" * 100_000 + b', "x": %s}'  # deeper than Python reads: pyarrow alone judges


def json_reason(kind, value, column="x"):
    return parse_json([value], schema_of({column: kind})).bad[0]


JSON = [
    ("long", None, "tombstone"),
    ("long", b" ", "empty"),
    ("long", b"[1]", "not_json"),
    ("long", b'{"x":}', "not_json"),
    ("long", b'{"x": 1}{"x": 2}', "not_json"),
    ("long", b'{"x": "a"}', "wrong_type"),
    ("long", b'{"x": 1.0}', "wrong_type"),
    ("struct<y: array<map<string,long>>>", b'{"x": {"y": [{"z": true}]}}', "wrong_type"),
    ("struct<y: long>", b'{"x": 1}', "wrong_type"),
    ("timestamp", b'{"x": "noon"}', "wrong_type"),
    ("binary", b'{"x": "a"}', "wrong_type"),
    ("decimal(9,2)", b'{"x": "a"}', "wrong_type"),
    ("decimal(9,2)", b'{"x": true}', "wrong_type"),
    ("decimal(9,2)", b'{"x": 0.125}', "too_big"),
    ("array<decimal(9,2)>", b'{"x": ["0.125"]}', "too_big"),
    ("decimal(9,2)", b'{"x": 12345678}', "too_big"),
    ("byte", b'{"x": 128}', "too_big"),
    ("float", b'{"x": 1e39}', "too_big"),
    ("double", b'{"x": 1e400}', "too_big"),
    ("long", b'{"x": 1, "x": 2}', "given_twice"),
    ("map<string,long>", b'{"x": {"y": 1, "y": 2}}', "given_twice"),
    ("array<struct<y: long>>", b'{"x": [{"y": 1, "y": 2}]}', "given_twice"),
    ("string", b'{"x": "\xff"}', "not_utf8"),
    ("string", b'{"x": "\\ud800"}', "not_utf8"),
    ("map<string,long>", DEEP % b"{}", OTHER),
    ("long", DEEP % b'"a"', "wrong_type"),
    ("long", DEEP % b"1.5", "wrong_type"),
    ("long", DEEP % b'1, "x": 2', "given_twice"),
    ("double", DEEP % b"1e400", "too_big"),
    ("float", DEEP % b"1e39", "too_big"),
    ("timestamp", DEEP % b'"not UTF-8, too big"', "wrong_type"),
    ("date", DEEP % b'"noon"', "wrong_type"),
    ("binary", DEEP % b'"a"', "wrong_type"),
    ("decimal(9,2)", DEEP % b"0.125", "too_big"),
    ("decimal(9,2)", DEEP % b"12345678", "too_big"),
    ("decimal(9,2)", DEEP % b"1e300", "too_big"),
    ("decimal(9,2)", DEEP % b'"a"', "wrong_type"),
    ("string", DEEP % b'"\xff"', "not_utf8"),
    ("string", DEEP % b'"\\ud800"', "not_utf8"),
    ("long", DEEP[:-1], "not_json"),
]


@pytest.mark.parametrize(("kind", "value", "code"), JSON)
def test_code_of_a_json_value(kind, value, code):
    reason = json_reason(kind, value)
    assert with_code(reason) == f"[{code}] {reason}"
    assert code_of(f"key: {reason}") == code, "of a key likewise, but that one is never a tombstone"


@pytest.mark.parametrize(
    "name", ["surrogate_key", "overflow", "given twice", "wanted is", "too big", "conversion", "utf-8"]
)
@pytest.mark.parametrize(("value", "code"), [('"a"', "wrong_type"), ("9223372036854775808", "too_big")])
def test_a_columns_name_says_nothing_of_what_is_wrong(name, value, code):
    assert code_of(json_reason("long", f'{{"{name}": {value}}}'.encode(), name)) == code
    nested = f'{{"{name}": [{{"{name}": {value}}}]}}'.encode()
    columns = pa.schema([(name, pa.list_(pa.struct([(name, pa.int64())])))])
    assert code_of(parse_json([nested], columns).bad[0]) == code


def test_codes_of_avro_values():
    codes = {avro_steps.OUT_OF_RANGE: "too_big", avro_steps.BIG_DECIMAL: "too_big", avro_steps.NOT_UTF8: "not_utf8"}
    for fault, words in avro_steps.FAULTS.items():
        assert {code_of(f"{place}{words}") for place in ("field f0.overflow: ", "value ")} == {
            codes.get(fault, "malformed")
        }
    schema = record("long")
    text = json.dumps(schema)
    values = pa.array([b"", encoded(schema, {"f0": 1}) + b"x", encoded(schema, {"f0": 1})], pa.binary())
    narrow = parse_avro(ValueBatch(values, schema_of({"f0": "int"}), avro_schema=text)).bad
    bad = parse_avro(ValueBatch(values, schema_of({"f0": "long"}), avro_schema=text)).bad
    assert [code_of(reason) for reason in bad.values()] == ["malformed"] * 2
    assert {code_of(reason) for reason in narrow.values()} == {"no_schema"}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"f_uint64": 2**63}, "too_big"),
        ({"r_fixed64": [1, 2**64 - 1]}, "too_big"),
        ({"ts": {"seconds": 2**40}}, "wrong_type"),
        ({"du": {"seconds": 1, "nanos": -1}}, "wrong_type"),
        ({"j": {"a": float("nan")}}, "wrong_type"),
    ],
)
def test_code_of_a_protobuf_message(fields, code):
    descriptor = message_class(EVERYTHING, "p.Everything").DESCRIPTOR
    decoder = MessageDecoder(descriptor, natural_columns(descriptor))
    assert {code_of(reason) for reason in decoder.decode([Everything(**fields).SerializeToString()]).bad.values()} == {
        code
    }


def test_codes_of_other_protobuf_messages():
    descriptor = message_class(EVERYTHING, "p.Everything").DESCRIPTOR
    columns = schema_of({"m": "struct<a: long, s: long>", "f_int64": "int"})
    decoder = MessageDecoder(descriptor, columns)
    values = [b"\xff", Everything(f_int64=1).SerializeToString(), Everything(m={"a": 1}).SerializeToString()]
    assert [code_of(reason) for reason in decoder.decode(values).bad.values()] == ["malformed", *["no_schema"] * 2]


def test_codes_of_keys_and_headers():
    entry = {"key": "h", "value": b"\xff"}
    assert code_of(header_columns(pa.array([[entry]], HEADERS), {"c": "h"}).bad[0]) == "not_utf8"
    keys = values_of([None, b'{"x": 1, "x": 2}'], schema_of({"x": "long"}))
    assert {code_of(reason) for reason in parse_keys(json_objects.parse_json, keys, ["k"]).bad.values()} == {
        "given_twice"
    }


def test_every_code_is_in_the_documentation_and_no_other():
    rows = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(CODES), "docs/tables.md, Dead letters"


def test_reasons_of_records_and_those_with_a_code_of_their_own():
    assert code_of("[mine] wanted is") == "mine"
    assert code_of("value of partition column d: too long for a folder") == "no_partition"
    assert code_of("timestamp of the record: 1 ms since 1970 is out of range") == "bad_timestamp"
    assert code_of("header of the record: a key that is not UTF-8") == "bad_header"
    assert code_of("another") == OTHER


WHERE = [*(ROOT / "kgs_core/ingest/formats").rglob("*.py"), ROOT / "kgs_core/registry/wire_format.py",
         ROOT / "kgs_core/accel/avro_steps.py", ROOT / "kgs_core/ingest/fetch/topic_records.py"]  # fmt: skip
OF_SCHEMAS = ("avro_schema", "protobuf_schema", "json_schema", "json_schema_types", "json_inference")
"""What these say is of a schema, and stands behind its number, or is not said of records."""
PARTS = {
    *("true or false", "a text", "a number", "a whole number", "an object", "an array"),
    *("a time like 2026-01-31T12:00:00.123456Z (timestamp)", "a day like 2026-01-31 (date)"),
    *("x: x", "x x: x", "key: x", "field x: x", "header x: x", "value x", "an entry: x", "an item: x", "Column(/x): x"),
    *("{xx, xx}", " in row 0"),
    *("its schema has no fields", "topic x: subject x", "topic x: avro_schema"),
    "field x begins with '_', as the columns that kgs adds",
}
"""Parts of reasons, and what is not said of records."""
OTHERS = {"nested deeper than x levels"}
"""Reasons whose code is `other`."""


def _words(node):
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _said(tree):
    """Every text of several words that is no documentation, no pattern, no word of a log, and in no error that ends."""
    left_out = set()
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr():
                left_out |= {id(part) for part in ast.walk(node)} - {id(node)}
            case ast.Expr(ast.Constant()):
                left_out.add(id(node.value))
            case ast.Raise(ast.Call(ast.Name(name))) if name.endswith("Error"):
                left_out |= {id(part) for part in ast.walk(node)}
            case ast.Call(ast.Attribute(ast.Name("re" | "_log")) | ast.Name("kind")):  # `kind` is one of an error
                left_out |= {id(part) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) not in left_out and (words := _words(node)) is not None and " " in words.strip():
            yield words


def test_every_reason_in_the_source_has_a_code():
    found = {}
    for path in WHERE:
        if path.stem not in OF_SCHEMAS:
            for words in _said(ast.parse(path.read_text())):
                found[words] = code_of(words)
    assert len(found) > 60
    without = {words for words, code in found.items() if code == OTHER} - PARTS
    assert without == OTHERS, "reasons, with x for each value, that no words of error_codes.py match"
