"""A table and its dead letters as they were at one moment, by topic: positions and rows of the same version."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kgs_core.config import TableSpec
from kgs_core.errors import PortError, TransientError, one_line
from kgs_core.lake.files.places import PartitionKey, offsets_in
from kgs_core.lake.files.row_schema import IDENTITY
from kgs_core.lake.rule import NO_OFFSETS, EndedOffsets, Offsets, SideRows, StoredPositions
from kgs_core.lake.rule.audit_result import NONE_ENDED
from kgs_core.lake.rule.positions import CLOSED, AppIds, ParsedAppId, offset_sum, parse_app_id
from kgs_core.lake.rule.table_owner import REDRIVES, owners
from kgs_core.lake.topics.ending import ERASE, KEEP
from kgs_core.lake.topics.shared_table import topics_by_id
from kgs_core.lake.topics.side_tables import noted_sides
from kgs_core.model import OffsetRange, TopicId
from kgs_core.ports import Lake, PinnedTable

TRIES = 4


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """Snapshot of what a topic has in its tables.

    Attributes:
        version: of the rows' table; None: it is not there.
        positions: of every partition that has any in the log of the rows' table.
        rows: offsets by partition, in no order; `dead_letters` likewise, of the dead-letter table. Rows of a topic id
            that the table's log does not know are with the first topic of the table.
        other_groups: groups that have positions in the rows' table beside ours.
        other_topics: topics that our group fills it from, and that were not asked for.
        sides: rows of side tables by partition; of one topic's records, in whatever table they are.
        handed_over: whether ours were handed over to another group; then nothing else is known.
    """

    version: int | None
    positions: Mapping[PartitionKey, StoredPositions]
    rows: Mapping[PartitionKey, Offsets]
    dead_letters: Mapping[PartitionKey, Offsets]
    other_groups: tuple[str, ...] = ()
    other_topics: tuple[str, ...] = ()
    handed_over: bool = False
    sides: Mapping[PartitionKey, Sequence[SideRows]] = field(default_factory=dict)


def load_snapshots(
    lake: Lake, group: str, specs: Sequence[TableSpec], belongs: Callable[[str], bool] = lambda _: True
) -> dict[str, TableSnapshot]:
    """The tables as they are now, by topic, also while consumers commit to them. Takes 8 bytes of memory per row.

    Args:
        specs: topics of one table, one at least.
        belongs: whether the rows of another topic of the group may be in it; else they are as those of a topic id that
            the table's log does not know.

    Raises:
        TransientError: the store did not answer, or files went away while they were read, several times.
        PermanentError: a table that is not of kgs's making.
    """
    problem: Exception | None = None
    for attempt in range(TRIES):
        try:
            return _load(lake, group, specs, belongs)
        except PortError:
            raise
        except Exception as e:  # noqa: BLE001 - OSError, DeltaError and plain exceptions alike: a log cleaned under us
            problem = e
            time.sleep(0.1 * 2**attempt)
    reason = one_line(problem) if problem else ""
    raise TransientError(f"table {specs[0].table}: cannot be read: {reason}: audit again") from problem


def _load(
    lake: Lake, group: str, specs: Sequence[TableSpec], belongs: Callable[[str], bool]
) -> dict[str, TableSnapshot]:
    # The order matters. Dead letters and side tables are committed before the rows that move the position past them, so
    # the rows' version is fixed first: what is seen of the others then is all that it needs, and what is too much lies
    # at or above its position.
    table, dead_letters = _pinned(lake, specs[0].table), _pinned(lake, specs[0].dead_letters_table)
    transactions = lake.all_versions(specs[0].table) if table else {}
    others = tuple(name for name in owners(transactions) if name != group)
    positions = {spec.topic: _positions(group, spec.topic, transactions, (table, dead_letters)) for spec in specs}
    # Lives that have ended were closed before, and a table changes hands as a whole
    gone = {
        topic
        for topic, found in positions.items()
        if table and any(is_handed_over(table, AppIds(group, topic, key.topic_id), key) for key in found)
    }
    version = table.version if table else None
    handed_over = dict.fromkeys(gone, TableSnapshot(version, {}, {}, {}, others, handed_over=True))
    if len(gone) == len(specs):
        return handed_over
    known_topics = topics_by_id(transactions, group).items()
    topics = {id_: topic for id_, topic in known_topics if topic in positions or belongs(topic)}
    rows, letters = offsets_in(table), offsets_in(dead_letters)
    sides = _sides(lake, group, specs, transactions)
    ended = _ended(lake, specs[0].table) if table else {}
    if table and ended and lake.all_versions(specs[0].table).get(REDRIVES) != table.version_of(REDRIVES):
        raise RuntimeError("rows have ended meanwhile")  # those of before, and dead letters of after
    found = {}
    for spec in specs:
        ours, known = {id_ for id_, topic in topics.items() if topic == spec.topic}, positions[spec.topic]
        if spec is specs[0]:
            ours |= {key.topic_id for key in (*rows, *letters)} - topics.keys()
            strangers = {key.topic_id for side in sides for key in side.rows if key.topic_id not in side.topic_ids}
            ours |= strangers - topics.keys()
        started_since = {key for key, at in known.items() if at.start is None and at.position is None}
        unasked = sorted(set(topics.values()) - positions.keys()) if spec is specs[0] else ()
        of_sides = {
            key: tuple(side.rows_of(AppIds(group, spec.topic, key.topic_id), key) for side in sides)
            for key in {key for side in sides for key in side.rows} | known.keys()
            if sides and key.topic_id in ours and key not in started_since
        }
        found[spec.topic] = TableSnapshot(
            version,
            {
                key: _with_redriven(at, ended.get(key, NONE_ENDED), group, spec, sides)
                for key, at in known.items()
                if key not in started_since
            },
            {key: offsets for key, offsets in rows.items() if key.topic_id in ours},
            {key: at for key, at in letters.items() if key.topic_id in ours and key not in started_since},
            others,
            tuple(unasked),
            sides=of_sides,
        )
    return found | handed_over


def _ended(lake: Lake, table: str) -> dict[PartitionKey, EndedOffsets]:
    """As of after the rows were looked at: what ends is noted before it goes."""
    by = lake.ended(table)
    rule, person = (by.get(decision, {}) for decision in (KEEP, ERASE))
    return {
        key: EndedOffsets(rule.get(key, NO_OFFSETS), person.get(key, NO_OFFSETS)) for key in rule.keys() | person.keys()
    }


@dataclass(frozen=True, slots=True)
class _Side:
    """One side table: its rows, and the topic ids that its own log knows."""

    table: PinnedTable
    name: str
    rows: Mapping[PartitionKey, Offsets]
    topic_ids: frozenset[TopicId]

    def rows_of(self, ids: AppIds, key: PartitionKey) -> SideRows:
        return SideRows(self.name, self.rows.get(key, NO_OFFSETS), position_in(self.table, ids, key.partition))


def _sides(lake: Lake, group: str, specs: Sequence[TableSpec], transactions: Mapping[str, int]) -> list[_Side]:
    names = {name for spec in specs for name in spec.side_tables.values()}
    for spec in specs:
        names |= noted_sides(transactions, group, spec.topic)
    found = []
    for name in sorted(names):
        table = _pinned(lake, name)
        if table is not None:
            parsed = (parse_app_id(app) for app in lake.all_versions(name))
            topic_ids = frozenset(app.topic_id for app in parsed if app is not None)
            found.append(_Side(table, name, offsets_in(table), topic_ids))
    return found


def _with_redriven(
    stored: StoredPositions, ended: EndedOffsets, group: str, spec: TableSpec, sides: Sequence[_Side]
) -> StoredPositions:
    """With the dead letters that have become rows of side tables, and with records that have ended."""
    ids = AppIds(group, spec.topic, stored.topic_id)
    count, total = stored.redriven
    for side in sides:
        count += side.table.version_of(ids.redriven(stored.partition)) or 0
        total = offset_sum([side.table.version_of(ids.redriven_sum(stored.partition)) or 0], total)
    return replace(stored, redriven=(count, total), ended=ended)


def _positions(
    group: str, topic: str, apps: Iterable[str], pinned: tuple[PinnedTable | None, PinnedTable | None]
) -> dict[PartitionKey, StoredPositions]:
    known = [parsed for app in apps if (parsed := parse_app_id(app))]
    ours = [app for app in known if (app.group, app.topic) == (group, topic)]
    keys = sorted({PartitionKey(app.topic_id, app.partition) for app in ours})
    return {key: stored_positions(AppIds(group, topic, key.topic_id), key, ours, pinned) for key in keys}


def _pinned(lake: Lake, name: str) -> PinnedTable | None:
    table = lake.pin(name)
    if table is not None:
        table.check_readable(IDENTITY)
    return table


def is_handed_over(table: PinnedTable, ids: AppIds, key: PartitionKey) -> bool:
    """Whether it is another group's now; a life that ended when its topic moved has an end."""
    is_closed = table.version_of(ids.position(key.partition)) == CLOSED
    return is_closed and table.version_of(ids.end(key.partition)) is None


