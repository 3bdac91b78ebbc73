"""Tables with the newest row of each key, derived from the append-only tables, which stay the truth.

1. What is new is told by the log of the rows' table: files of versions behind the stored position, which is written
   in the same commit as what comes of them. Killed anywhere, the next one goes on where the last commit left off.
2. A tombstone is a record without a value: a row of a format that takes null, else a dead letter; and so whatever else
   is wrong with the record. Dead letters above the rows' positions wait (`tombstones.py`); looked at twice they do no
   harm.
3. Several topics in one table: offsets tell what is newer only where all rows of a key are of one topic, so the topic's
   column must be in the key, or the time tells it.
4. What a person has erased is left out, wherever it is read. How many such records there are is noted: if there are
   more now, the newest of what is left of their keys comes, and values that others kept of them go. `kgs erase` has
   this done before it removes their rows, which tell the keys. What ends by `keep` of the rule stays here.
5. Redriven rows are older than what was there before. Beside tombstones, whose keys leave no trace, that could bring a
   deleted key back: then all is made anew. So it is where the log no longer says what was added.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from kgs_core.config import Settings, TableSpec
from kgs_core.errors import ConfigError, PortError, TransientError, one_line
from kgs_core.lake.delta.delta_log import load_transactions
from kgs_core.lake.delta.log_store import log_store
from kgs_core.lake.delta.table_changes import ChangesLostError, added_since, files_of, in_portions
from kgs_core.lake.delta.whole_table import opened_table
from kgs_core.lake.derived.deletion_vectors import ForeignVectorError
from kgs_core.lake.derived.derived_table import MARK, DerivedTable
from kgs_core.lake.derived.interpretation import MARKED, Truncate, note_of, noted_truncates
from kgs_core.lake.derived.kept_values import KEPT
from kgs_core.lake.derived.key_merge import KeyMerge, key_merge, rows_of
from kgs_core.lake.derived.newest_rows import DELETED, as_changes, as_oldest, has_key, needed, newest, of_part
from kgs_core.lake.derived.source_table import SourceTable
from kgs_core.lake.files.places import count_of
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
ERASED = "/erased"
"""Behind a position's application id: how many erased records were left out."""
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
    is_history: bool = False


