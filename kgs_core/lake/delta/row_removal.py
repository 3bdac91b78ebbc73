"""Rows that end: files of a table that have some go, and files with what is left of their rows come in their place.

Theory of operation.
1. Which rows, is told by their places, not by a condition: run again after a kill it ends the same ones, none twice.
2. The entry is created under exactly the next number, as every one (`delta_table`, 3). All entries since the files were
   listed are read first: where one of them has removed a file of ours (compaction; another removal), nothing is
   written, and the files are listed anew. What consumers append meanwhile is in the way of nothing.
3. Compaction that meets our entry finds its files gone, or the metadata changed, and gives up; its next run does it.
4. Killed before the entry, new files are left that no version has; upkeep takes them. A lost reply is followed by a
   listing that no longer has the file.
5. A reader of changes passes over the entry (`log_entry.adds_no_record`), so what is left counts nowhere as new.
6. Delta lets nobody remove rows while a table is `delta.appendOnly`, so that property is turned off before, and on
   again after it. By a property of our own the one that was killed in between is told from a person who turned it off:
   the next removal, or `kgs maintain`, turns it on.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from kgs_core.lake.delta.delta_log import removed_files
from kgs_core.lake.delta.log_entry import FileReplaced
from kgs_core.lake.delta.log_store import EntryExistsError, entry_name
from kgs_core.lake.delta.pace import Pace, Tries
from kgs_core.lake.delta.table_changes import value_text
from kgs_core.lake.delta.table_log import TableLog
from kgs_core.lake.delta.whole_table import opened_table
from kgs_core.lake.files.columns import plain
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.files.places import Places, is_among, joined, offsets_of
from kgs_core.lake.files.row_schema import IDENTITY
from kgs_core.lake.rule import NO_OFFSETS
from kgs_core.ports import RowsRemoved
from kgs_core.ports.upkeep import Moved
from kgs_core.system.failpoints import failpoint

APPEND_ONLY, REMOVES = "delta.appendOnly", "kgs.removesRows"
MOST_FILES, MOST_BYTES = 100, 1_000_000_000
"""Files, and bytes of them, that one entry replaces."""
MOST_OVERTAKEN = 100
ROWS_AT_ONCE = 65_536


class OvertakenError(EntryExistsError):
    """Another has removed a file of ours."""


class RowRemoval:
    """Removal of the rows at some places of one table. Used once, by one thread."""

    def __init__(self, log: TableLog, places: Places, moved: Moved) -> None:
        self._log = log
        self._places = places
        self._moved = moved
        self._offsets = np.unique(np.concatenate([*places.values()])) if places else NO_OFFSETS  # of all partitions
        self._removed: set[str] = set()  # by anybody, in the versions behind the one that was listed
        self._looked_at = -1
        self._pace = Pace()
        self._done = RowsRemoved(log.name)

    def run(self) -> RowsRemoved:
        """Remove them all.

        Raises:
            PortError: see `Lake.remove_rows`; what was committed before stays.
        """
        tries = Tries(self._log.connect_anew, most_races=MOST_OVERTAKEN)
        while tries.are_left:
            with tries.one():
                self._pass()
                restore_append_only(self._log)
                return self._done
        raise tries.given_up(self._log.name, "removing rows") from tries.problem

    def _pass(self) -> None:
        handle = opened_table(self._log.storage, self._log.name)
        if handle is None:
            return
        self._looked_at, self._removed = handle.version(), set()
        chunk: list[FileReplaced] = []
        places: list[Places] = []
        for add in filter(self._may_have_some, pa.table(handle.get_add_actions()).to_pylist()):
            here, replaced = self._replaced(add)
            if replaced is None:
                continue
            chunk, places = [*chunk, replaced], [*places, here]
            if len(chunk) == MOST_FILES or sum(file.size for file in chunk) >= MOST_BYTES:
                self._commit(chunk, joined(*places))
                chunk, places = [], []
        if chunk:
            self._commit(chunk, joined(*places))

    def _may_have_some(self, add: Mapping[str, Any]) -> bool:
        """Whether the statistics of a file let it have rows at the places."""
        lowest, highest = ((add.get(bound) or {}).get("_offset") for bound in ("min", "max"))
        if lowest is None or highest is None:
            return True
        first, end = np.searchsorted(self._offsets, [lowest, highest + 1])
        return bool(first < end)

    def _replaced(self, add: Mapping[str, Any]) -> tuple[Places, FileReplaced | None]:
        """The places of a file's rows that go, and how it is replaced; None: all of it stays."""
        log, path = self._log, str(add["path"])
        values = {name: value_text(value) for name, value in (add.get("partition") or {}).items()}
        with pq.ParquetFile(log.storage.path(log.name, unquote(path)), filesystem=log.storage.filesystem()) as file:
            rows = file.read(columns=list(IDENTITY), use_threads=False)
            goes = is_among(rows, self._places)
            ended = int(goes.sum())
            if not ended:
                return {}, None
            left = None
            if ended < rows.num_rows:
                schema = pa.schema([f.with_type(plain(f.type)) for f in file.schema_arrow]).remove_metadata()
                left = write_table(log.storage, log.name, _batches(file, ~goes, schema), schema, values)
        failpoint("rows-rewritten")
        return offsets_of(rows.filter(pa.array(goes))), FileReplaced(path, add["size_bytes"], values, ended, left)

    def _commit(self, chunk: list[FileReplaced], places: Places) -> None:
        while True:
            began = time.monotonic()
            state = self._log.looked_at([file.left for file in chunk if file.left is not None])
            self._look_at_entries(state.version)
            if any(file.path in self._removed for file in chunk):
                raise OvertakenError("others rewrite the same files: run it again")
            configuration = self._log.metadata.action["configuration"]
            try:
                if configuration.get(APPEND_ONLY, "").lower() == "true":
                    self._log.write_metadata(state, _with(self._log, {APPEND_ONLY: "false", REMOVES: "true"}), ())
                    failpoint("append-only-off")
                    continue
                self._log.write_removal(state, chunk, self._moved(state.apps, places))
            except EntryExistsError:
                time.sleep(self._pace.lost(time.monotonic() - began))
                continue
            break
        failpoint("rows-removed")
        files = (*self._done.files, *(unquote(file.path) for file in chunk))
        rows = self._done.rows + sum(file.ended for file in chunk)
        self._done = RowsRemoved(self._log.name, rows, files, state.version)

    def _look_at_entries(self, newest: int) -> None:
        """Raises FileNotFoundError where one was cleaned away."""
        log = self._log.connected()
        for number in range(self._looked_at + 1, newest + 1):
            self._removed.update(removed_files(log.read(entry_name(number)), entry_name(number)))
        self._looked_at = newest


def restore_append_only(log: TableLog) -> None:
    """Turn the property on again that a removal has turned off.

    Raises:
        EntryExistsError: others commit: try it again.
        Exception: the store did not answer.
    """
    state = log.looked_at(())
    if REMOVES in log.metadata.action["configuration"]:
        log.write_metadata(state, _with(log, {APPEND_ONLY: "true", REMOVES: None}), ())


def _with(log: TableLog, properties: Mapping[str, str | None]) -> dict[str, Any]:
    both = {**log.metadata.action["configuration"], **properties}
    return {**log.metadata.action, "configuration": {name: value for name, value in both.items() if value is not None}}


def _batches(file: pq.ParquetFile, stays: npt.NDArray[np.bool_], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    at = 0
    for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, use_threads=False):
        kept = pa.table(batch).filter(pa.array(stays[at : at + batch.num_rows])).cast(schema)
        at += batch.num_rows
        yield from kept.to_batches()
