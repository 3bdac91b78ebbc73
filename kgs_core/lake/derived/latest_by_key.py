"""Tables with the newest row of each key, derived from the append-only tables, which stay the truth.

1. What is new is told by the log of the rows' table: files of versions behind the stored position, which is written
   in the same commit as what comes of them. Killed anywhere, the next one goes on where the last commit left off.
2. A tombstone is a record without a value: a row of a format that takes null, else a dead letter; and so whatever else
   is wrong with the record. Dead letters above the rows' positions wait (`tombstones.py`); looked at twice they do no
   harm.
3. Several topics in one table: offsets tell what is newer only where all rows of a key are of one topic, so the topic's
   column must be in the key, or the time tells it.
4. Redriven rows are older than what was there before. Beside tombstones, whose keys leave no trace, that could bring a
   deleted key back: then all is made anew. So it is where the log no longer says what was added.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from kgs_core.config import Settings, TableSpec, TopicRule
from kgs_core.config.rule.newest_rows import KAFKA_KEY
from kgs_core.errors import ConfigError, PortError, TransientError, UnsafeError, one_line
from kgs_core.lake.delta.delta_log import load_transactions
from kgs_core.lake.delta.log_store import log_store
from kgs_core.lake.delta.table_changes import AddedFile, AddedFiles, ChangesLostError, added_since, files_of
from kgs_core.lake.delta.whole_table import opened_table
from kgs_core.lake.derived.changes.interpretation import MAY_TRUNCATE, Interpretation, Truncate, note_of, noted_truncate
from kgs_core.lake.derived.derived_table import MARK, DerivedTable
from kgs_core.lake.derived.kept_values import KEPT
from kgs_core.lake.derived.newest_rows import DELETED, needed, newest, of_part
from kgs_core.lake.derived.tombstones import DeadLetters, NewTombstones, none_of
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.positions import CLOSED, AppIds, parse_app_id
from kgs_core.lake.topics.shared_table import topics_by_id
from kgs_core.system.failpoints import failpoint

TRIES = 10
MERGE_BYTES = 32_000_000
"""Compressed bytes of new files that one merge takes."""
LOOKED_AT = 16
"""Entries that are read at once of those that may have added rows."""
COMPACTIONS = 2
"""Files that are made of others at most each time: what is new must not wait long for it."""
ANEW_BYTES = 128_000_000
"""Compressed bytes of rows of which all keys are looked at together where all is made anew."""


@dataclass(slots=True)
class Materialization:
    """What was done to one derived table.

    Attributes:
        version: of the rows' table that it is at now; None: there is no such table yet.
        rows: new rows that were looked at; all of them where it was made anew.
        tombstones: likewise.
        anew: why it was made anew; empty: it was not.
        problem: why it could not be brought up to date.
    """

    table: str
    version: int | None = None
    rows: int = 0
    tombstones: int = 0
    commits: int = 0
    anew: str = ""
    problem: str = ""


@dataclass(slots=True)
class SourceTable:
    """The append-only tables as of one moment."""

    rows: DeltaTable
    letters: DeltaTable | None
    positions: Mapping[tuple[str, int], int]  # by topic id and partition
    lives: Mapping[str, int]  # topic -> how many ids of it
    rule: TopicRule
    schema: pa.Schema = field(init=False)
    reading: Interpretation = field(init=False)
    derived: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        self.schema = pa.schema([pa.field(f.name, f.type) for f in pa.schema(self.rows.schema())])
        self.reading = Interpretation(self.rule, self.schema)
        self.derived = self.reading.schema()


class LatestByKeyTable:
    """Derived table of a table whose rule has `newest_rows`; `spec` is of one of its topics."""

    def __init__(self, settings: Settings, spec: TableSpec) -> None:
        if spec.rule.newest_rows is None or spec.latest_table is None:
            raise ConfigError([f"table {spec.table}: its rule has no newest_rows"])
        self._latest = spec.rule.newest_rows
        self._key = spec.rule.newest_key
        self._group = settings.group
        self._spec = spec
        self._storage = Storage.of(settings.lake)
        self._target = DerivedTable(
            *(self._storage, spec.latest_table, spec.table, settings.lake),
            deletion_vectors=self._latest.deletion_vectors,
        )

    def materialize(self) -> Materialization:
        """Merge what is new; may be killed, run again, and run beside consumers and another of its kind.

        Raises:
            UnsafeError: the derived table is somebody else's; or offsets of several topics cannot be compared.
            ConfigError: the rows have no such column.
            TransientError: the store did not answer, or others do the same all the time.
        """
        problem: Exception | None = None
        for _ in range(TRIES):
            try:
                return self._attempt(Materialization(self._target.name))
            except (PortError, ConfigError):
                raise
            except Exception as e:  # noqa: BLE001 - deltalake raises what it likes; whatever landed is seen next time
                problem = e
        reason = one_line(problem) if problem else ""
        raise TransientError(f"table {self._target.name}: {reason}: run it again") from problem

    def lag_s(self, now_s: float) -> float | None:
        """Age of the oldest rows that are not merged yet; None where there is no table, or that is not known.

        Raises:
            PortError: a log is broken, or the store did not answer.
            Exception: likewise, in the words of the store's client.
        """
        rows = opened_table(self._storage, self._spec.table)
        if rows is None:
            return None
        base = load_transactions(self._storage, self._target.name).get(self._app(rows), -1)
        log, end = log_store(self._storage, self._spec.table), rows.version()
        if not 0 <= base <= end:
            return None
        try:
            for start in range(base, end, LOOKED_AT):
                for added in added_since(log, start, min(start + LOOKED_AT, end)):
                    return max(0.0, now_s - added.time_ms / 1000)
        except ChangesLostError:
            return None
        return 0.0

    def _attempt(self, done: Materialization) -> Materialization:
        letters = opened_table(self._storage, self._spec.dead_letters_table)
        positions = self._positions()  # before the rows: older ones than theirs only let a letter wait, see 2
        rows = opened_table(self._storage, self._spec.table)
        if rows is None:
            return done
        topics = topics_by_id(load_transactions(self._storage, self._spec.table), self._group).values()
        source = SourceTable(rows, letters, positions, Counter(topics), self._spec.rule)
        self._check(source)
        self._target.load(source.derived)
        apps = self._app(rows), self._app(letters) if letters is not None else ""
        base = self._target.position(apps[0])
        try:
            if base is None:
                raise ChangesLostError("it was never made by this rule from this table")  # noqa: TRY301
            if base > rows.version() or not self._target.has_columns(source.derived):
                raise ChangesLostError("the table has another history, or other columns")  # noqa: TRY301
            self._merge_new(source, apps, base, done)
        except (ChangesLostError, FileNotFoundError) as e:  # a file replaced by compaction, and cleaned away since
            self._make_anew(source, apps, done)
            done.anew = one_line(e)
        done.version = rows.version()
        self._target.compact(COMPACTIONS)
        return done

    def _merge_new(self, source: SourceTable, apps: tuple[str, str], base: int, done: Materialization) -> None:
        end = source.rows.version()
        noted = load_transactions(self._storage, self._target.name)
        found = self._new_tombstones(source, apps[1], noted)
        tombstones, moves_letters = found.rows, found.noted
        waiting = list(added_since(log_store(self._storage, self._spec.table), base, end))
        is_exact = self._latest.deletes != "remove" and self._latest.changes is None
        if not is_exact and any(added.redriven for added in waiting):
            raise ChangesLostError("older rows were added behind newer ones (kgs redrive)")
        for part in _merges_of(waiting):
            is_last = part[-1] is waiting[-1]
            read = self._read(self._spec.table, [file for added in part for file in added.files], source.schema)
            done.rows += read.num_rows
            found_in = source.reading.read(read)
            if found_in.truncated:
                raise ChangesLostError("the followed table was truncated")
            rows = source.reading.without_truncated(found_in.rows, noted_truncate(noted, apps[0]))
            if is_last:
                rows = pa.concat_tables([rows, source.reading.tombstones(tombstones)])
                done.tombstones += tombstones.num_rows
            if self._target.position(apps[0]) != base:
                raise RuntimeError("another has merged the same meanwhile")
            base = end if is_last else part[-1].version
            self._merge(rows, {apps[0]: base, **(moves_letters if is_last else {})}, source.derived, done)
        if not waiting and tombstones.num_rows:
            done.tombstones += tombstones.num_rows
            rows = source.reading.tombstones(tombstones)
            self._merge(rows, {apps[0]: end, **moves_letters}, source.derived, done)
        elif not waiting and (end > base or moves_letters):
            self._target.move({apps[0]: end, **moves_letters})

    def _merge(self, rows: pa.Table, positions: dict[str, int], schema: pa.Schema, done: Materialization) -> None:
        chosen = newest(rows, self._key, self._latest.order)
        failpoint("latest-read")
        self._target.merge(chosen, self._key, self._latest.order, positions)
        self._target.load(schema)
        failpoint("latest-merged")
        done.commits += 1

    def _make_anew(self, source: SourceTable, apps: tuple[str, str], done: Materialization) -> None:
        """All rows, those of a part of the keys after the other, so that memory holds a part alone."""
        found = self._new_tombstones(source, apps[1], {})
        done.tombstones = found.rows.num_rows
        truncated = self._truncated(source)
        failpoint("latest-read")
        positions = {apps[0]: source.rows.version(), **found.noted, **note_of(truncated, apps[0])}
        adds = pa.table(source.rows.get_add_actions())
        done.rows = sum(filter(None, adds["num_records"].to_pylist()))
        count = 1 + sum(adds["size_bytes"].to_pylist()) // ANEW_BYTES
        parts = (self._newest_of(source, found.rows, truncated, (part, count)) for part in range(count))
        self._target.replace(parts, positions)
        failpoint("latest-merged")
        done.commits += 1
        self._target.load(source.derived)

    def _newest_of(
        self, source: SourceTable, tombstones: pa.Table, truncated: list[Truncate], part: tuple[int, int]
    ) -> pa.Table:
        """The newest row of each key of a part of the keys: its number, and how many there are."""
        kept = None
        for rows in self._all_changes(source, tombstones, truncated):
            mine = of_part(rows, self._key, *part)
            kept = needed(mine if kept is None else pa.concat_tables([kept, mine]), self._key, self._latest.order)
        kept = newest(kept, self._key, self._latest.order)
        kept = kept.filter(pc.invert(kept[DELETED])) if self._latest.deletes == "remove" else kept
        return kept.drop_columns([DELETED, KEPT])

    def _all_changes(self, source: SourceTable, tombstones: pa.Table, truncated: list[Truncate]) -> Iterator[pa.Table]:
        """Of every row of the source, a file after the other."""
        yield source.reading.tombstones(tombstones)
        for file in files_of(source.rows):
            read = source.reading.read(file.read(self._storage, self._spec.table, source.schema))
            yield source.reading.without_truncated(read.rows, truncated)

    def _new_tombstones(self, source: SourceTable, app: str, noted: Mapping[str, int]) -> NewTombstones:
        if source.letters is None or self._latest.deletes == "ignore" or self._key != (KAFKA_KEY,):
            return NewTombstones(none_of(source.schema))
        name, positions = self._spec.dead_letters_table, source.positions
        return DeadLetters(self._storage, name, source.letters, positions, source.schema).new_tombstones(app, noted)

    def _positions(self) -> dict[tuple[str, int], int]:
        """(topic id, partition) -> position, of all topics."""
        found = {}
        noted = load_transactions(self._storage, self._spec.table)
        for app, position in noted.items():
            parsed = parse_app_id(app)
            if parsed is None or parsed.group != self._group:
                continue
            ids = AppIds(parsed.group, parsed.topic, parsed.topic_id)
            if app == ids.position(parsed.partition):
                at = noted.get(ids.end(parsed.partition), 0) if position == CLOSED else position
                found[(str(parsed.topic_id), parsed.partition)] = at
        return found

    def _check(self, source: SourceTable) -> None:
        if self._latest.order != "offset":
            return
        for topic, lives in source.lives.items():
            if lives > 1:
                raise UnsafeError(
                    f"table {self._spec.table}: has rows of {lives} topics of the name {topic}, whose offsets cannot "
                    "be compared: set newest_rows: order: timestamp"
                )
        if len(source.lives) > 1 and not {*self._spec.rule.topic_columns} & {*self._key}:
            raise UnsafeError(
                f"table {self._spec.table}: is filled from {', '.join(sorted(source.lives))}, whose offsets cannot "
                "be compared: set newest_rows: order: timestamp, or put the topic_column into its key"
            )

    def _truncated(self, source: SourceTable) -> list[Truncate]:
        """All truncates; what is older than one must be known before any row is taken."""
        if self._latest.changes not in MAY_TRUNCATE:
            return []
        reads = (self._read(self._spec.table, [file], source.schema) for file in files_of(source.rows))
        truncated = [each for read in reads for each in source.reading.read(read).truncated]
        for each in truncated:
            others = {p for t, p in source.positions if t == each.topic_id} - {each.partition}
            if others and each.place is None:
                raise UnsafeError(
                    f"table {self._spec.table}: partition {each.partition} has a truncate at offset {each.offset}, and "
                    f"which rows of {len(others)} other partitions came before it cannot be told: give the topic one "
                    "partition, add source.lsn to the columns (PostgreSQL), or set newest_rows: deletes: ignore"
                )
        return truncated

    def _app(self, table: DeltaTable) -> str:
        latest = self._latest
        deletes = latest.deletes.replace("remove", "delete")  # its former word: positions noted by it stay valid
        types = ",".join(f"{name}={kind}" for name, kind in sorted(latest.types.items()))
        changes = f"/{latest.changes}/{types}" if latest.changes is not None else ""
        return f"{MARK}{table.metadata().id}/{','.join(self._key)}/{deletes}/{latest.order}{changes}"

    def _read(self, table: str, files: list[AddedFile], columns: pa.Schema) -> pa.Table:
        return pa.concat_tables([columns.empty_table(), *(file.read(self._storage, table, columns) for file in files)])


def _merges_of(added: list[AddedFiles]) -> Iterator[list[AddedFiles]]:
    """Versions in order, so many at a time as one merge takes."""
    part: list[AddedFiles] = []
    for each in added:
        if part and sum(a.size for a in part) + each.size > MERGE_BYTES:
            yield part
            part = []
        part.append(each)
    if part:
        yield part
