"""One topic's place in the lake: its table, side tables and dead letters, and the commits that join them."""

import logging
from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa

from kgs_core.config import TableSpec, TopicRule
from kgs_core.errors import TransientError, UnsafeError
from kgs_core.lake.files.columns import as_wide_as_there, lacking, widened
from kgs_core.lake.files.layout import layout_of, table_schema
from kgs_core.lake.files.row_schema import DEAD_LETTER_SCHEMA, parsed_schema, value_schema
from kgs_core.lake.rule.batch import TablePositions, TopicBatch
from kgs_core.lake.rule.judgements import closed
from kgs_core.lake.rule.positions import CLOSED, AppIds, epoch_at, epoch_stamp, parse_app_id
from kgs_core.lake.rule.route_tokens import ROUTED
from kgs_core.lake.rule.table_owner import MASKED, STARTS, is_over, refuse_other_secret
from kgs_core.lake.topics.judgements import Judgements
from kgs_core.lake.topics.shared_table import refuse_other_groups
from kgs_core.lake.topics.side_tables import TRIES, SideTables
from kgs_core.model import TopicId
from kgs_core.ports import CommitOutcome, Lake, LakeTable
from kgs_core.system.failpoints import failpoint

_log = logging.getLogger(__name__)


class TopicTable:
    """The lake's side of one topic id. Used by one thread at a time.

    Attributes:
        schema: the table's columns.
        columns: what a record's value becomes; before a transform, where there is one.
    """

    def __init__(
        self, lake: Lake, spec: TableSpec, ids: AppIds, schema: pa.Schema, columns: pa.Schema | None = None
    ) -> None:
        self.spec = spec
        self.ids = ids
        self.columns = columns if columns is not None else value_schema(spec.rule)
        self.schema = schema
        self._lake = lake
        self._rows = lake.table(spec.table, schema, layout_of(spec.rule))
        self._dead_letters = lake.table(spec.dead_letters_table, DEAD_LETTER_SCHEMA)
        self._dead_letters_exist = False
        self._sides = SideTables(lake, spec, ids)
        self._sides.use(schema, layout_of(spec.rule))
        self._judgements = Judgements(ids)

    def open(self) -> None:
        """Make the table if it is missing, check it, and add missing columns if its rule lets it.

        Raises:
            UnsafeError: it is there and does not let the guarantee hold.
        """
        rule = self.spec.rule
        if rule.has_transform or (rule.names_columns and rule.evolve == "none"):
            self._rows.create()
            self._sides.create()
        else:
            self._fit(self.columns)

    def add_columns(self, more: pa.Schema) -> None:
        """Add columns seen in values to the table; afterwards `columns` has them, if the rule lets it.

        Raises:
            PortError: see `Lake.columns`.
        """
        # With those that are there: layout and route are of these
        self._fit(pa.schema([*(f for f in self.columns if f.name not in more.names), *more]))

    def _fit(self, wanted: pa.Schema) -> None:
        """Write files with the table's columns, and give the table those of `wanted` if the rule lets it.

        If the rule names columns, files have exactly these; other columns of the table are null. If a registry defines
        the columns, the table's count: they are what all writers, older and newer, have agreed on.
        """
        rule, name = self.spec.rule, self.spec.table
        wanted = widened(wanted) if rule.evolve == "widen" else wanted
        whole, layout = table_schema(rule, parsed_schema(rule, wanted)), layout_of(rule)
        there = self._lake.columns(name, whole, whole if rule.evolve != "none" else None, layout)
        # Before files get them: of a file's column that its table lacks, compaction would leave nothing
        self._sides.fit(there, layout, evolve=rule.evolve != "none")
        if rule.names_columns:
            self.columns = as_wide_as_there(wanted, there) if rule.evolve == "widen" else wanted
        else:
            self.columns = value_columns(rule, [f for f in there if f.nullable or f.name in wanted.names])
        self._tell(wanted, there)
        self.schema = table_schema(rule, parsed_schema(rule, self.columns))
        self._rows = self._lake.table(name, self.schema, layout)
        self._sides.use(self.schema, layout)

    def _tell(self, wanted: pa.Schema, there: pa.Schema) -> None:
        """Log which of a topic's columns the table will not have, or not as wide."""
        name = self.spec.table
        if passed_over := [f.name for f in lacking(there, wanted)]:
            _log.warning("table=%s has no column %s: evolve: add_columns adds it", name, ", ".join(passed_over))
        for field in wanted:
            kind = there.field(field.name).type if field.name in there.names else field.type
            if kind != field.type and widened([pa.field(field.name, kind)]).types == [field.type]:
                _log.warning(
                    "table=%s column=%s stays %s, a larger value is a bad record: Delta cannot widen a column: "
                    "read the topic into another table, which is made with %s",
                    *(name, field.name, kind, field.type),
                )

    def exists(self) -> bool:
        """Whether the table of rows exists."""
        return self._rows.exists()

    def is_started(self, partitions: int) -> bool:
        """Whether the start position of any of partitions 0..n-1 has been fixed."""
        stored = self._rows.versions([self.ids.start(p) for p in range(partitions)])
        return any(version is not None for version in stored.values())

    def fix_start(self, offsets: Mapping[int, int]) -> None:
        """Fix where reading begins, for good: positions and starts in one commit, for partitions without them.

        Two consumers that start at once cannot disagree: one of their commits is refused, and the other's counts.

        `offsets`: partition -> first offset to read, of *all* partitions known at the topic's first start.

        Raises:
            UnsafeError: another group fills the table, or this life of the topic has ended.
        """
        while True:
            stored = self._rows.versions([*(self.ids.start(p) for p in offsets), STARTS])
            new = {p: offset for p, offset in offsets.items() if stored[self.ids.start(p)] is None}
            if not new:
                return
            versions = {app: o for p, o in new.items() for app in (self.ids.position(p), self.ids.start(p))}
            known = refuse_other_groups(self._lake, self.spec.table, self.ids.group)
            if is_over(known, self.ids):  # a partition that appeared in a cluster that the topic has moved from
                raise self._handed_over(self.spec.table)
            numbers = self._numbers_of_letters(new)
            expected = dict.fromkeys([*versions, *numbers]) | {STARTS: stored[STARTS]}
            versions |= {STARTS: (stored[STARTS] or 0) + 1, **numbers}
            if self._rows.commit(expected, versions, ()) is CommitOutcome.REFUSED:
                self._check_starts(new)

    def note_secret(self, token: int | None) -> None:
        """Have the table remember the secret that its fields are hashed with, by its token: equal values stay equal.

        `token`: None: nothing is hashed.

        Raises:
            UnsafeError: there are hashes by another secret in it.
        """
        while token is not None:
            stored = self._rows.versions([MASKED])[MASKED]
            if stored == token:
                return
            refuse_other_secret(self.spec.table, stored, token)
            self._rows.commit({MASKED: None}, {MASKED: token}, ())

    def _numbers_of_letters(self, partitions: Collection[int]) -> dict[str, int]:
        """Closed numbers (`judgements`) left with the dead letters of a lost table, for partitions that begin."""
        if not (self._dead_letters_exist or self._dead_letters.exists()):
            return {}
        found = self._dead_letters.versions([self.ids.judgement(p) for p in partitions])
        return {app: closed(number) for app, number in found.items() if number is not None}

    def _check_starts(self, offsets: Mapping[int, int]) -> None:
        """Refuse a position without a start: no writer makes one, and fixing a start would be refused for ever."""
        stored = self._rows.versions([app for p in offsets for app in (self.ids.position(p), self.ids.start(p))])
        for p in offsets:
            if stored[self.ids.start(p)] is None and stored[self.ids.position(p)] is not None:
                raise UnsafeError(
                    f"table {self.spec.table}: {self.ids.topic}:{p} has a position without a start: restore its log"
                )

    def stored_position(self, partition: int) -> int | None:
        """The table's present position of a partition; None: it was never fixed."""
        return self._open_positions(self._rows, {partition})[partition]

    def _open_positions(self, table: LakeTable, partitions: Collection[int]) -> dict[int, int | None]:
        """Stored positions."""
        stored = table.versions([self.ids.position(p) for p in partitions])
        if CLOSED in stored.values():
            raise self._handed_over(table.name)
        return {p: stored[self.ids.position(p)] for p in partitions}

    def _handed_over(self, table: str) -> UnsafeError:
        ids = self.ids
        return UnsafeError(
            f"table {table}: group {ids.group} has handed over its positions of topic {ids.topic}, id {ids.topic_id} "
            "(kgs adopt): start consumers with the group and the cluster that have them now"
        )

    def positions(self, partitions: Collection[int]) -> TablePositions:
        """Positions as the table has them now; a partition that appeared after the first start is fixed at 0."""
        stored = self._open_positions(self._rows, partitions)
        late = {p: 0 for p in partitions if stored[p] is None}
        if late:
            self.fix_start(late)
            stored = self._open_positions(self._rows, partitions)
        found = {p: version for p, version in stored.items() if version is not None}
        stamps = self._taken_up(partitions)
        marks: dict[int, int | None] = dict.fromkeys(partitions)
        if self._dead_letters_exist:
            marks = self._open_positions(self._dead_letters, partitions)
        sides = self._sides.take_up(self._rows, partitions, is_routed=stamps[ROUTED] is not None)
        epochs = {p: epoch for p, o in found.items() if (epoch := epoch_at(stamps[self.ids.epoch(p)], o)) is not None}
        return TablePositions(found, marks, epochs, sides)

    def _taken_up(self, partitions: Collection[int]) -> Mapping[str, int | None]:
        """Versions in the own table beside positions, once no earlier owner can add to what it finds."""
        self._dead_letters_exist = self._dead_letters_exist or self._dead_letters.exists()
        others = [*([self._dead_letters] if self._dead_letters_exist else []), *self._sides.tables.values()]
        epochs = [self.ids.epoch(p) for p in partitions]
        for _ in range(TRIES):
            stored = self._rows.versions([*epochs, *self._judgements.apps(partitions), ROUTED])
            if self._judgements.take_up(self._rows, others, partitions, stored):
                return stored
        raise TransientError(f"table {self.spec.table}: others take up the partitions of {self.ids.topic} all the time")

    def commit(self, batch: TopicBatch) -> CommitOutcome:
        """Commit dead letters, then side tables, then rows and positions. REFUSED: drop it, ask `positions` again.

        A kill in between leaves dead letters, or rows of side tables, whose offsets will be read again; the position in
        their own table then drops them.
        """
        if batch.dead_letters is not None and self._commit_dead_letters(batch) is CommitOutcome.REFUSED:
            return CommitOutcome.REFUSED
        if self._sides.commit(batch, self._judgements.of_others(batch.ranges)) is CommitOutcome.REFUSED:
            return CommitOutcome.REFUSED
        expected = {self.ids.position(p): r.start for p, r in batch.ranges.items()} | self._guard(batch.ranges)
        new = {self.ids.position(p): r.end for p, r in batch.ranges.items()} | self._judgements.closing(batch.ranges)
        failpoint("before-commit")
        epochs = {p: epoch for p, epoch in batch.leader_epochs.items() if p in batch.ranges and epoch >= 0}
        stamps = {self.ids.epoch(p): epoch_stamp(e, batch.ranges[p].end) for p, e in epochs.items()}
        stamps |= self._sides.notes()
        outcome = self._rows.commit(expected, new, batch.files, stamps)
        failpoint("after-commit")
        if outcome is CommitOutcome.COMMITTED:
            self._sides.are_noted()
            self._judgements.are_closed(batch.ranges)
        return outcome

    def _guard(self, partitions: Collection[int]) -> dict[str, int | None]:
        """Versions that a commit to the own table must find beside positions."""
        return self._sides.guard(partitions) | self._judgements.of_own(partitions)

    def _commit_dead_letters(self, batch: TopicBatch) -> CommitOutcome:
        """Compare-and-set on the marks that the dead letters were filtered by, so that none is written twice."""
        if not self._dead_letters_exist:
            self._rows.versions(())  # raises where the lake is away: no table is made in its place
            self._dead_letters.create()
            self._dead_letters_exist = True
        others = self._dead_letters, [*self._sides.tables.values()]
        announced = self._judgements.announce(self._rows, *others, batch, self._guard(batch.unsettled))
        if announced is CommitOutcome.REFUSED:
            return CommitOutcome.REFUSED
        marks = batch.dead_letter_marks
        expected = {self.ids.position(p): marks.get(p) for p in batch.ranges} | self._judgements.of_others(batch.ranges)
        new = {self.ids.position(p): r.end for p, r in batch.ranges.items() if r.end > (marks.get(p) or 0)}
        outcome = self._dead_letters.commit(expected, new, () if batch.dead_letters is None else [batch.dead_letters])
        failpoint("after-dead-letter-commit")
        return outcome

    def accept_gap(self, partition: int, start: int, end: int) -> CommitOutcome:
        """Move the position over offsets that are gone, and record the loss for good, in one compare-and-set commit."""
        position = self.ids.position(partition)
        gap = self.ids.gap(partition, start)
        return self._rows.commit({position: start, gap: None}, {position: end, gap: end}, ())


def value_columns(rule: TopicRule, there: Iterable[pa.Field]) -> pa.Schema:
    """Columns of a table that values become if a registry defines them: neither kgs's own nor computed ones."""
    computed = [column.name for column in rule.partition_columns if column.unit is not None]
    ours = [*parsed_schema(rule, pa.schema([])).names, *computed]
    return pa.schema([(f.name, f.type) for f in there if f.name not in ours])


def has_started(lake: Lake, table: str, ids: AppIds) -> bool:
    """Whether a table has the start of any partition; False if it is missing."""
    found = (parse_app_id(app) for app in lake.all_versions(table))
    return any(
        f.is_start and (f.group, f.topic, f.topic_id) == (ids.group, ids.topic, ids.topic_id) for f in found if f
    )


def earlier_topic_ids(lake: Lake, table: str, ids: AppIds) -> list[TopicId]:
    """Ids of topics of the same name and group that this table has positions of, other than the present one."""
    found = (parse_app_id(app) for app in lake.all_versions(table))
    return sorted(
        {f.topic_id for f in found if f and (f.group, f.topic) == (ids.group, ids.topic) and f.topic_id != ids.topic_id}
    )
