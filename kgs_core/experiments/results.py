"""Results of experiments as Parquet: one row per measurement and run, from which every figure is computed.

A place that cannot be read or written, and a file of something else, raises `ConfigError`, here and in `store`.
"""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kgs_core.errors import ConfigError
from kgs_core.lake.files.stored_path import AnyPath
from kgs_core.simulation.comparison import Replayed
from kgs_core.simulation.latency import LatencySettings, Stretch
from kgs_core.simulation.replay import Conditions, Step
from kgs_core.simulation.workload import parse_key
from kgs_core.system.files import NamedFile, answering, write_whole

SCHEMA = pa.schema(
    [
        ("workload", pa.string()),
        ("algorithm", pa.string()),
        ("shuffled_order", pa.int32()),
        ("start", pa.string()),  # this and the next two: null where the load was recorded
        ("delta", pa.int32()),
        ("seed", pa.int64()),
        ("measurement", pa.int32()),
        ("partitions", pa.int32()),
        ("load", pa.float64()),
        ("least_consumers", pa.int32()),
        ("consumers", pa.int32()),
        ("rscore", pa.float64()),
        ("moved", pa.int32()),
        # latency sample i of a stretch, i < size, is max(0, first_s + i * slope_s) seconds
        ("first_s", pa.list_(pa.float64())),
        ("slope_s", pa.list_(pa.float64())),
        ("size", pa.list_(pa.int64())),
    ]
)
CONDITIONS = b"kgs.conditions"
"""Name of the conditions among a file's metadata."""


def results_table(replays: Sequence[Replayed]) -> pa.Table:
    """The rows of these experiment runs, in their order."""
    columns: dict[str, list[Any]] = {field.name: [] for field in SCHEMA}
    for one in replays:
        count, spec = len(one.steps), one.spec
        columns["workload"] += [one.workload] * count
        columns["algorithm"] += [one.name] * count
        columns["shuffled_order"] += [one.order] * count
        columns["start"] += [spec.start if spec else None] * count
        columns["delta"] += [spec.delta if spec else None] * count
        columns["seed"] += [spec.seed if spec else None] * count
        columns["measurement"] += range(count)
        for step in one.steps:
            columns["partitions"].append(step.partitions)
            columns["load"].append(step.load)
            columns["least_consumers"].append(step.least)
            columns["consumers"].append(step.consumers)
            columns["rscore"].append(step.rscore)
            columns["moved"].append(step.moved)
            columns["first_s"].append([stretch.first for stretch in step.stretches])
            columns["slope_s"].append([stretch.slope for stretch in step.stretches])
            columns["size"].append([stretch.size for stretch in step.stretches])
    return pa.table(columns, schema=SCHEMA)


def replays_of(table: pa.Table) -> Iterator[Replayed]:
    """The experiment runs in a table whose rows of one experiment run stand together."""
    begin = 0
    keys = list(zip(*(table[name].to_pylist() for name in ("workload", "algorithm", "shuffled_order")), strict=True))
    for row in range(1, len(keys) + 1):
        if row == len(keys) or keys[row] != keys[begin]:
            yield _replayed(table.slice(begin, row - begin))
            begin = row


def save_results(
    path: NamedFile, replays: Sequence[Replayed], conditions: Conditions, notes: Mapping[bytes, bytes] | None = None
) -> None:
    """Write a Parquet file; `notes` are further metadata of it.

    Raises:
        ConfigError: it cannot be written there.
    """
    schema = SCHEMA.with_metadata({CONDITIONS: json.dumps(asdict(conditions)).encode(), **(notes or {})})
    written = io.BytesIO()
    with pq.ParquetWriter(written, schema, compression="zstd") as writer:
        for one in replays:
            writer.write_table(results_table([one]).replace_schema_metadata(schema.metadata))
    write_whole(path, written.getvalue())


@contextmanager
def reading(path: AnyPath, *, cure: str, of_another_kind: str) -> Iterator[Any]:
    """A file for pyarrow; what the block raises is a `ConfigError`: the system's word, a cure, or `of_another_kind`."""
    try:
        with answering(path, cure, "unreadable"):
            yield path if isinstance(path, Path) else pa.BufferReader(path.read_bytes())
    except (pa.ArrowInvalid, LookupError, TypeError, ValueError):
        raise ConfigError([f"{path}: {of_another_kind}"]) from None


def conditions_of(text: bytes) -> Conditions:
    """The conditions that were written as JSON."""
    tree = json.loads(text)
    return Conditions(tree["capacity_bytes_per_s"], LatencySettings(**tree["latency"]), tree["record_latency"])


def _replayed(rows: pa.Table) -> Replayed:
    columns = {name: rows[name].to_pylist() for name in SCHEMA.names[7:]}
    stretches = (
        [Stretch(*values) for values in zip(*lists, strict=True)]
        for lists in zip(columns["first_s"], columns["slope_s"], columns["size"], strict=True)
    )
    names = ("partitions", "load", "least_consumers", "consumers", "rscore", "moved")
    steps = [Step(*values) for values in zip(*(columns[name] for name in names), stretches, strict=True)]
    workload = rows["workload"][0].as_py()
    spec = None if rows["start"][0].as_py() is None else parse_key(workload)
    return Replayed(rows["algorithm"][0].as_py(), workload, spec, steps, rows["shuffled_order"][0].as_py())
