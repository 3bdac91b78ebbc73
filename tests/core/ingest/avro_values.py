"""Random Avro schemas and values, and what fastavro makes of one value alone."""

import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal

import fastavro
import pyarrow as pa

EXACT = Context(prec=60)
LOGICAL = [
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "timestamp-nanos"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0},
]
PLAIN = ["boolean", "int", "long", "float", "double", "string", "bytes"]


def record(*fields, name="r"):
    return {"type": "record", "name": name, "fields": [{"name": f"f{n}", "type": t} for n, t in enumerate(fields)]}


def random_type(draw, names, depth=0):
    kind = "plain" if depth > 2 else draw.choices([*MAKERS, "plain"], [3, 1, 1, 1, 2, 1, 1, 1, 8])[0]
    return draw.choice(PLAIN) if kind == "plain" else MAKERS[kind](draw, names, depth + 1)


def nullable(draw, names, depth):
    inner = random_type(draw, names, depth)
    return inner if isinstance(inner, list) else draw.choice([["null", inner], [inner, "null"]])


def fixed_decimal(draw, names, _):
    size = draw.choice([3, 16, 20])
    named = {"type": "fixed", "name": f"x{next(names)}", "size": size}
    return {**named, "logicalType": "decimal", "precision": 5, "scale": 1}


MAKERS = {
    "logical": lambda draw, names, depth: draw.choice(LOGICAL),
    "enum": lambda draw, names, depth: {"type": "enum", "name": f"e{next(names)}", "symbols": ["A", "B", "C"]},
    "fixed": lambda draw, names, depth: {"type": "fixed", "name": f"x{next(names)}", "size": draw.randrange(1, 6)},
    "decimal": fixed_decimal,
    "nullable": nullable,
    "array": lambda draw, names, depth: {"type": "array", "items": random_type(draw, names, depth)},
    "map": lambda draw, names, depth: {"type": "map", "values": random_type(draw, names, depth)},
    "record": lambda draw, names, depth: record(
        random_type(draw, names, depth), draw.choice(PLAIN), name=f"n{next(names)}"
    ),
}


def random_datum(draw, kind):
    """A value of a type, without its logical type: as what it is written as."""
    if isinstance(kind, list):
        other = kind[0] if kind[1] == "null" else kind[1]
        return None if draw.random() < 0.3 else random_datum(draw, other)
    name = kind if isinstance(kind, str) else kind["type"]
    make = {
        "boolean": lambda: draw.random() < 0.5,
        "int": lambda: draw.choice([0, -1, draw.randrange(1_000_000), 2_000_000]),
        "long": lambda: draw.choice([0, -1, draw.randrange(86_400_000_000), 1_700_000_000_000]),
        "float": lambda: draw.choice([0.5, -2.0, 1e10]),
        "double": draw.random,
        "string": lambda: draw.choice(["", "a", "\u00e4\u20ac\U0001f600", "x" * 100]),
        "bytes": lambda: draw.randbytes(draw.randrange(1, 3)),
        "enum": lambda: draw.choice(kind["symbols"]),
        "fixed": lambda: (draw.choice([0, 7, -7])).to_bytes(kind["size"], "big", signed=True),
        "array": lambda: [random_datum(draw, kind["items"]) for _ in range(draw.randrange(4))],
        "map": lambda: {f"k{n}": random_datum(draw, kind["values"]) for n in range(draw.randrange(4))},
        "record": lambda: {f["name"]: random_datum(draw, f["type"]) for f in kind["fields"]},
    }
    return make[name]()


def without_logical(kind):
    """The schema of the same bytes without what the types mean."""
    if isinstance(kind, list):
        return [without_logical(each) for each in kind]
    if isinstance(kind, dict):
        return {k: without_logical(v) for k, v in kind.items() if k != "logicalType"}
    return kind


def encoded(schema, datum):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(without_logical(schema)))), datum)
    return out.getvalue()


def instant(micros):
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


MEANINGS = {
    "date": lambda kind, datum: date(1970, 1, 1) + timedelta(days=datum),
    "timestamp-millis": lambda kind, datum: instant(datum * 1000),
    "timestamp-micros": lambda kind, datum: instant(datum),
    "timestamp-nanos": lambda kind, datum: instant(datum // 1000),
    "decimal": lambda kind, datum: EXACT.scaleb(Decimal(int.from_bytes(datum, "big", signed=True)), -kind["scale"]),
    "array": lambda kind, datum: [meant(kind["items"], each) for each in datum],
    "map": lambda kind, datum: [(key, meant(kind["values"], each)) for key, each in datum.items()],
    "record": lambda kind, datum: {f["name"]: meant(f["type"], datum[f["name"]]) for f in kind["fields"]},
}


def meant(kind, datum):
    """The value that a column has of what is written."""
    if isinstance(kind, list):
        kind = kind[0] if kind[1] == "null" else kind[1]
    if datum is None or isinstance(kind, str):
        return datum
    meaning = MEANINGS.get(kind.get("logicalType", kind["type"]), lambda kind, datum: datum)
    return meaning(kind, datum)


def binary(values):
    return pa.array(values, pa.binary())
