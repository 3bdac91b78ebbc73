"""The programs of docs/tables.md, run as they stand there."""

import json
import re
from pathlib import Path

import confluent_kafka
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from kgs_core.lake.files.row_schema import DEAD_LETTER_SCHEMA, ORIGIN_FIELDS, RAW_VALUE

PAGE = (Path(__file__).parents[2] / "docs/tables.md").read_text()
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def rows(values):
    columns = [
        pa.array(["id"] * len(values)),
        pa.array([0] * len(values), pa.int32()),
        pa.array(range(len(values)), pa.int64()),
        *(pa.nulls(len(values), field.type) for field in ORIGIN_FIELDS[3:]),
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(ORIGIN_FIELDS))


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()

    def program(number):
        found = {}
        exec(compile(PROGRAMS[number], f"docs/tables.md, program {number}", "exec"), found)
        return found

    return program


def test_all_programs_of_the_page_are_run_here():
    assert len(PROGRAMS) == 3


def test_reading(run):
    table = rows([1, 2]).append_column("amount", pa.array([1.5, 2.5]))
    write_deltalake("lake/orders", table.set_column(4, ORIGIN_FIELDS[4], pa.array([b"a", b"b"])))
    found = run(0)
    assert found["keys"].to_pylist() == ["a", "b"]
    assert found["newest"].to_pylist() == [{"_partition": 0, "_offset_max": 1}]


def test_nested_values(run):
    orders = [
        {"customer": {"id": 1, "name": "Zoë"}, "items": [{"sku": "a", "price": 1.5}], "amount": 1.5, "more": [1]},
        {"customer": {"id": 2, "name": "x\ny"}, "items": [], "amount": None},
    ]
    found = run(1)
    values = [*(json.dumps(order, ensure_ascii=False, indent=1).encode() for order in orders), None]
    orders.append({"customer": None, "items": None, "amount": None})
    table = rows(values).add_column(0, RAW_VALUE, pa.array(values))
    schema = pa.schema([*found["ORDER"], *ORIGIN_FIELDS])
    made = found["orders"](table, "orders").select(schema.names).cast(schema)
    assert made["customer"].to_pylist() == [order["customer"] for order in orders]
    assert made["items"].to_pylist() == [order["items"] for order in orders]
    assert made["_offset"].to_pylist() == [0, 1, 2]
    assert found["orders"](table.slice(0, 0), "orders").schema.names == schema.names, "its columns are asked for so"


def test_dead_letters_are_produced_again(run, monkeypatch):
    """Into librdkafka's own mock cluster."""
    real, sent = confluent_kafka.Producer, []

    def mocked(config):
        assert config == {"bootstrap.servers": "localhost:9092"}
        producer = real({"test.mock.num.brokers": 1})

        class Seen:
            poll, flush = producer.poll, producer.flush

            def produce(self, *record):
                sent.append(record)
                producer.produce(*record)

        return Seen()

    monkeypatch.setattr(confluent_kafka, "Producer", mocked)
    dead_letters = rows([b"{", b"["]).add_column(0, RAW_VALUE, pa.array([b"{", b"["]))
    write_deltalake(
        "lake/orders_dead_letters", dead_letters.add_column(1, DEAD_LETTER_SCHEMA.field("error"), pa.array(["x", "y"]))
    )
    assert run(2)["left"] == 0
    assert sent == [("orders", b"{", None), ("orders", b"[", None)]
