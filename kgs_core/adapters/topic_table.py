"""One topic's place in the lake: its table, its dead-letter table, and the commits that join them."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from kgs_core.adapters.crash_points import crash_here
from kgs_core.adapters.delta_table import DeltaTopicTable, Outcome
from kgs_core.adapters.rows import LETTER_SCHEMA
from kgs_core.adapters.storage import Storage
from kgs_core.config import TableSpec
from kgs_core.config.settings import LakeSettings
from kgs_core.consumer.app_ids import AppIds
from kgs_core.errors import UnsafeError
from kgs_core.model import TopicBatch


@dataclass(frozen=True, slots=True)
class Positions:
    """What the lake says of the partitions asked for.

    Attributes:
        next_offset: partition -> next offset to read.
        letter_marks: partition -> offset below which dead letters are written already; None where there are none.
    """

    next_offset: Mapping[int, int]
    letter_marks: Mapping[int, int | None]


class TopicTable:
    """The lake's side of one topic id. Used by one thread at a time."""

    def __init__(self, storage: Storage, lake: LakeSettings, spec: TableSpec, ids: AppIds, schema: pa.Schema) -> None:
        self.spec = spec
        self.ids = ids
        self.schema = schema
        retention = lake.vacuum_retention_h
        self._lake = lake
        self._rows = DeltaTopicTable(storage, spec.table, schema, vacuum_retention_h=retention)
        self._letters = DeltaTopicTable(storage, spec.letters_table, LETTER_SCHEMA, vacuum_retention_h=retention)
        self._letters_exist = False

    def open(self) -> None:
        """Make the table if it is not there, and check it.

        Raises:
            UnsafeError: it is there and does not let the guarantee hold.
        """
        self._create(self._rows)

    def _create(self, table: DeltaTopicTable) -> None:
        lake = self._lake
        table.create(checkpoint_interval=lake.checkpoint_interval, log_retention_h=lake.log_retention_h)

    def is_started(self, partitions: int) -> bool:
        """Whether the start position of any of partitions 0..n-1 has been fixed."""
        stored = self._rows.versions([self.ids.start(p) for p in range(partitions)])
        return any(version is not None for version in stored.values())

    def fix_start(self, offsets: Mapping[int, int]) -> None:
        """Fix where reading begins, for good: positions and starts in one commit, for partitions without them.

        Two consumers that start at once cannot disagree: one of their commits is refused, and the other's counts.

        Args:
            offsets: partition -> first offset to read, of *all* partitions known at the topic's first start.
        """
        while True:
            stored = self._rows.versions([self.ids.start(p) for p in offsets])
            new = {p: offset for p, offset in offsets.items() if stored[self.ids.start(p)] is None}
            if not new:
                return
            apps = [self.ids.position(p) for p in new] + [self.ids.start(p) for p in new]
            versions = {self.ids.position(p): o for p, o in new.items()} | {
                self.ids.start(p): o for p, o in new.items()
            }
            if self._rows.commit(dict.fromkeys(apps), versions, None) is Outcome.REFUSED:
                self._check_starts(new)

    def _check_starts(self, offsets: Mapping[int, int]) -> None:
        """A position without a start is of nobody's making: fixing a start would be refused for ever."""
        stored = self._rows.versions([app for p in offsets for app in (self.ids.position(p), self.ids.start(p))])
        for p in offsets:
            if stored[self.ids.start(p)] is None and stored[self.ids.position(p)] is not None:
                raise UnsafeError(
                    f"table {self.spec.table}: {self.ids.topic}:{p} has a position without a start: restore its log"
                )

    def stored_position(self, partition: int) -> int | None:
        """The position as the table has it now; None: it was never fixed."""
        app = self.ids.position(partition)
        return self._rows.versions([app])[app]

    def positions(self, partitions: set[int]) -> Positions:
        """Positions as the table has them now; a partition that appeared after the first start is fixed at 0."""
        stored = self._rows.versions([self.ids.position(p) for p in partitions])
        late = {p: 0 for p in partitions if stored[self.ids.position(p)] is None}
        if late:
            self.fix_start(late)
            stored = self._rows.versions([self.ids.position(p) for p in partitions])
        found = {p: version for p in partitions if (version := stored[self.ids.position(p)]) is not None}
        marks: dict[int, int | None] = dict.fromkeys(partitions)
        if self._letters_exist or self._letters.exists():
            self._letters_exist = True
            letters = self._letters.versions([self.ids.position(p) for p in partitions])
            marks = {p: letters[self.ids.position(p)] for p in partitions}
        return Positions(found, marks)

    def commit(self, batch: TopicBatch) -> Outcome:
        """Dead letters first, then rows and positions. REFUSED means: drop the batch, ask `positions` again.

        A kill between the two leaves letters whose offsets will be read again; their own position then drops them.
        """
        if batch.letters is not None and self._commit_letters(batch) is Outcome.REFUSED:
            return Outcome.REFUSED
        expected: dict[str, int | None] = {self.ids.position(p): r.start for p, r in batch.ranges.items()}
        new = {self.ids.position(p): r.end for p, r in batch.ranges.items()}
        crash_here("before-commit")
        outcome = self._rows.commit(expected, new, batch.file)
        crash_here("after-commit")
        return outcome

    def _commit_letters(self, batch: TopicBatch) -> Outcome:
        """Compare-and-set on the marks that the letters were filtered by, so that none is written twice."""
        if not self._letters_exist:
            self._create(self._letters)
            self._letters_exist = True
        expected = {self.ids.position(p): batch.letter_marks.get(p) for p in batch.ranges}
        new = {self.ids.position(p): r.end for p, r in batch.ranges.items() if r.end > (batch.letter_marks.get(p) or 0)}
        outcome = self._letters.commit(expected, new, batch.letters)
        crash_here("after-dead-letter-commit")
        return outcome

    def accept_gap(self, partition: int, start: int, end: int) -> Outcome:
        """Move the position over offsets that are gone, and record the loss for good, in one compare-and-set commit."""
        position = self.ids.position(partition)
        return self._rows.commit(
            {position: start, self.ids.gap(partition, start): None},
            {position: end, self.ids.gap(partition, start): end},
            None,
        )