class LatestByKeyTable:
    """Derived table of a table whose rule has `newest_rows`; `spec` is of one of its topics."""

    _is_history = False

    def __init__(self, settings: Settings, spec: TableSpec) -> None:
        path = spec.history_table if self._is_history else spec.latest_table
        if spec.rule.newest_rows is None or path is None:
            raise ConfigError([f"table {spec.table}: its rule has no such newest_rows"])
        self._latest = spec.rule.newest_rows
        self._key = spec.rule.newest_key
        self._group = settings.group
        self._spec = spec
        self._storage = Storage.of(settings.lake)
        self._target = DerivedTable(
            *(self._storage, path, spec.table, settings.lake), deletion_vectors=self._latest.deletion_vectors
        )

    @property
    def name(self) -> str:
        """Path of the derived table."""
        return self._target.name

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
                return self._attempt(Materialization(self._target.name, is_history=self._is_history))
            except (PortError, ConfigError):
                raise
            except Exception as e:  # noqa: BLE001 - deltalake raises what it likes; whatever landed is seen next time
                problem = e
        reason = one_line(problem) if problem else ""
        raise TransientError(f"table {self._target.name}: {reason}: run it again") from problem

    def lag_s(self, now_s: float) -> float | None:
        """Age of the oldest rows that are not merged yet, all where it was never made by this rule; None: not known.

        Raises:
            PortError: a log is broken, or the store did not answer.
            Exception: likewise, in the words of the store's client.
        """
        rows = opened_table(self._storage, self._spec.table)
        if rows is None:
            return None
        base = load_transactions(self._storage, self._target.name).get(self._app(rows), -1)
        log, end = log_store(self._storage, self._spec.table), rows.version()
        try:
            for start in range(base if 0 <= base <= end else 0, end, LOOKED_AT):
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
        lives = Counter(topics)
        source = SourceTable(self._storage, self._spec, rows, letters, positions, lives, is_history=self._is_history)
        source.check()
        self._target.load(source.derived)
        apps = self._app(rows), self._app(letters) if letters is not None else ""
        base = self._target.position(apps[0])
        source.know_erased()  # behind the load: what another has left out by then is left out here
        try:
            if base is None:
                raise ChangesLostError("it was never made by this rule from this table")  # noqa: TRY301
            if base > rows.version() or not self._target.has_columns(source.derived):
                raise ChangesLostError("the table has another history, or other columns")  # noqa: TRY301
            self._end_erased(source, apps, done)
            self._merge_new(source, apps, base, done)
            self._target.compact(COMPACTIONS)
        except (ChangesLostError, FileNotFoundError, ForeignVectorError) as e:
            # FileNotFoundError: a file replaced by compaction, and cleaned away since
            if base is not None:
                source.know_kept()
                source.former_gives = bool(source.kept) and self._noted_erased(apps[0]) == count_of(source.erased)
            self._make_anew(source, apps, done)
            done.anew = one_line(e)
        done.version = rows.version()
        return done

    def _merge_new(self, source: SourceTable, apps: tuple[str, str], base: int, done: Materialization) -> None:
        end = source.rows.version()
        noted = load_transactions(self._storage, self._target.name)
        found = source.new_tombstones(apps[1], noted)
        waiting = list(added_since(log_store(self._storage, self._spec.table), base, end))
        is_exact = self._latest.deletes != "remove" and self._latest.changes is None
        if not is_exact and any(added.redriven for added in waiting):
            raise ChangesLostError("older rows were added behind newer ones (kgs redrive)")
        if not waiting and end == base and not found.noted:
            return
        parts = [*in_portions(waiting, MERGE_BYTES)] or [[]]
        for number, part in enumerate(parts, 1):
            is_last = number == len(parts)
            read = source.read([file for added in part for file in added.files])
            done.rows += read.num_rows
            found_in = source.reading.read(read)
            if found_in.truncated:
                raise ChangesLostError("the followed table was truncated")
            rows = source.reading.without_truncated(found_in.rows, noted_truncates(noted, apps[0]))
            if is_last:
                rows = pa.concat_tables([rows, source.reading.tombstones(found.rows)])
                done.tombstones += found.rows.num_rows
            if (self._target.position(apps[0]), self._noted_erased(apps[0])) != (base, count_of(source.erased)):
                raise RuntimeError("another has merged the same meanwhile")
            base = end if is_last else part[-1].version
            self._merge(rows, {apps[0]: base, **(found.noted if is_last else {})}, source, done)

    def _merge(self, rows: pa.Table, positions: dict[str, int], source: SourceTable, done: Materialization) -> None:
        merged = self._merged(rows, source)
        failpoint("latest-read")
        self._target.apply(merged, positions)
        self._landed(source, done, has_rows=rows.num_rows > 0)

    def _landed(self, source: SourceTable, done: Materialization, *, has_rows: bool = True) -> None:
        failpoint("latest-merged")
        done.commits += has_rows
        self._target.load(source.derived)

    def _merged(self, rows: pa.Table, source: SourceTable) -> KeyMerge:  # noqa: ARG002 - a history asks it
        """What the table becomes by these rows, of new files or of tombstones."""
        chosen = newest(rows, self._key, self._latest.order)
        marked = MARKED.name if self._latest.deletes == "column" else ""
        return key_merge(self._target.files, chosen, self._key, self._latest.order, self._target.schema, marked=marked)

    def _make_anew(self, source: SourceTable, apps: tuple[str, str], done: Materialization) -> None:
        """All rows, those of a part of the keys after the other, so that memory holds a part alone."""
        found = source.new_tombstones(apps[1], {})
        done.tombstones = found.rows.num_rows
        truncated = source.truncated()
        failpoint("latest-read")
        positions = {apps[0]: source.rows.version(), **found.noted, **note_of(truncated, apps[0])}
        positions |= {f"{apps[0]}{ERASED}": count_of(source.erased)} if source.erased else {}
        adds = pa.table(source.rows.get_add_actions())
        done.rows = sum(filter(None, adds["num_records"].to_pylist()))
        count = 1 + sum(adds["size_bytes"].to_pylist()) // ANEW_BYTES
        parts = (self._newest_of(source, found.rows, truncated, (part, count)) for part in range(count))
        if self._noted_erased(apps[0]) > count_of(source.erased):
            raise RuntimeError("records were erased meanwhile")
        self._target.replace(parts, positions)
        self._landed(source, done)

    def _newest_of(
        self, source: SourceTable, tombstones: pa.Table, truncated: list[Truncate], part: tuple[int, int]
    ) -> pa.Table:
        """The newest row of each key of a part of the keys: its number, and how many there are."""
        kept = None
        former = self._givers() if source.former_gives else ()
        for rows in chain(self._all_changes(source, tombstones, truncated), former):
            mine = of_part(rows, self._key, *part)
            kept = needed(mine if kept is None else pa.concat_tables([kept, mine]), self._key, self._latest.order)
        kept = self._left(kept)
        return kept.filter(kept["_offset"].is_valid()).drop_columns([DELETED, KEPT])

    def _left(self, rows: pa.Table) -> pa.Table:
        """The newest row of each key that the table has."""
        left = newest(rows, self._key, self._latest.order)
        return left.filter(pc.invert(left[DELETED])) if self._latest.deletes == "remove" else left

    def _all_changes(self, source: SourceTable, tombstones: pa.Table, truncated: list[Truncate]) -> Iterator[pa.Table]:
        """Of every row of the source, a file after the other; and of those that are left of ended ones."""
        yield source.reading.tombstones(tombstones)
        for rows in self._rows_kept(source):
            yield source.reading.without_truncated(as_changes(rows), truncated)
        for file in files_of(source.rows):
            read = source.reading.read(source.read([file]))
            yield source.reading.without_truncated(read.rows, truncated)

    def _givers(self) -> Iterator[pa.Table]:
        """The rows of the derived table as if they were older than all."""
        keeps = self._latest.changes is not None or self._latest.deletes == "column"
        for rows in self._former() if keeps else ():
            yield as_changes(as_oldest(rows, self._key, self._latest.order))

    def _former(self) -> Iterator[pa.Table]:
        return self._target.all_rows()

    def _rows_kept(self, source: SourceTable) -> Iterator[pa.Table]:
        """Rows of the derived table whose records `keep` has ended."""
        return map(source.stays, self._former()) if source.kept else iter(())

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

    def _app(self, table: DeltaTable) -> str:
        latest = self._latest
        deletes = latest.deletes.replace("remove", "delete")  # its former word: positions noted by it stay valid
        types = ",".join(f"{name}={kind}" for name, kind in sorted(latest.types.items()))
        changes = f"/{latest.changes}/{types}" if latest.changes is not None else ""
        return f"{MARK}{table.metadata().id}/{','.join(self._key)}/{deletes}/{latest.order}{changes}"

    def _noted_erased(self, app: str) -> int:
        """How many erased records were left out, by the derived table."""
        return self._target.position(f"{app}{ERASED}") or 0

    def _end_erased(self, source: SourceTable, apps: tuple[str, str], done: Materialization) -> None:
        """Have the newest of what is left of the keys of records that were erased, where these were not left out."""
        if self._noted_erased(apps[0]) == count_of(source.erased):
            return
        source.know_kept()
        keys = source.keys_of_erased(apps[1], self._former())
        every = self._all_changes(source, source.new_tombstones(apps[1], {}).rows, source.truncated())
        parts = [rows.filter(pa.array(has_key(rows, keys))) for rows in every]
        left, table = self._left(pa.concat_tables(parts)), self._target.schema
        failpoint("latest-read")
        gone = rows_of(self._target.files, keys, source.erased, table)
        merged = KeyMerge(gone, left.select(table.names).cast(table))
        self._target.apply(merged, {f"{apps[0]}{ERASED}": count_of(source.erased)}, anew=True)
        self._landed(source, done)
