"""Bad values are found as pyarrow alone would find them, and cost no more than a few good ones."""

import json
import time

import pyarrow as pa
import pyarrow.json
import pytest
from confluent_kafka.cimpl import Message
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kgs_core.config import TopicRule
from kgs_core.ingest.fetch.topic_records import records_of
from kgs_core.ingest.formats.json import json_objects
from kgs_core.ingest.formats.parsed import ValueBatch
from kgs_core.ingest.worker.sorted_records import TopicJob
from kgs_core.lake.files.row_schema import VALUE_TYPES, parsed_schema
from kgs_core.lake.files.storage import Storage
from kgs_core.model import OffsetRange, TopicId
from tests.halving_parser import assert_judged_as_by_pyarrow_alone
from tests.processing import process_topic

# Names with the words in them that pyarrow takes for numbers, since these are rewritten on their way
SCHEMA = pa.schema([*VALUE_TYPES.items(), ("Info", pa.string()), ("x-NaN", pa.int64())])
READINGS = 3
RATIO = 5.0

NUMBER_WORDS = """
    0 -0 1 -1 1.0 -0.0 1e3 1E-3 2147483647 2147483648 -2147483648 -2147483649 9223372036854775807 9223372036854775808
    1e308 1e309 10e308 0.1e309 123.456e307 1e400 1e+00400 1e-400 3.4028235677973365e38 3.4028235677973366e38 -3.5e38
    1e9999999999999999999 -1e-9999999999999999999 0e9999999999999999999 0e-9999999999999999999
    NaN -NaN Inf -Inf Infinity -Infinity nan Infinit 01 1. 1.e1 .5 +1 - 1e 1e+ 0x1 1_0 ٣
"""
LONG_NUMBERS = ["9" * 400, "9" * 4500, f"0.{'0' * 400}1", f"1{'0' * 320}e-300"]
LONG_NUMBERS += [f"1e{sign}{digits}" for sign in ("", "+", "-") for digits in ("9" * 4001, f"{'0' * 4001}1")]
NUMBERS = st.sampled_from([*NUMBER_WORDS.split(), *LONG_NUMBERS])
TEXTS = st.sampled_from(
    [r"\u00e9", "é", r"\ud800", r"\udc00", r"\ud83d\ude00", r"\ud800\ud800", r"\\ud800", r"\u12", r"\x", r"\"", "\t"]
) | st.sampled_from(["\0", r"\u0000", "\x7f", "Inf", "-NaN", r"\uInf0", "}{", "true", "1", "\\", '"', "a", ""])
DAYS = st.builds(
    "{:04d}-{:02d}-{:02d}".format, st.sampled_from([0, 4, 1900, 2000, 2026, 9999]), *[st.integers(0, 32)] * 2
)
MOMENTS = st.builds(
    "{}{}{}{}{}".format,
    DAYS,
    st.sampled_from(["T", " ", "t", ""]),
    st.sampled_from(["", "00", "23", "24", "12:59", "12:60", "1200", "23:59:59", "23:59:60", "1:2:3"]),
    st.integers(0, 10).map(lambda digits: "." + "1234567890"[:digits]) | st.just(""),
    st.sampled_from(["", "Z", "z", " Z", "+02", "-0230", "+02:30", "+24:00", "-00:60", "+2", "+23:59"]),
)
QUOTED = (st.lists(TEXTS, max_size=2).map("".join) | DAYS | MOMENTS).map('"{}"'.format)
SCALARS = (
    NUMBERS | QUOTED | st.sampled_from(["null", "true", "false", "True", "", "{}", "[]", "[1,]", '{"long": 1e400}'])
)
NAMES = st.sampled_from(
    [*SCHEMA.names, *SCHEMA.names, "x", "y", r"\u006cong", "Inf", "NaN", "x--NaN", r"\ud800", "\udcff"]
)
VALUES = SCALARS | st.lists(SCALARS, max_size=2).map(lambda them: f"[{','.join(them)}]")
FIELDS = st.tuples(NAMES, VALUES).map(lambda pair: f'"{pair[0]}": {pair[1]}')
OBJECTS = st.lists(FIELDS, max_size=4).map(lambda them: f"{{{', '.join(them)}}}".encode("utf-8", "surrogateescape"))
CUT = st.tuples(OBJECTS, st.integers(0, 60), st.sampled_from([b"", b"\xff", b"\0", b'"', b"\\", b"}", b"\n", b"Inf"]))
ANY = OBJECTS | CUT.map(lambda it: it[0][: it[1]] + it[2] + it[0][it[1] :])


def parse_json(values, schema):
    return json_objects.parse_json(ValueBatch(pa.array(values, pa.binary()), schema, "t", TopicRule(topic="t")))


