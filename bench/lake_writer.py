"""Some of the writers of `bench lake`: threads of one process, each committing batch after batch to one table."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from kgs_core.config.settings import LakeSettings
from kgs_core.errors import TransientError
from kgs_core.lake.delta.pace import CommitWay
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.positions import AppIds
from kgs_core.lake.topics.factory import open_lake
from kgs_core.model import TopicId
from kgs_core.ports import CommitOutcome, Lake

TABLE = "t"
IDS = AppIds("bench", "a.topic.with.a.name.of.usual.length", TopicId("abcdefghijklmnopqrstuv"))
SCHEMA = pa.schema([("value", pa.binary()), ("_partition", pa.int32()), ("_offset", pa.int64())])
ROWS = 10
"""Of each partition in a batch."""
_VALUE = b"x" * 100


@dataclass(frozen=True, slots=True)
class WriterJob:
    """Job of one process.

    Attributes:
        commit: how commits are made.
        writers: numbers of its writers; writer w owns partitions w * partitions and following.
        partitions: of each writer.
        seconds: how long they write.
    """

    storage: Storage
    commit: CommitWay
    writers: tuple[int, ...]
    partitions: int
    seconds: float


@dataclass(frozen=True, slots=True)
class WriterRecord:
    """What one writer saw.

    Attributes:
        commit_s: seconds of each commit that was made; all its tries, without the writing of its file.
        in_time: commits that ended before the time was up.
        landed: partition -> end of the last range that was said to be committed.
        errors: what went wrong.
    """

    writer: int
    commit_s: list[float]
    in_time: int
    landed: dict[int, int]
    errors: list[str]


def lake_at(storage: Storage, commits: CommitWay = "auto") -> Lake:
    """A lake with the settings that a user writes, the defaults, and this way of committing."""
    given = {"root": storage.root, "storage_options": {**storage.options}, "fsync": storage.fsync}
    return open_lake(LakeSettings.model_validate(given), commits=commits)


def run_writers(job: WriterJob, meet: Callable[[], object]) -> list[WriterRecord]:
    """Write until the time is up; every writer ends with the commit it is at.

    Args:
        meet: waits until all processes are ready.
    """
    writers = [_Writer(job, number) for number in job.writers]
    for writer in writers:
        writer.open()
    meet()
    end = time.monotonic() + job.seconds
    threads = [threading.Thread(target=writer.run, args=(end,)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [writer.record for writer in writers]


class _Writer:
    """One consumer's commits, without the consumer."""

    def __init__(self, job: WriterJob, number: int) -> None:
        first = number * job.partitions
        self._partitions = range(first, first + job.partitions)
        self._storage = job.storage
        self._table = lake_at(job.storage, job.commit).table(TABLE, SCHEMA)
        self.record = WriterRecord(number, [], 0, {}, [])

    def open(self) -> None:
        self._table.versions([IDS.position(p) for p in self._partitions])

    def run(self, end: float) -> None:
        commit_s: list[float] = []
        landed, errors, in_time = self.record.landed, self.record.errors, 0
        positions: dict[int, int | None] = dict.fromkeys(self._partitions)
        while not (commit_s or errors) or time.monotonic() < end:  # once at least, on the slowest machine
            try:
                file = write_table(self._storage, TABLE, [self._rows(positions)], SCHEMA)
                expected = {IDS.position(p): at for p, at in positions.items()}
                new = {app: (at or 0) + ROWS for app, at in expected.items()}
                began = time.monotonic()
                outcome = self._table.commit(expected, new, [file])
                ended = time.monotonic()
                if outcome is CommitOutcome.COMMITTED:
                    commit_s.append(ended - began)
                    in_time += ended <= end
                    positions = {p: (at or 0) + ROWS for p, at in positions.items()}
                    landed |= {p: at for p, at in positions.items() if at is not None}
                    continue
                errors.append("refused")  # nobody else owns these partitions
            except TransientError as e:
                errors.append(str(e))
            try:
                stored = self._table.versions([IDS.position(p) for p in self._partitions])
                positions = {p: stored[IDS.position(p)] for p in self._partitions}
            except TransientError as e:
                errors.append(str(e))
        self.record = WriterRecord(self.record.writer, commit_s, in_time, landed, errors)

    def _rows(self, positions: dict[int, int | None]) -> pa.RecordBatch:
        partitions = [p for p in positions for _ in range(ROWS)]
        offsets = [(at or 0) + n for at in positions.values() for n in range(ROWS)]
        columns = [
            pa.array([_VALUE] * len(offsets)),
            pa.array(partitions, pa.int32()),
            pa.array(offsets, pa.int64()),
        ]
        return pa.record_batch(columns, schema=SCHEMA)
