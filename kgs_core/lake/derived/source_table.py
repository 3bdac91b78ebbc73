"""The append-only tables that newest rows are made of, as of one moment, without what a person has erased."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from deltalake import DeltaTable

from kgs_core.config import TableSpec
from kgs_core.config.rule.newest_rows import KAFKA_KEY, NewestRows
from kgs_core.errors import UnsafeError
from kgs_core.lake.delta.table_changes import AddedFile, files_of
from kgs_core.lake.derived.interpretation import MAY_TRUNCATE, Interpretation, Truncate
from kgs_core.lake.derived.tombstones import DeadLetters, NewTombstones, none_of
from kgs_core.lake.files.ended_rows import load_erased, load_runs
from kgs_core.lake.files.places import PartitionKey, Places, Runs, is_among, is_within, span_of
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.topics.ending import KEEP


@dataclass(slots=True)
class SourceTable:
    """The rows of a topic's table and its dead letters, each at one version.

    Attributes:
        positions: (topic id, partition) -> position.
        lives: topic -> how many ids of it.
        erased: records that are left out, of whatever is read.
        kept: records that `keep` has ended, whose newest rows stay unless they were erased; in runs.
        is_history: whether a history is made of it.
        former_gives: whether a row that keeps a value which no change has any more has that of the derived table.
    """

    storage: Storage
    spec: TableSpec
    rows: DeltaTable
    letters: DeltaTable | None
    positions: Mapping[tuple[str, int], int]
    lives: Mapping[str, int]
    erased: Places = field(default_factory=dict)
    kept: Mapping[PartitionKey, Runs] = field(default_factory=dict)
    former_gives: bool = False
    is_history: bool = False
    schema: pa.Schema = field(init=False)
    reading: Interpretation = field(init=False)
    derived: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        self.schema = pa.schema([pa.field(f.name, f.type) for f in pa.schema(self.rows.schema())])
        self.reading = Interpretation(self.spec.rule, self.schema, self.is_history)
        self.derived = self.reading.schema()

    def check(self) -> None:
        """Raises UnsafeError where offsets of several topics cannot be compared."""
        rule = self.spec.rule
        if self._newest.order != "offset":
            return
        for topic, lives in self.lives.items():
            if lives > 1:
                raise UnsafeError(
                    f"table {self.spec.table}: has rows of {lives} topics of the name {topic}, whose offsets cannot "
                    "be compared: set newest_rows: order: timestamp"
                )
        if len(self.lives) > 1 and not {*rule.topic_columns} & {*rule.newest_key}:
            raise UnsafeError(
                f"table {self.spec.table}: is filled from {', '.join(sorted(self.lives))}, whose offsets cannot "
                "be compared: set newest_rows: order: timestamp, or put the topic_column into its key"
            )

    def know_erased(self) -> None:
        """Look at which records were erased, as of now.

        Raises:
            TransientError: the store did not answer.
        """
        self.erased = load_erased(self.storage, self.spec.table)

    def know_kept(self) -> None:
        """Likewise, which ones `keep` has ended."""
        self.kept = load_runs(self.storage, self.spec.table, KEEP)

    def stays(self, rows: pa.Table) -> pa.Table:
        """Those rows of the derived table whose records `keep` has ended."""
        return self._left(rows.filter(pa.array(is_within(rows, self.kept))))

    def read(self, files: Iterable[AddedFile]) -> pa.Table:
        """Rows of these files."""
        parts = (self._left(file.read(self.storage, self.spec.table, self.schema)) for file in files)
        return pa.concat_tables([self.schema.empty_table(), *parts])

    def new_tombstones(self, app: str, noted: Mapping[str, int]) -> NewTombstones:
        """See `DeadLetters.new_tombstones`; none where the rule has no use for them."""
        if self.letters is None or not self._takes_tombstones:
            return NewTombstones(none_of(self.schema))
        found = self._dead_letters(self.letters).new_tombstones(app, noted)
        return NewTombstones(self._left(found.rows), found.noted)

    def tombstones_below(self, letters: DeltaTable | None, waits: Mapping[tuple[str, int], int]) -> pa.Table:
        """See `DeadLetters.below`, of a version of the dead letters."""
        if letters is None or not self._takes_tombstones:
            return none_of(self.schema)
        return self._left(self._dead_letters(letters).below(waits))

    def truncated(self) -> list[Truncate]:
        """All truncates; what is older than one must be known before any row is taken.

        Raises:
            UnsafeError: that cannot be told of other partitions.
        """
        if self._newest.changes not in MAY_TRUNCATE:
            return []
        reads = (self.read([file]) for file in files_of(self.rows))
        truncated = [each for read in reads for each in self.reading.read(read).truncated]
        for each in truncated:
            others = {p for t, p in self.positions if t == each.topic_id} - {each.partition}
            if others and each.place is None:
                raise UnsafeError(
                    f"table {self.spec.table}: partition {each.partition} has a truncate at offset {each.offset}, and "
                    f"which rows of {len(others)} other partitions came before it cannot be told: give the topic one "
                    "partition, add source.lsn to the columns (PostgreSQL), or set newest_rows: deletes: ignore"
                )
        return truncated

    def keys_of_erased(self, letters_app: str, derived: Iterable[pa.Table]) -> pa.Table:
        """Keys of the changes of erased records, as far as they are still there, and of their `derived` rows."""
        whole, parts = replace(self, erased={}), [*map(self._erased, derived)]
        parts.append(self.reading.tombstones(self._erased(whole.new_tombstones(letters_app, {}).rows)))
        events = (self._erased(whole.read([file])) for file in files_of(self.rows, span_of(self.erased).start))
        parts += [self.reading.read(rows).rows for rows in events]
        keys = pa.schema([self.derived.field(name) for name in self.reading.key])
        found = [keys.empty_table(), *(rows.select(keys.names).cast(keys) for rows in parts)]
        return pa.concat_tables(found).group_by(keys.names).aggregate([])

    def _erased(self, rows: pa.Table) -> pa.Table:
        return rows.filter(pa.array(is_among(rows, self.erased)))

    def _left(self, rows: pa.Table) -> pa.Table:
        return rows.filter(pa.array(~is_among(rows, self.erased))) if self.erased else rows

    def _dead_letters(self, letters: DeltaTable) -> DeadLetters:
        return DeadLetters(self.storage, self.spec.dead_letters_table, letters, self.positions, self.schema)

    @property
    def _takes_tombstones(self) -> bool:
        return self._newest.deletes != "ignore" and self.reading.key == (KAFKA_KEY,)

    @property
    def _newest(self) -> NewestRows:
        return self.reading.newest