@pytest.mark.slow
@settings(max_examples=600)
@given(st.lists(ANY, min_size=1, max_size=3))
@example([b'{"x": 1e400}', b'{"x": {"y": "\\ud800"}}'])
def test_every_value_is_judged_as_by_pyarrow_alone(values):
    assert_judged_as_by_pyarrow_alone(values, SCHEMA, parse_json)


FEW = {
    "wrong kind": b'{"boolean": 1}',
    "object": b'{"string": {"id": 5, "names": ["a", "b"]}}',
    "array": b'{"long": [1, 2]}',
    "no whole number": b'{"long": 1.0}',
    "too big for an int": b'{"int": 2147483648}',
    "too big for a float": b'{"float": 1e39}',
    "too big for anything": b'{"x": 1e400}',
    "no number": b'{"int": -NaN}',
    "no time": b'{"timestamp": "2026-01-31T12:00:00.123456789Z"}',
    "no day": b'{"date": "2026-02-30"}',
    "twice": b'{"long": 1, "long": 1}',
    "not JSON": b'{"long": }',
    "not JSON, and an infinity": b'{"double": Inf,}',
    "two objects": b'{"long": 1}{"long": 2}',
    "not UTF-8": b'{"string": "\xff"}',
    "half a surrogate in a field that is no column": b'{"x": ["\\ud800"]}',
    "more digits than Python reads": b'{"int": ' + b"9" * 5000 + b"}",
    "tombstone": None,
}


@pytest.mark.parametrize("kind", FEW)
def test_bad_values_are_not_parsed_one_by_one(kind, monkeypatch):
    calls = []
    real = pyarrow.json.read_json
    monkeypatch.setattr(pyarrow.json, "read_json", lambda *args: calls.append(1) or real(*args))
    good = b'{"long": 1}'
    parsed = parse_json([FEW[kind], good, FEW[kind]] * 500, SCHEMA)
    assert len(parsed.good) == 500
    assert len(parsed.bad) == 1000
    assert len(calls) <= READINGS


@pytest.mark.parametrize("kind", [k for k in FEW if k.startswith(("wrong", "object", "array", "no ", "too big for a"))])
def test_reason_names_the_column(kind):
    (column,) = json.loads(FEW[kind].replace(b"-NaN", b"0"))
    reason = parse_json([FEW[kind]], SCHEMA).bad[0]
    assert reason.startswith("a number too big" if column == "x" else f"column {column}: ")


ORDER = {
    "order": 123456,
    "customer": "x",
    "items": [{"sku": "A-1", "price": "12.50"}, {"sku": "B-77", "price": "7.00"}],
    "total": 99.5,
    "at": "2026-01-31T12:00:00.123456+02:00",
    "note": "n" * 120,
}
ORDER_SCHEMA = {"order": "long", "customer": "string", "total": "double", "at": "timestamp", "note": "string"}
NESTED = json.dumps(ORDER | {"customer": {"id": 5, "name": "Ada"}}).encode()
BATCHES = {
    "400,000 small ones": ({"a": "boolean"}, b'{"a":true}', [b'{"a":1}'], 400_000),
    "half of the small ones": ({"a": "boolean"}, b'{"a":true}', [b'{"a":true}', b'{"a":1}'], 50_000),
    "one small one in a hundred": ({"a": "boolean"}, b'{"a":true}', [b'{"a":true}'] * 99 + [b'{"a":1}'], 50_000),
    "objects where texts are wanted": (ORDER_SCHEMA, json.dumps(ORDER).encode(), [NESTED], 20_000),
}


@pytest.mark.parametrize("kind", BATCHES)
def test_batch_of_bad_values_takes_no_longer_than_five_good_ones(kind, tmp_path):
    schema, good, bad, count = BATCHES[kind]
    (tmp_path / "t").mkdir()
    rule = TopicRule.model_validate({"topic": "t", "format": "json", "schema": schema})
    job = TopicJob("t", TopicId("id"), rule, "t", "t_dl", parsed_schema(rule), {})

    def cost(values):
        """CPU seconds of the processor, from records as the client gives them to files."""
        records = [Message(topic="t", offset=i, partition=0, value=v, timestamp=(1, i)) for i, v in enumerate(values)]
        began = time.process_time()
        batch, _ = process_topic(Storage(str(tmp_path)), job, records_of(records), {0: OffsetRange(0, count)})
        assert batch.bad_records == sum(v in (b'{"a":1}', NESTED) for v in values)
        return time.process_time() - began

    cost([good] * 1000)  # what is done once
    tries = 1 if count > 100_000 else 2
    bad_cost, good_cost = (min(cost(values * (count // len(values))) for _ in range(tries)) for values in (bad, [good]))
    assert bad_cost <= RATIO * good_cost
