"""The Delta table of newest rows: a merge, or all of it anew, in one commit with the position that it was read to.

The position is a version of the log of the table that it is derived from, kept as a `txn` action. Its application id
names that table by Delta's id, and the rule by which rows are chosen: with another table under the name, or another
rule, there is no position, and the derived table is made anew. What is judged as of one version is committed right
behind it, or not at all: of two that do the same at once, one is refused.

Former rows go by deletion vectors where the rule wants them; else their files are written anew. Killed before its entry
is there, a commit leaves files that no version names, which `kgs maintain` removes.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Schema
from deltalake.exceptions import TableNotFoundError

from kgs_core.config.settings import LakeSettings
from kgs_core.errors import UnsafeError
from kgs_core.lake.delta.delta_log import load_transactions
from kgs_core.lake.delta.delta_optimize import DERIVED
from kgs_core.lake.delta.log_entry import changes_entry
from kgs_core.lake.delta.log_store import log_store
from kgs_core.lake.delta.log_upkeep import keep_short
from kgs_core.lake.delta.table_log import metadata_of
from kgs_core.lake.delta.table_properties import wanted_properties
from kgs_core.lake.derived.deletion_vectors import Rows, path_of, remove_old_vectors, write_vectors
from kgs_core.lake.derived.files_in_log import live_files, removed, replaced_vectors
from kgs_core.lake.derived.key_merge import KeyMerge
from kgs_core.lake.derived.live_file import LiveFile, small_and_worn
from kgs_core.lake.derived.versions import VALID_TO
from kgs_core.lake.files.columns import plain
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.files.storage import Storage
from kgs_core.ports import FileWritten
from kgs_core.system.failpoints import failpoint

MARK = "kgs/latest/"
"""What application ids of positions begin with."""
TARGET_BYTES = 128_000_000
VECTORS_KEPT_S = 24 * 3600
"""Age at which a file of vectors may go that does not count, and did not lately: former versions' readers want it."""
_NOT_THERE = -1
_VECTORS = "delta.enableDeletionVectors"
_FEATURE = "deletionVectors"
_IN_PARTS = "v2Checkpoint"
"""A feature by which checkpoints may name files elsewhere: rows of these would be merged as if they were not there."""
_TOMBSTONES = {"delta.deletedFileRetentionDuration": "interval 2 hours"}
"""With vectors each merge replaces what the log says of most files, and checkpoints name all that went so long ago."""
Actions = list[Mapping[str, Any]]


