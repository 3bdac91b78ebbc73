"""A table of newest rows at work: many keys, changes of random keys by and by, in either way of letting former rows go.

Measures each merge (its seconds and CPU, which are the lag above the time between two), bytes written beside bytes of
changes, and what a reader pays for vectors and small files before and after. `python -m bench.newest_rows --help`.
"""

import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import polars as pl
import pyarrow as pa

from kgs_core.config.settings import LakeSettings
from kgs_core.lake.derived.derived_table import DerivedTable
from kgs_core.lake.derived.key_merge import key_merge
from kgs_core.lake.derived.newest_rows import DELETED
from kgs_core.lake.files.storage import Storage

SCHEMA = pa.schema(
    [
        *(("id", pa.int64()), ("name", pa.string()), ("amount", pa.float64())),
        *(("_topic_id", pa.string()), ("_partition", pa.int32()), ("_offset", pa.int64())),
        *(("_timestamp", pa.timestamp("us", "UTC")), ("_key", pa.binary())),
    ]
)
APP = "kgs/latest/bench"
PART = 1_000_000


def rows_of(ids: np.ndarray, first: int) -> pa.Table:
    """Rows of about a hundred bytes."""
    n = len(ids)
    texts = pa.array(ids).cast(pa.string())
    offsets = np.arange(first, first + n)
    names = pa.array(offsets * 2_654_435_761).cast(pa.string())
    columns = [pa.array(ids), names, pa.array(offsets * 1.5), pa.repeat("AAAAAAAAAAAAAAAAAAAAAA", n)]
    columns += [pa.repeat(pa.scalar(0, pa.int32()), n), pa.array(offsets)]
    columns += [pa.array(offsets).cast(pa.timestamp("us", "UTC")), texts.cast(pa.binary())]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def every_key(keys: int) -> Iterator[pa.Table]:
    """The table as it is made."""
    shuffled = np.random.default_rng(1).permutation(keys)
    for start in range(0, keys, PART):
        yield rows_of(shuffled[start : start + PART], start)


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def read_s(uri: str) -> tuple[float, float]:
    """Seconds of a sum over all rows, and of one key's row, by polars."""
    began = time.perf_counter()
    pl.scan_delta(uri).select(pl.col("amount").sum(), pl.col("name").str.len_bytes().sum()).collect()
    whole = time.perf_counter() - began
    began = time.perf_counter()
    pl.scan_delta(uri).filter(pl.col("id") == 77).collect()  # noqa: PLR2004 - any
    return whole, time.perf_counter() - began


@click.command()
@click.option("--keys", default=10_000_000, show_default=True)
@click.option("--rate", default=1_000, show_default=True, help="Changes a second.")
@click.option("--every", "every_s", default=10.0, show_default=True, help="Seconds between two merges: max_lag_s / 3.")
@click.option("--merges", default=30, show_default=True)
@click.option("--vectors/--rewrite", default=True, show_default=True)
@click.option("--root", type=click.Path(path_type=Path), help="Folder on the disk to be measured. Default: temporary.")
def main(*, keys: int, rate: int, every_s: float, merges: int, vectors: bool, root: Path | None) -> None:
    """Print figures of a table of newest rows, one line each."""
    lake = Path(tempfile.mkdtemp(prefix="newest-rows-", dir=root))
    try:
        _measure(lake, keys, int(rate * every_s), merges, vectors=vectors)
    finally:
        shutil.rmtree(lake)


def _measure(lake: Path, keys: int, changes: int, merges: int, *, vectors: bool) -> None:
    storage = Storage(str(lake))
    table = DerivedTable(storage, "d", "t", LakeSettings(root=str(lake)), deletion_vectors=vectors)
    table.load(SCHEMA)
    began = time.perf_counter()
    table.replace(every_key(keys), {APP: 0})
    made_s, uri, random = time.perf_counter() - began, storage.uri("d"), np.random.default_rng(2)
    size = folder_bytes(lake)
    click.echo(f"made: {keys:,} keys, {size / 1e6:,.0f} MB in {made_s:.1f} s; reads {_words(read_s(uri))}")
    took, busy, compacted, given = [], [], 0, 0
    for number in range(merges):
        rows = rows_of(np.unique(random.integers(0, keys, changes)), keys + number * changes)
        given += _parquet_bytes(rows)
        began, cpu = time.perf_counter(), _cpu_s()
        table.load(SCHEMA)
        changed = rows.append_column(DELETED, pa.repeat(False, len(rows)))  # noqa: FBT003
        table.apply(key_merge(table.files, changed, ["id"], "offset", table.schema), {APP: number + 1})
        table.load(SCHEMA)
        compacted += table.compact(2)
        took.append(time.perf_counter() - began)
        busy.append(_cpu_s() - cpu)
    written = folder_bytes(lake) - size
    click.echo(
        f"{merges} merges of {changes:,} changes: median {np.median(took):.2f} s, longest {max(took):.2f} s, "
        f"CPU {np.mean(busy):.2f} s each; {compacted} compactions; {written / 1e6:,.0f} MB written, "
        f"{written / given:.1f} bytes for each byte of changes; at most {_peak_mb():,.0f} MB of memory"
    )
    click.echo(f"after: reads {_words(read_s(uri))}")


def _words(found: tuple[float, float]) -> str:
    return f"all in {found[0]:.2f} s, one key in {found[1]:.2f} s"


def _parquet_bytes(rows: pa.Table) -> int:
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    return int(sink.getvalue().size)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
