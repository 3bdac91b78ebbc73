"""Tombstones among dead letters: which are new to a derived table, and which must wait.

A dead letter without a value is a tombstone, whatever its error: its format takes no null, or the record has a fault
in its key or headers. It is committed before the rows of its batch. At or above the rows' position it waits,
since older rows of its partition may be missing yet. Up to where the dead letters were looked at is noted as a version
of their log; beside it, of each partition with some that wait, the lowest offset of these. So neither those that wait
for ever (their topic was deleted) nor what came behind them is read again before the position has passed them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from kgs_core.lake.delta.log_store import log_store
from kgs_core.lake.delta.table_changes import AddedFile, added_since, files_of
from kgs_core.lake.files.storage import Storage

NOT_NOTED = -1
_PLACE = ("_topic_id", "_partition", "_offset")
_NAMES = (*_PLACE, "_timestamp", "_key")
_WAITS = "/waits/"
_Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class NewTombstones:
    """What is to be merged, and what is to be noted in the same commit.

    Attributes:
        rows: place, timestamp and key.
        noted: application id -> version; `NOT_NOTED` where something no longer waits.
    """

    rows: pa.Table
    noted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The dead letters as of one version of their table.

    Attributes:
        letters: the version.
        positions: (topic id, partition) -> position of the rows.
        schema: of the rows' table; its types count.
    """

    storage: Storage
    table: str
    letters: DeltaTable
    positions: Mapping[_Key, int]
    schema: pa.Schema

    def new_tombstones(self, app: str, noted: Mapping[str, int]) -> NewTombstones:
        """Tombstones that can be merged by now, and could not before.

        Args:
            app: what their position is noted under.
            noted: all that the derived table notes.

        Raises:
            ChangesLostError: the log does not tell what is new.
            Exception: the store did not answer.
        """
        base, prefix = max(noted.get(app, NOT_NOTED), NOT_NOTED), f"{app}{_WAITS}"
        waits = waiting_from(app, noted)
        passed = {key: lowest for key, lowest in waits.items() if self.positions.get(key, 0) > lowest}
        still = {key: lowest for key, lowest in waits.items() if key not in passed}
        found = [none_of(self.schema)]
        seen: set[tuple[_Key, int]] = set()
        for file, is_new in self._files(base, passed):
            rows = self._tombstones(file)
            is_settled = np.zeros(rows.num_rows, np.bool_)
            places = zip(*(rows[name].to_pylist() for name in _PLACE), strict=True)
            for n, (topic_id, partition, offset) in enumerate(places):
                key = (topic_id, partition)
                if (is_new or offset >= passed.get(key, offset + 1)) and (key, offset) not in seen:
                    seen.add((key, offset))
                    is_settled[n] = offset < self.positions.get(key, 0)
                    if not is_settled[n]:
                        still[key] = min(still.get(key, offset), offset)
            found.append(rows.filter(pa.array(is_settled)).select(list(_NAMES)).cast(found[0].schema))
        after = {app: self.letters.version()}
        after |= {f"{prefix}{key[0]}/{key[1]}": still.get(key, NOT_NOTED) for key in {**waits, **still}}
        changed = {each: version for each, version in after.items() if version != noted.get(each, NOT_NOTED)}
        return NewTombstones(pa.concat_tables(found), changed)

    def below(self, waits: Mapping[_Key, int]) -> pa.Table:
        """All tombstones but those that wait, of this version: each once, whatever was noted of them."""
        found = [none_of(self.schema)]
        for file in files_of(self.letters):
            rows = self._tombstones(file)
            places = zip(*(rows[name].to_pylist() for name in _PLACE), strict=True)
            settled = [offset < waits.get((topic_id, partition), offset + 1) for topic_id, partition, offset in places]
            kept = rows.filter(pa.array(settled, pa.bool_()))
            found.append(kept.select(list(_NAMES)).cast(found[0].schema))
        return pa.concat_tables(found)

    def _files(self, base: int, passed: Mapping[_Key, int]) -> Iterator[tuple[AddedFile, bool]]:
        """Files to look at, and whether all of their letters are new."""
        if base == NOT_NOTED:
            yield from ((file, True) for file in files_of(self.letters))
            return
        for added in added_since(log_store(self.storage, self.table), base, self.letters.version()):
            yield from ((file, True) for file in added.files)
        if passed:
            yield from ((file, False) for file in files_of(self.letters, min(passed.values())))

    def _tombstones(self, file: AddedFile) -> pa.Table:
        there = pa.schema(self.letters.schema())
        rows = file.read(self.storage, self.table, pa.schema([there.field(name) for name in ("value", *_NAMES)]))
        return rows.filter(rows["value"].is_null())


def waiting_from(app: str, noted: Mapping[str, int]) -> dict[_Key, int]:
    """(topic id, partition) -> lowest offset that waits, by what is noted beside the position `app`."""
    prefix = f"{app}{_WAITS}"
    return {_key(each[len(prefix) :]): v for each, v in noted.items() if each.startswith(prefix) and v >= 0}


def none_of(schema: pa.Schema) -> pa.Table:
    """No tombstone, with the columns that they have."""
    return pa.schema([schema.field(name) for name in _NAMES]).empty_table()


def _key(text: str) -> _Key:
    topic_id, _, partition = text.rpartition("/")
    return topic_id, int(partition)