def stored_positions(
    ids: AppIds, key: PartitionKey, ours: Iterable[ParsedAppId], pinned: tuple[PinnedTable | None, PinnedTable | None]
) -> StoredPositions:
    """Versions as of the pinned tables; `ours` only says which gaps to ask for, and may know of later ones."""
    table, dead_letters = pinned

    def version(app: str) -> int | None:
        return table.version_of(app) if table else None

    starts = sorted(
        app.gap_from
        for app in ours
        if app.gap_from is not None and (app.topic_id, app.partition) == (key.topic_id, key.partition)
    )
    ends = {start: version(ids.gap(key.partition, start)) for start in starts}
    return StoredPositions(
        key.topic_id,
        key.partition,
        version(ids.start(key.partition)),
        position_in(table, ids, key.partition),
        tuple(OffsetRange(start, end) for start, end in ends.items() if end is not None),
        position_in(dead_letters, ids, key.partition),
        (version(ids.redriven(key.partition)) or 0, version(ids.redriven_sum(key.partition)) or 0),
    )


def position_in(table: PinnedTable | None, ids: AppIds, partition: int) -> int | None:
    """A partition's position, or where its life ended; CLOSED where another group has it now."""
    stored = table.version_of(ids.position(partition)) if table else None
    ended = table.version_of(ids.end(partition)) if table and stored == CLOSED else None
    return stored if ended is None else ended
