"""N writers on one table: commits per second, their latency, their requests, and whether every row is there once."""

import json
import multiprocessing
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from pyarrow import fs

from bench.delay_proxy import DelayProxy
from bench.figures import nearest_rank
from bench.lake_writer import (
    SCHEMA,
    TABLE,
    WriterJob,
    WriterRecord,
    lake_at,
    run_writers,
)
from bench.object_servers import OBJECT_SERVERS
from kgs_core.errors import PermanentError
from kgs_core.lake.delta.pace import CommitWay
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.positions import parse_app_id

PROCESSES = 8
_MEET_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class LakePlan:
    """What to measure.

    Attributes:
        stores: of `disk`, `fsync` (a disk with `lake.fsync`), `s3`, `azure` and `gcs`.
        writers: numbers of writers.
        partitions: of each writer.
        delay_s: added to each request to a store of objects.
        seconds: of each run.
        commits: ways in which commits are made, of `direct`, `combined` and `auto`.
    """

    stores: tuple[str, ...]
    writers: tuple[int, ...]
    partitions: int
    delay_s: float
    seconds: float
    commits: tuple[CommitWay, ...]


@dataclass(frozen=True, slots=True)
class LakeRow:
    """One run.

    Attributes:
        commits_per_s: of all writers, that ended in time.
        p50_s: of a commit, without the writing of its file; None without commits; `p99_s` likewise.
        least: commits of the writer with the fewest; `most`, with the most.
        requests_per_commit: of every kind, the file's own among them; None on a disk.
        lost: rows that are not in the table though their commit was reported or their position says so.
        doubled: rows that are in the table more than once, or will be, since the position lies before them.
        errors: commits that were refused or failed.
        position_bytes: of a position in a log entry, mean.
        entry_bytes: of the largest log entry.
        checkpoint_bytes: of the largest checkpoint; None before the first.
    """

    store: str
    writers: int
    partitions: int
    commit: str
    commits_per_s: float
    p50_s: float | None
    p99_s: float | None
    least: int
    most: int
    requests_per_commit: float | None
    lost: int
    doubled: int
    errors: int
    requests: dict[str, int]
    position_bytes: float
    entry_bytes: int
    checkpoint_bytes: int | None


def run_lake_bench(plan: LakePlan, say: Callable[[str], None]) -> list[LakeRow]:
    """Every store with every number of writers and every way of committing, each on a new table.

    Raises:
        PermanentError: a store's server is missing, or a writer's process died.
    """
    rows = []
    for store in plan.stores:
        for writers, commit in product(plan.writers, plan.commits):
            say(f"{store}, {writers} writers, {commit}")
            with ExitStack() as stack:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kgs-bench-")))
                disk = Storage(str(folder), fsync=store == "fsync")
                place = _BenchLake(disk, disk, None)
                if store in OBJECT_SERVERS:
                    server = stack.enter_context(OBJECT_SERVERS[store](folder))
                    proxy = stack.enter_context(DelayProxy(server.port, plan.delay_s))
                    place = _BenchLake(server.storage("bench"), server.storage("bench", proxy.port), proxy)
                rows.append(_run(plan, store, writers, commit, place))
    return rows


class _BenchLake(NamedTuple):
    """A lake: as it is judged, as it is written, and what stands between the two."""

    near: Storage
    far: Storage
    proxy: DelayProxy | None


def _run(plan: LakePlan, store: str, writers: int, commit: CommitWay, place: _BenchLake) -> LakeRow:
    near, far, proxy = place
    lake_at(far).table(TABLE, SCHEMA).create()
    counted = _counter(proxy)
    records = _in_processes(far, writers, commit, plan, counted)
    requests = counted()
    seconds = sorted(round(s, 3) for record in records for s in record.commit_s)
    per_writer = [len(record.commit_s) for record in records]
    lost, doubled = judge_table(near, TABLE, records)
    return LakeRow(
        store=store,
        writers=writers,
        partitions=plan.partitions,
        commit=commit,
        commits_per_s=round(sum(record.in_time for record in records) / plan.seconds, 2),
        p50_s=nearest_rank(seconds, 0.5),
        p99_s=nearest_rank(seconds, 0.99),
        least=min(per_writer),
        most=max(per_writer),
        requests_per_commit=round(sum(requests.values()) / len(seconds), 1) if proxy and seconds else None,
        lost=lost,
        doubled=doubled,
        errors=sum(len(record.errors) for record in records),
        requests=requests,
        **log_sizes(near, TABLE),
    )


