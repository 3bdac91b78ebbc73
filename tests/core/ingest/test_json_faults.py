"""Bad values are found as pyarrow alone would find them, and cost no more than a few good ones."""

import json
import random
import time

import pyarrow as pa
import pyarrow.json
import pytest
from confluent_kafka.cimpl import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from kgs_core.ingest.fetch.topic_records import records_of
from kgs_core.lake.files.row_schema import VALUE_TYPES
from kgs_core.lake.files.storage import Storage
from kgs_core.model import OffsetRange
from tests.fuzz_json_scan import NUMBERS, any_value
from tests.processing import process_topic
from tests.slow_parser import assert_judged_as_by_pyarrow_alone
from tests.topic_jobs import parse_json, topic_job

# Names with the words in them that pyarrow takes for numbers, since these are rewritten on their way
SCHEMA = pa.schema([*VALUE_TYPES.items(), ("Info", pa.string()), ("x-NaN", pa.int64())])
READINGS = 3
RATIO = 5.0
PIECES = [*(bytes([sign]) for sign in b'{}[]":,\n \0\\\xff'), b"null", b"1", b'"long"', b'"x"']
WORDS = [r"\uInf0", "Inf", "-NaN", r"\u12", r"\ud800\ud800", r"\\ud800"]  # as pyarrow takes some of them for numbers


def any_record(chance):
    """A JSON object that is right or nearly so, or bits of one."""
    pieces = b"".join(chance.choices(PIECES, k=chance.randrange(12)))
    word = chance.choice(WORDS).encode()
    field = b'"%s": "%s", "x-NaN": %s' % (word, word, chance.choice(NUMBERS).encode())
    ways = (lambda: pieces, lambda: b"{%s}" % pieces, lambda: b"{%s}" % field, lambda: None)
    return chance.choices([lambda: any_value(chance), *ways], [12, 1, 1, 3, 1])[0]()


@pytest.mark.slow
@settings(max_examples=600)
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_every_value_is_judged_as_by_pyarrow_alone_whatever_stands_beside_it(seed, count):
    chance = random.Random(seed)
    values = [any_record(chance) for _ in range(count)]
    assert_judged_as_by_pyarrow_alone(values, SCHEMA, parse_json)


@pytest.mark.parametrize(
    "values",
    [
        [b'{"long":1}{"long":2}\x00}', b'{"long":9}'],
        [b'{"x":"}', b'"}', b"{}"],
        [b'{"x":[{}', b"{}]}", b"{}"],
        [b'{"x": 1e400}', b'{"x": {"y": "\\ud800"}}'],
    ],
)
def test_values_that_a_neighbour_could_complete_are_judged_alone(values):
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
    job = topic_job({"format": "json", "schema": schema})

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
