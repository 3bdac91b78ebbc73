"""A table to register, of every type that a table of kgs can have."""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from deltalake import Schema

from kgs_core.catalog.catalog import CatalogEntry
from kgs_core.ports import TableDescription

KINDS = {
    "id": pa.int64(),
    "small": pa.int16(),
    "tiny": pa.int8(),
    "n": pa.int32(),
    "price": pa.decimal128(10, 2),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "tags": pa.map_(pa.string(), pa.int32()),
    "items": pa.list_(pa.struct([("sku", pa.string()), ("sizes", pa.list_(pa.float64()))])),
    "raw": pa.binary(),
    "ok": pa.bool_(),
}


def fields(kinds: dict[str, pa.DataType] = KINDS) -> Sequence[dict[str, Any]]:
    schema = pa.schema([pa.field(name, kind) for name, kind in kinds.items()])
    found: list[dict[str, Any]] = json.loads(Schema.from_arrow(schema).to_json())["fields"]
    found[0]["metadata"] = {"comment": "number of the order"}
    return found


def entry(
    name: str = "main.bronze.orders", location: str = "s3://lake/bronze/orders", kinds: dict[str, pa.DataType] = KINDS
) -> CatalogEntry:
    return CatalogEntry(name, location, TableDescription(fields(kinds), ("day",), "orders of the shop"))