def _counter(proxy: DelayProxy | None) -> Callable[[], dict[str, int]]:
    """Requests by method since the last call."""
    before: dict[str, int] = {}

    def counted() -> dict[str, int]:
        now = dict(proxy.by_method()) if proxy else {}
        found = {method: number - before.get(method, 0) for method, number in now.items()}
        before.update(now)
        return found

    return counted


def _in_processes(
    far: Storage, writers: int, commit: CommitWay, plan: LakePlan, started: Callable[[], object]
) -> list[WriterRecord]:
    processes = min(PROCESSES, writers)
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(processes + 1)
    jobs = [
        WriterJob(far, commit, tuple(range(first, writers, processes)), plan.partitions, plan.seconds)
        for first in range(processes)
    ]
    with ProcessPoolExecutor(processes, context, _keep_barrier, (barrier,)) as pool:
        runs = [pool.submit(_run_job, job) for job in jobs]
        try:
            barrier.wait(_MEET_TIMEOUT_S)
            started()
            return [record for run in runs for record in run.result()]
        except (BrokenProcessPool, threading.BrokenBarrierError) as e:
            barrier.abort()
            raise PermanentError(f"bench lake: a process of writers ended: {e}") from e


_barriers: list[Barrier] = []


def _keep_barrier(barrier: Barrier) -> None:
    _barriers.append(barrier)


def _run_job(job: WriterJob) -> list[WriterRecord]:
    return run_writers(job, lambda: _barriers[0].wait(_MEET_TIMEOUT_S))


def log_sizes(storage: Storage, table: str) -> dict[str, Any]:
    """Sizes of what a table's log has, by the names of `LakeRow`."""
    log = storage.filesystem().get_file_info(fs.FileSelector(storage.path(table, "_delta_log")))
    entries = [info for info in log if info.base_name.endswith(".json")]
    checkpoints = [info.size for info in log if info.base_name.endswith(".parquet")]
    positions = []
    for entry in entries:
        with storage.filesystem().open_input_stream(entry.path) as stream:
            positions += [len(line) for line in stream.read().splitlines(keepends=True) if line.startswith(b'{"txn"')]
    return {
        "position_bytes": round(sum(positions) / len(positions), 1),
        "entry_bytes": max(entry.size for entry in entries),
        "checkpoint_bytes": max(checkpoints, default=None),
    }


def judge_table(storage: Storage, table: str, records: Sequence[WriterRecord]) -> tuple[int, int]:
    """Rows lost and rows doubled, told from the log's entries and the files that they name, by none of the lake's code.

    Needs a log that nothing has been cleaned from.
    """
    filesystem = storage.filesystem()
    names = filesystem.get_file_info(fs.FileSelector(storage.path(table, "_delta_log")))
    entries = sorted(info.path for info in names if info.base_name.endswith(".json"))
    offsets: dict[int, list[int]] = {}
    positions: dict[int, int] = {}
    for path in entries:
        with filesystem.open_input_stream(path) as stream:
            actions = [json.loads(line) for line in stream.read().splitlines() if line]
        for action in actions:
            if "add" in action:
                rows = pq.read_table(storage.path(table, action["add"]["path"]), filesystem=filesystem)
                for p, offset in zip(rows["_partition"].to_pylist(), rows["_offset"].to_pylist(), strict=True):
                    offsets.setdefault(p, []).append(offset)
            elif "txn" in action and (parsed := parse_app_id(action["txn"]["appId"])):
                positions[parsed.partition] = action["txn"]["version"]
    landed = {p: end for record in records for p, end in record.landed.items()}
    lost = doubled = 0
    for p in offsets.keys() | positions.keys() | landed.keys():
        there, position = offsets.get(p, []), positions.get(p, 0)
        lost += len(set(range(max(position, landed.get(p, 0)))) - set(there))
        doubled += len(there) - len(set(there)) + sum(offset >= position for offset in set(there))
    return lost, doubled
