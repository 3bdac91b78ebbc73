"""Broken Avro values against fastavro, which reads each alone: `python -m tests.fuzz_decoders [COUNT [SEED]]`.

Good values lie between broken ones. What must hold of every batch:

- a good value is a row with what was written, whatever its neighbours are;
- a broken value that is a row is also for fastavro one datum, to its last byte, and the same one;
- one that is refused and that fastavro takes is refused for something that fastavro does not look at (`STRICTER`).
"""

import io
import itertools
import json
import random
import sys
from types import SimpleNamespace

import fastavro

from kgs_core.ingest.formats.avro.avro import avro_columns_of, parse_avro
from kgs_core.ingest.formats.parsed import ValueBatch
from tests.core.ingest.avro_values import binary, encoded, meant, random_datum, random_type, record, without_logical

STRICTER = ("out of range", "neither 0 nor 1", "below zero", "64 bits", "union does not have", "precision")
BATCH, GOOD_SHARE = 50, 0.3


def broken(draw, value):
    """A value with something wrong, or at least something else, in it."""
    at = draw.randrange(len(value) + 1)
    noise = draw.choice([b"", draw.randbytes(1), draw.randbytes(9), b"\xff" * 10, b"\x80" * 9 + b"\x01", b"\xfe" * 5])
    return draw.choice(
        [value[:at], value[:at] + noise, value[:at] + noise + value[at:], noise + value[at + 1 :], noise]
    )


def alone(schema, value):
    """What fastavro makes of one value; an exception, or too little, is None."""
    source = io.BytesIO(value)
    try:
        found = fastavro.schemaless_reader(source, schema)
    except Exception:  # noqa: BLE001 - of many kinds
        return None
    return found if source.tell() == len(value) else None


def one_batch(draw):
    """Compare one batch of one schema; returns how many broken values were in it, and how many of them were rows."""
    names = itertools.count()
    schema = record(*[random_type(draw, names) for _ in range(draw.randrange(1, 5))])
    rule = SimpleNamespace(avro_schema=json.dumps(schema))
    columns = avro_columns_of("t", rule, None)
    plain = fastavro.parse_schema(json.loads(json.dumps(without_logical(schema))))
    data = [random_datum(draw, schema) for _ in range(5)]
    good = [encoded(schema, datum) for datum in data]
    chosen = [(draw.randrange(5), draw.random() < GOOD_SHARE) for _ in range(BATCH)]
    values = [good[n] if is_good else broken(draw, good[n]) for n, is_good in chosen]
    parsed = parse_avro(ValueBatch(binary(values), columns, avro_schema=rule.avro_schema))
    parsed.table.validate(full=True)
    assert sorted([*parsed.good, *parsed.bad]) == list(range(BATCH)), json.dumps(schema)
    row_of = {position: row for row, position in enumerate(parsed.good)}
    seen = 0
    for i, (n, is_good) in enumerate(chosen):
        said = json.dumps(schema), values[i], parsed.bad.get(i)
        datum = data[n] if is_good else alone(plain, values[i])
        if i in row_of:
            seen += not is_good
            assert datum is not None, said
            expect_row(schema, datum, parsed.table.slice(row_of[i], 1), said)
        else:
            assert not is_good, said
            assert datum is None or any(words in parsed.bad[i] for words in STRICTER), said
    return sum(not is_good for _, is_good in chosen), seen


def expect_row(schema, datum, row, said):
    try:
        wanted, found = meant(schema, datum), row.to_pylist()[0]
    except (OverflowError, ValueError):  # a day or a time that Python cannot have
        return
    assert comparable(found) == comparable(wanted), (said, found, wanted)


def comparable(value):
    """A value whose NaN are equal, and whose maps are those of Python, which have a key once."""
    if isinstance(value, float) and value != value:  # noqa: PLR0124
        return "NaN"
    if isinstance(value, dict):
        return {key: comparable(each) for key, each in value.items()}
    if isinstance(value, list):
        pairs = value and all(isinstance(each, tuple) for each in value)
        return comparable(dict(value)) if pairs else [comparable(each) for each in value]
    return value


def main(count, seed):
    draw, broken_values, rows = random.Random(seed), 0, 0
    while broken_values < count:
        more, taken = one_batch(draw)
        broken_values, rows = broken_values + more, rows + taken
    print(f"{broken_values} broken values, {rows} of them are other data of their schema; seed {seed}")


if __name__ == "__main__":
    main(*map(int, (sys.argv[1:] + ["100000", "0"][len(sys.argv) - 1 :])))
