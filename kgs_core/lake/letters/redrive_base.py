"""What redriven dead letters are judged by: one version of the rows' table, and the next commit that rests on it.

1. A dead letter is done when its record is a row: the table itself says which are, by topic id, partition and offset.
2. A letter at or above the position is not settled: it was committed before the rows of its batch, and the consumer
   reads that record again. One in an accepted gap stays a letter: the gap says that the table is without it.
3. The commit of redriven rows expects `REDRIVES` as of the version that was looked at, and raises it by a random step:
   another's commit never looks like this one, though it has as many letters of the same sum. So between look and commit
   nobody else has redriven anything, nor has the table changed hands. Consumers never write rows below their positions,
   so they cannot be in the way, and their commits are not in this one's.
4. The same commit notes of each partition how many letters have become rows, and the sum of their offsets: by that an
   audit tells them from records that are row and dead letter by a fault.
5. Where a route has side tables, all tables are looked at together, and each gets a commit of its own, with its own
   count and notes. The commits expect the token of the route that the letters were looked at by, as consumers' do.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kgs_core.config import TableSpec
from kgs_core.errors import UnsafeError
from kgs_core.lake.audit.audit_snapshot import stored_positions
from kgs_core.lake.files.places import PartitionKey, joined, offsets_in, offsets_of
from kgs_core.lake.files.row_schema import IDENTITY
from kgs_core.lake.rule import NO_OFFSETS, Offsets, StoredPositions
from kgs_core.lake.rule.audit import within_any
from kgs_core.lake.rule.positions import CLOSED, AppIds, offset_sum, parse_app_id
from kgs_core.lake.rule.route_tokens import route_of
from kgs_core.lake.rule.table_owner import REDRIVES, owners
from kgs_core.lake.topics.side_tables import noted_sides, route_fingerprint
from kgs_core.model import OffsetRange
from kgs_core.ports import CommitOutcome, FileWritten, Lake, LakeTable, PinnedTable

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Redriven:
    """What one table's log says of redriven dead letters.

    Attributes:
        redrives: version of `REDRIVES`; None: never written.
        partitions: how many letters of each have become rows of this table, and their `offset_sum`; None likewise.
    """

    redrives: int | None
    partitions: Mapping[PartitionKey, tuple[int | None, int | None]]


@dataclass(frozen=True, slots=True)
class RedriveBase:
    """The rows' tables as of one version of each, as far as it concerns some dead letters.

    Attributes:
        redriven: of the topic's own table and each side table, by name.
        tokens: of the route that each partition goes by; None: there never was one.
        stored: positions and gaps of the partitions of the letters.
        rows: offsets that are rows, in any table, or have ended; more may be named than were asked for.
    """

    group: str
    topic: str
    redriven: Mapping[str, Redriven]
    tokens: Mapping[PartitionKey, int | None]
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
        noted = self.redriven[table.name]
        expected: dict[str, int | None] = {REDRIVES: noted.redrives}
        new = {REDRIVES: (noted.redrives or 0) + 1 + secrets.randbits(32)}
        for key, offsets in offsets_of(rows).items():
            ids = AppIds(self.group, self.topic, key.topic_id)
            count, total = noted.partitions[key]
            each = np.unique(offsets)
            apps = ids.redriven(key.partition), ids.redriven_sum(key.partition)
            expected |= dict(zip(apps, (count, total), strict=True))
            expected[ids.route(key.partition)] = self.tokens[key]
            new |= dict(zip(apps, ((count or 0) + len(each), offset_sum(each.tolist(), total or 0)), strict=True))
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
    apps = lake.all_versions(spec.table)
    known = [parsed for app in apps if (parsed := parse_app_id(app))]
    ours = [app for app in known if (app.group, app.topic) == (group, spec.topic)]
    names = noted_sides(apps, group, spec.topic).union(spec.side_tables.values())
    sides = {name: side for name in sorted(names) if (side := lake.pin(name)) is not None}
    _refuse_handed_over(lake, group, (spec.table, *sides))
    stored, tokens = {}, {}
    keys = list(offsets_of(letters))
    for key in keys:
        ids = AppIds(group, spec.topic, key.topic_id)
        stored[key] = stored_positions(ids, key, ours, (table, None))
        _refuse_half_moved(ids, key.partition, table, sides)
        noted = noted_sides(apps, group, spec.topic, key.topic_id)
        own_sides = {name: side for name, side in sides.items() if name in noted or name in spec.side_tables.values()}
        tokens[key] = _token(spec, ids, key.partition, table, own_sides)
    offsets = letters["_offset"].to_numpy()
    within = OffsetRange(int(offsets.min()), int(offsets.max()) + 1) if len(offsets) else OffsetRange(0, 0)
    rows: dict[PartitionKey, Offsets] = {}
    for each in (table, *sides.values()):
        for key, found in offsets_in(each, within).items():
            rows[key] = np.concatenate([rows.get(key, NO_OFFSETS), found])
    for key, ended in joined(*lake.ended(spec.table).values()).items():  # read behind `REDRIVES`
        rows[key] = np.concatenate([rows.get(key, NO_OFFSETS), ended])
    redriven = {name: _redriven(each, group, spec, keys) for name, each in {spec.table: table, **sides}.items()}
    return RedriveBase(group, spec.topic, redriven, tokens, stored, rows)


def _refuse_handed_over(lake: Lake, group: str, tables: Sequence[str]) -> None:
    """Of a table that has changed hands nobody notes any more what we redrive; side tables do so before the own one."""
    for table in tables:
        if others := sorted(set(owners(lake.all_versions(table))) - {group}):
            raise UnsafeError(
                f"table {table}: group {group} has handed it over (kgs adopt), or never had it: redrive with group "
                f"{', '.join(others)}, once kgs adopt is done"
            )


def _refuse_half_moved(ids: AppIds, partition: int, own: PinnedTable, sides: Mapping[str, PinnedTable]) -> None:
    """Refuse side tables that have changed hands already: what is noted there under these ids, no heir would know."""
    app = ids.position(partition)
    closed = [name for name, side in sides.items() if side.version_of(app) == CLOSED]
    if closed and own.version_of(app) != CLOSED:
        raise UnsafeError(
            f"table {closed[0]}: has changed hands, and its topic's own table has not yet: run the same kgs adopt "
            "again, then redrive with the group that has them"
        )


def _redriven(table: PinnedTable, group: str, spec: TableSpec, keys: Sequence[PartitionKey]) -> Redriven:
    def of(key: PartitionKey) -> tuple[int | None, int | None]:
        ids = AppIds(group, spec.topic, key.topic_id)
        return table.version_of(ids.redriven(key.partition)), table.version_of(ids.redriven_sum(key.partition))

    return Redriven(table.version_of(REDRIVES), {key: of(key) for key in keys})


def _token(
    spec: TableSpec, ids: AppIds, partition: int, own: PinnedTable, sides: Mapping[str, PinnedTable]
) -> int | None:
    """Of the rule's route, which all tables must have taken up.

    `sides`: those of the rule, and those that this life of the topic had; not what a later one has besides.
    """
    app = ids.route(partition)
    token = own.version_of(app)
    there = {*spec.side_tables.values()} <= sides.keys()
    if (
        route_of(token) != route_fingerprint(spec)
        or not there
        or any(s.version_of(app) != token for s in sides.values())
    ):
        raise UnsafeError(
            f"table {spec.table}: rows of {spec.topic}:{partition} (topic id {ids.topic_id}) go by another route than "
            "the configured one: start consumers with this configuration first, then run it again; if Kafka no longer "
            "has that topic id, redrive its letters with the route of then; those of other topic ids are done"
        )
    return token


def _is_open(offsets: Offsets, stored: StoredPositions | None) -> _Mask:
    """Of which letters the table does not say that their records were read and are not in it."""
    if stored is None or stored.position is None:
        return np.ones(len(offsets), np.bool_)
    return (offsets >= stored.position) | within_any(offsets, stored.gaps)
