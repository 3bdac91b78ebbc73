"""Types that raise a table's protocol: which readers take them. If it fails, docs/tables.md, "Types", is outdated."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable

from tests.system.delta_spark import rows_of_spark

_SCRIPT = """
wide, variant = (f"delta.`{folder}`" for folder in arguments)
spark.sql(f"CREATE TABLE {wide} (n INT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
spark.sql(f"INSERT INTO {wide} VALUES (1)")
spark.sql(f"ALTER TABLE {wide} ALTER COLUMN n TYPE BIGINT")
spark.sql(f"INSERT INTO {wide} VALUES (1099511627776)")
spark.sql(f"CREATE TABLE {variant} (v VARIANT) USING delta")
spark.sql(f"INSERT INTO {variant} SELECT parse_json('{{\\"a\\": 1}}')")
rows = [sorted(row.n for row in spark.table(wide).collect())]
rows.append([row.text for row in spark.sql(f"SELECT to_json(v) AS text FROM {variant}").collect()])
"""


def read(rows: Callable[[], Any]) -> str:
    """What comes of it: `read`, `in parts` (a variant's bytes), or `refused`."""
    try:
        found = rows()
    except Exception:  # noqa: BLE001 - each reader has its own
        return "refused"
    return "in parts" if any(isinstance(value, dict) for row in found for value in row.values()) else "read"


@pytest.mark.peer
def test_readers_of_wider_columns_and_variants(tmp_path: Path) -> None:
    folders = [str(tmp_path / name) for name in ("wide", "variant")]
    assert json.loads(rows_of_spark(_SCRIPT, *folders)) == [[1, 2**40], ['{"a":1}']]
    readers: dict[str, Callable[[str], Any]] = {
        "deltalake": lambda folder: DeltaTable(folder).to_pyarrow_table().to_pylist(),
        "polars": lambda folder: pl.read_delta(folder).to_dicts(),
    }
    found = {
        name: [read(lambda one=one, folder=folder: one(folder)) for folder in folders] for name, one in readers.items()
    }
    assert found == {"deltalake": ["refused", "in parts"], "polars": ["refused", "refused"]}
