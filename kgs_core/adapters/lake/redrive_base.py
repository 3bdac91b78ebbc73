"""What redriven dead letters are judged by: one version of the rows' table, and the next commit that rests on it.

1. A dead letter is done when its record is a row: the table itself says which are, by topic id, partition and offset.
2. A letter at or above the position is not settled: it was committed before the rows of its batch, and the consumer
   reads that record again. One in an accepted gap stays a letter: the gap says that the table is without it.
3. The commit of redriven rows expects the count `REDRIVES` as of the version that was looked at, and raises it. So
   between look and commit nobody else has redriven anything, nor has the table changed hands. Consumers never write
   rows below their positions, so they cannot be in the way, and their commits are not in this one's.
4. The same commit notes of each partition how many letters have become rows, and the sum of their offsets: by that an
   audit tells them from records that are row and dead letter by a fault.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kgs_core.adapters.lake.audit_snapshot import (
    PartitionKey,
    is_handed_over,
    offsets_in,
    offsets_of,
    stored_positions,
)
from kgs_core.adapters.lake.row_schema import IDENTITY
from kgs_core.config import TableSpec
from kgs_core.errors import UnsafeError
from kgs_core.exactly_once import NO_OFFSETS, Offsets, StoredPositions
from kgs_core.exactly_once.positions import AppIds, offset_sum, parse_app_id
from kgs_core.exactly_once.table_owner import REDRIVES
from kgs_core.model import OffsetRange
from kgs_core.ports import CommitOutcome, FileWritten, Lake, LakeTable, PinnedTable

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RedriveBase:
    """The rows' table as of one version, as far as it concerns some dead letters.

    Attributes:
        redrives: version of `REDRIVES`; None: never written.
        stored: positions, gaps and what was redriven, of the partitions of the letters.
        rows: offsets that are rows; more may be named than were asked for.
    """

    group: str
    topic: str
    redrives: int | None
    stored: Mapping[PartitionKey, StoredPositions]
    rows: Mapping[PartitionKey, Offsets]

    def sorted_out(self, letters: pa.Table) -> tuple[pa.Table, int, int]:
        """The letters to redrive, each once; how many are rows already; how many are not settled or not to be."""
        state = np.zeros(letters.num_rows, np.int8)
        partitions, offsets = letters["_partition"].to_numpy(), letters["_offset"].to_numpy()
        topic_ids = letters["_topic_id"].to_numpy()
        for key in offsets_of(letters):
            here = np.flatnonzero((topic_ids == key.topic_id) & (partitions == key.partition))
            found, stored = offsets[here], self.stored.get(key)
            open_ = _is_open(found, stored)
            done = np.isin(found, self.rows.get(key, NO_OFFSETS)) & ~open_
            again = np.ones(len(here), np.bool_)
            again[np.unique(found, return_index=True)[1]] = False
            state[here[done | again]] = 1
            state[here[open_]] = 2
        return letters.filter(pa.array(state == 0)), int((state == 1).sum()), int((state == 2).sum())  # noqa: PLR2004

    def commit(self, table: LakeTable, rows: pa.Table, files: Sequence[FileWritten]) -> CommitOutcome:
        """Add redriven rows. REFUSED means: look again.

        Raises:
            PortError: see `LakeTable.commit`.
        """
        expected: dict[str, int | None] = {REDRIVES: self.redrives}
        new = {REDRIVES: (self.redrives or 0) + 1}
        for key, offsets in offsets_of(rows).items():
            ids = AppIds(self.group, self.topic, key.topic_id)
            count, total = self.stored[key].redriven
            each = np.unique(offsets)
            apps = ids.redriven(key.partition), ids.redriven_sum(key.partition)
            expected |= dict(zip(apps, (count or None, total if count else None), strict=True))
            new |= dict(zip(apps, (count + len(each), offset_sum(each.tolist(), total)), strict=True))
        return table.commit(expected, new, files)


def pinned_rows(lake: Lake, spec: TableSpec) -> PinnedTable:
    """The newest version of the rows' table.

    Raises:
        UnsafeError: there is none.
        Exception: the store did not answer.
    """
    table = lake.pin(spec.table)
    if table is None:
        raise UnsafeError(f"table {spec.table}: not there, but its dead letters are: bring it back")
    return table


def look(lake: Lake, group: str, spec: TableSpec, letters: pa.Table) -> RedriveBase:
    """The rows' table as it is now.

    Reads the identity columns of those files that may hold offsets of these letters.

    Raises:
        UnsafeError: there is no table, or it was handed over to another group.
        PermanentError: a table that is not of kgs's making.
        Exception: the store did not answer, or files went away while they were read.
    """
    table = pinned_rows(lake, spec)
    table.check_readable(IDENTITY)
    known = [parsed for app in lake.all_versions(spec.table) if (parsed := parse_app_id(app))]
    ours = [app for app in known if (app.group, app.topic) == (group, spec.topic)]
    stored = {}
    for key in offsets_of(letters):
        ids = AppIds(group, spec.topic, key.topic_id)
        if is_handed_over(table, ids, key):
            raise UnsafeError(
                f"table {spec.table}: group {group} has handed it over (kgs adopt): redrive with the group that has it"
            )
        stored[key] = stored_positions(ids, key, ours, (table, None))
    offsets = letters["_offset"].to_numpy()
    within = OffsetRange(int(offsets.min()), int(offsets.max()) + 1) if len(offsets) else OffsetRange(0, 0)
    return RedriveBase(group, spec.topic, table.version_of(REDRIVES), stored, offsets_in(table, within))


def _is_open(offsets: Offsets, stored: StoredPositions | None) -> _Mask:
    """Of which letters the table does not say that their records were read and are not in it."""
    if stored is None or stored.position is None:
        return np.ones(len(offsets), np.bool_)
    return (offsets >= stored.position) | _within_any(offsets, stored.gaps)


def _within_any(offsets: Offsets, gaps: Sequence[OffsetRange]) -> _Mask:
    mask = np.zeros(len(offsets), np.bool_)
    for gap in gaps:
        mask |= (offsets >= gap.start) & (offsets < gap.end)
    return mask
