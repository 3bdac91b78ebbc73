"""The derived table as readers find it."""

import decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from kgs_core.adapters.lake.derived_table import DerivedTable
from kgs_core.adapters.lake.storage import Storage
from kgs_core.config.settings import LakeSettings


@pytest.mark.parametrize("digits", [15, 18, 38])
def test_readers_find_long_decimals(tmp_path, digits):
    """Bounds that are rounded would make them pass over the file."""
    value = decimal.Decimal("9" * digits).scaleb(-2, decimal.Context(prec=60))
    kind = pa.decimal128(digits, 2)
    storage = Storage(str(tmp_path))
    table = DerivedTable(storage, "d", LakeSettings(root=storage.root))
    rows = pa.table({"_key": pa.array([b"k"]), "d": pa.array([value], kind)})
    table.load(rows.schema)
    table.replace(rows, {"kgs/latest/x": 1})
    found = DeltaTable(storage.uri("d")).to_pyarrow_dataset().to_table(filter=pc.field("d") == pa.scalar(value, kind))
    assert found.num_rows == 1