class DerivedTable:
    """A handle at one version of the derived table. What deltalake and stores raise passes through."""

    def __init__(
        self, storage: Storage, name: str, source: str, lake: LakeSettings, *, deletion_vectors: bool = False
    ) -> None:
        self.name = name
        self._source = source  # the table that it is derived from
        self._storage = storage
        self._lake = lake
        self._wants_vectors = deletion_vectors
        self._log = log_store(storage, name)
        self._handle: DeltaTable | None = None
        self._files: list[LiveFile] = []
        self._unnamed: list[str] = []
        self._schema = pa.schema([])

    def load(self, schema: pa.Schema) -> None:
        """Look at the table as it is now; it is made if it is not there.

        Raises:
            UnsafeError: something else than kgs has made it.
        """
        self._schema = pa.schema([pa.field(f.name, plain(f.type)) for f in schema])
        self._handle = self._opened() or self._made()
        if _IN_PARTS in (self._handle.protocol().reader_features or ()):
            raise UnsafeError(
                f"table {self.name}: somebody has given it {_IN_PARTS}, which kgs does not read: delete it"
            )
        described = self._handle.metadata().description or ""
        if described.startswith(DERIVED) and described != f"{DERIVED}{self._source}":
            raise UnsafeError(
                f"table {self.name}: has the {described}, not of {self._source}: name another table, or delete this one"
            )
        adds = live_files(self._log, self._handle.version())
        if adds and not any(app.startswith(MARK) for app in load_transactions(self._storage, self.name)):
            raise UnsafeError(f"table {self.name}: exists and is not a derived table of kgs: name another one")
        self._files = [LiveFile(self._storage, self.name, add) for add in adds]
        if self._wants_vectors and not self._has_vectors:
            self._allow_vectors()

    def position(self, app: str) -> int | None:
        """Version stored under an application id; None: none, or one that no longer counts."""
        found = self._loaded.transaction_version(app)
        return None if found is None or found < 0 else found

    def has_columns(self, schema: pa.Schema) -> bool:
        """Whether it has these columns."""
        there = pa.schema(self._loaded.schema())
        return there.names == schema.names and [*map(plain, there.types)] == [*map(plain, schema.types)]

    def replace(self, parts: Iterable[pa.Table], positions: Mapping[str, int]) -> None:
        """All of it anew, a part of the rows after the other; what other rules have noted no longer counts.

        A rule may come back, and its position would be none in what others have merged since.
        """
        noted = (app for app in load_transactions(self._storage, self.name) if app.startswith(MARK))
        every = {**dict.fromkeys(noted, _NOT_THERE), **positions}
        with self._writing():
            written = [file for rows in parts for file in self._written(rows)]
        metadata = {**metadata_of(self._loaded).action, "schemaString": Schema.from_arrow(self._schema).to_json()}
        gone = [self._removed(file) for file in self._files]
        self._commit("WRITE", [*gone, {"metaData": metadata}], every, written)

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return self._schema

    @property
    def files(self) -> Sequence[LiveFile]:
        """Its files."""
        return self._files

    def apply(self, merge: KeyMerge, positions: Mapping[str, int], *, anew: bool = False) -> None:
        """Write what a merge of `files` does; nothing but the positions where it does nothing.

        Args:
            positions: application id -> version afterwards.
            anew: write files anew also where a deletion vector could mark rows: what is marked is still in the store.
        """
        with self._writing():
            actions, written = self._without(merge.gone, anew=anew)
            written += self._written(merge.rows)
        self._commit("MERGE", actions, positions, written)

    def all_rows(self) -> Iterator[pa.Table]:
        """Its rows, a file after the other."""
        return (file.rows(self._schema) for file in self._files)

    def compact(self, most: int) -> int:
        """Write small files, and those of which many rows are gone, as larger ones; how many times, at most `most`."""
        groups = small_and_worn(self._files, TARGET_BYTES)[:most]
        for group in groups:
            rows = pa.concat_tables([self._schema.empty_table(), *(file.rows(self._schema) for file in group)])
            gone: Actions = [self._removed(file, data_change=False) for file in group]
            with self._writing():
                written = self._written(rows)
            self._commit("OPTIMIZE", gone, {}, written)
            self.load(self._schema)
        if groups and self._has_vectors:
            version, vectors = self._loaded.version(), [file.add.get("deletionVector") for file in self._files]
            live = [vector["pathOrInlineDv"] for vector in vectors if vector]
            old_s = time.time() - VECTORS_KEPT_S
            remove_old_vectors(self._storage, self.name, live, old_s, lambda: replaced_vectors(self._log, version))
        return len(groups)

    def _without(self, gone: Mapping[int, Rows], *, anew: bool) -> tuple[Actions, list[FileWritten]]:
        """Actions by which rows go, and the files that are left of theirs, where these are written anew."""
        actions: Actions = [self._removed(self._files[number]) for number in gone]
        written: list[FileWritten] = []
        vectors: dict[int, Rows] = {}
        for number, rows in gone.items():
            file = self._files[number]
            if self._has_vectors and not anew:
                vectors[number] = merged = np.union1d(file.deleted, rows)
                if len(merged) == file.stats["numRecords"]:
                    del vectors[number]
            else:
                written += self._written(file.rows(self._schema, rows))
        made = write_vectors(self._storage, self.name, {str(n): rows for n, rows in vectors.items()}) if vectors else {}
        self._unnamed += {path_of(vector) for vector in made.values()}
        actions += [{"add": self._files[int(n)].with_vector(vector)} for n, vector in made.items()]
        return actions, written

    def _written(self, rows: pa.Table) -> list[FileWritten]:
        """A file with these rows; of a history, one of those that hold now, and one of those that have ended."""
        parts = [rows]
        if VALID_TO.name in rows.column_names:
            holds = pc.is_null(rows[VALID_TO.name])
            parts = [rows.filter(holds), rows.filter(pc.invert(holds))]
        written = []
        for part in parts:
            if part.num_rows:
                written.append(write_table(self._storage, self.name, part.to_batches(), part.schema))
                self._unnamed.append(written[-1].path)
        return written

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Write files in the block; if it fails on a disk, they are removed at once.

        Else a full disk is full for ever: each try takes what room somebody has made for batches. A store that does
        not answer takes as long again for this.
        """
        self._unnamed.clear()
        try:
            yield
        except Exception:
            for path in [] if self._storage.is_in_objects else self._unnamed:
                with suppress(Exception):
                    self._storage.filesystem().delete_file(self._storage.path(self.name, path))
            raise

    def _removed(self, file: LiveFile, *, data_change: bool = True) -> dict[str, Any]:
        return removed(file.add, int(time.time() * 1000), data_change=data_change)

    def _commit(
        self, operation: str, actions: Actions, positions: Mapping[str, int], written: Sequence[FileWritten] = ()
    ) -> None:
        """Make the entry right behind the version that is loaded.

        Raises:
            EntryExistsError: another was first, or this one was, and its answer was lost.
        """
        failpoint("latest-written")
        number = self._loaded.version() + 1
        if number - 1 not in self._log.since(number - 1).stamps:
            # An entry would be put into an empty folder of a store, where no table could be made any more
            raise RuntimeError("it was deleted meanwhile")
        self._log.create(number, changes_entry(operation, actions, positions, written=written))
        keep_short(self._storage, self.name, number, self._lake.checkpoint_interval)

    def _opened(self) -> DeltaTable | None:
        """The table as it is now; None: it is not there.

        Raises:
            UnsafeError: its log is broken, as by a folder that was deleted while rows were merged into it.
        """
        try:
            return DeltaTable(self._storage.uri(self.name), storage_options=self._storage.delta_options())
        except TableNotFoundError:
            return None
        except Exception:
            try:
                load_transactions(self._storage, self.name)  # says what is broken, in words
            except UnsafeError as e:
                raise UnsafeError(f"{e}; or delete the whole table: it is made anew from {self._source}") from e
            raise

    def _made(self) -> DeltaTable:
        properties = wanted_properties(self._lake.checkpoint_interval)
        properties.pop("delta.appendOnly")
        DeltaTable.create(
            self._storage.uri(self.name),
            schema=self._schema,
            mode="ignore",
            description=f"{DERIVED}{self._source}",
            configuration=properties,
            storage_options=self._storage.delta_options(),
        )
        return DeltaTable(self._storage.uri(self.name), storage_options=self._storage.delta_options())

    def _allow_vectors(self) -> None:
        """The protocol of tables with deletion vectors; nothing else changes, and there is no way back."""
        there = self._loaded.protocol()
        features = {
            "readerFeatures": sorted({_FEATURE, *(there.reader_features or ())}),
            "writerFeatures": sorted({_FEATURE, *(there.writer_features or ("appendOnly", "invariants"))}),
        }
        action = metadata_of(self._loaded).action
        metadata = {**action, "configuration": {**action["configuration"], _VECTORS: "true", **_TOMBSTONES}}
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
        self._commit("UPGRADE PROTOCOL", [{"protocol": protocol}, {"metaData": metadata}], {})
        self.load(self._schema)

    @property
    def _has_vectors(self) -> bool:
        return _FEATURE in (self._loaded.protocol().writer_features or ())

    @property
    def _loaded(self) -> DeltaTable:
        if self._handle is None:
            raise RuntimeError("load() first")
        return self._handle
