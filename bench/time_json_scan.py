"""Processor time of parsing kinds of JSON, with the scan and by pyarrow alone: `python -m bench.time_json_scan`."""

import json
import random
import time
from collections.abc import Callable, Mapping
from statistics import median

import click
import pyarrow as pa

from bench.records import FIELDS, SMALL_BYTES, SMALL_FIELDS, record_values
from kgs_core.config import TopicRule
from kgs_core.ingest.formats.json.json_objects import parse_by_pyarrow, parse_json
from kgs_core.ingest.formats.parsed import ValueBatch
from kgs_core.lake.files.row_schema import value_schema

SIZE, TIMES = 8_000_000, 5
CHANCE = random.Random(3)  # noqa: S311 - no secret
TEXT = {"id": "long", "note": "string"}
WIDE = dict(zip((f"c{i}" for i in range(100)), ["long", "double", "string", "boolean", "timestamp"] * 20, strict=True))
FLIGHT = dict.fromkeys(("icao24", "callsign", "origin"), "string") | dict.fromkeys(("lon", "lat", "v", "h"), "double")
NARROW = {f"column_{i:04d}": "long" for i in range(1000)}
SHUFFLED = CHANCE.sample(list(NARROW), len(NARROW))
RUSSIAN = "Мы читаем темы и пишем таблицы, ровно один раз. "
INNER = {"meta": {"a": [1, 2, {"b": "x" * 50}], "c": {"d": None, "e": [True, False]}}, "tags": ["a", "b"] * 5}
OF_TYPE: Mapping[str, Callable[[], object]] = {
    "long": lambda: CHANCE.randrange(10**12),
    "double": lambda: CHANCE.uniform(-180, 180),
    "string": lambda: "abc" * CHANCE.randrange(8),
    "boolean": lambda: CHANCE.choice([True, False]),
    "timestamp": lambda: f"2026-01-31T12:00:00.{CHANCE.randrange(10**6):06d}Z",
}


def _of(fields: Mapping[str, str], share: float = 1.0) -> str:
    return json.dumps({name: OF_TYPE[kind]() for name, kind in fields.items() if CHANCE.random() < share})


def _note(text: str, *, escaped: bool) -> str:
    return json.dumps({"id": CHANCE.randrange(10**6), "note": text}, ensure_ascii=escaped)


def _kinds() -> dict[str, tuple[list[bytes], Mapping[str, str]]]:
    base, small = record_values(8200), record_values(80_000, size=SMALL_BYTES)
    mixed = [value if CHANCE.randrange(100) else b'{"id": "x", "device": 5}' for value in base]
    made: dict[str, tuple[Callable[[], str], Mapping[str, str]]] = {
        "flights, fractions of 17 digits": (lambda: _of(FLIGHT), FLIGHT),
        "100 columns, a fifth missing": (lambda: _of(WIDE, 0.8), WIDE),
        "1000 columns, in another order": (lambda: _of(dict.fromkeys(SHUFFLED, "long")), NARROW),
        "nested fields without a column": (lambda: json.dumps({"id": 5, **INNER}), TEXT),
        "Russian": (lambda: _note(RUSSIAN * CHANCE.randrange(1, 9), escaped=False), TEXT),
        "Russian, each letter escaped": (lambda: _note(RUSSIAN * CHANCE.randrange(1, 9), escaped=True), TEXT),
        "JSON in a text": (lambda: _note(json.dumps(INNER), escaped=False), TEXT),
        "escapes and UTF-8 by chance": (
            lambda: _note("".join(CHANCE.choices('abcd ÄÖ\n"\\\tж中😀', k=400)), escaped=False),
            TEXT,
        ),
    }
    out = {"1 KB": (base, FIELDS), "1 KB, 1 % bad": (mixed, FIELDS), "100 bytes": (small, SMALL_FIELDS)}
    for name, (make, fields) in made.items():
        values: list[bytes] = []
        size = 0
        while size < SIZE:
            values.append(make().encode())
            size += len(values[-1])
        out[name] = values, fields
    return out


def _cost(parse: Callable[[ValueBatch], object], batch: ValueBatch, size: int) -> float:
    found = []
    for _ in range(TIMES):
        began = time.process_time()
        parse(batch)
        found.append((time.process_time() - began) / size * 1e9)
    return median(found)


def main() -> None:
    """A line for each kind."""
    click.echo(f"{'CPU s/GB':34}{'pyarrow':>8}{'with the scan':>15}")
    for name, (values, fields) in _kinds().items():
        rule = TopicRule(topic="t", format="json", schema=dict(fields))
        batch = ValueBatch(pa.array(values, pa.binary()), value_schema(rule))
        size = sum(map(len, values))
        click.echo(f"{name:34}{_cost(parse_by_pyarrow, batch, size):8.2f}{_cost(parse_json, batch, size):15.2f}")


if __name__ == "__main__":
    main()
