"""A table of one column, below the rules for topics."""

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from kgs_core.config.settings import LakeSettings
from kgs_core.lake.delta.delta_table import DeltaTopicTable
from kgs_core.lake.delta.table_log import TableLog
from kgs_core.lake.files.parquet_writer import write_table

SCHEMA = pa.schema([("x", pa.int64())])
LAKE = LakeSettings(root="given-by-the-storage", checkpoint_interval=5)


def handle_of(storage, schema=SCHEMA, kind=TableLog, name="t", commits="auto"):
    """A table that is asked nothing yet. `kind` is the log below it."""
    return DeltaTopicTable(kind(storage, name, schema, LAKE), commits=commits)


def table_at(storage, kind=TableLog, **more):
    """A table that is there."""
    table = handle_of(storage, kind=kind, **more)
    table.create()
    return table


def fill(storage, table, commits):
    """So many commits of a row each, which move position a."""
    for n in range(commits):
        table.commit({"a": n or None}, {"a": n + 1}, [file_of(storage, n)])


def batch_of(*values):
    return pa.record_batch([pa.array(values, pa.int64())], schema=SCHEMA)


def file_of(storage, *values, name="t"):
    return write_table(storage, name, [batch_of(*values)], SCHEMA)


def values_in(storage, name="t"):
    table = DeltaTable(storage.uri(name), storage_options=storage.delta_options())
    files = pa.table(table.get_add_actions())["path"].to_pylist()
    paths, filesystem = [storage.path(name, file) for file in files], storage.filesystem()
    return sorted(v for path in paths for v in pq.read_table(path, filesystem=filesystem)["x"].to_pylist())
