"""The nouns of a table's audit: what is known of a partition beforehand, and what was found."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import numpy as np
import numpy.typing as npt

from kgs_core.model import OffsetRange, TopicId

Offsets = npt.NDArray[np.int64]
Promise = Literal["one_to_one", "filter", "any"]
NO_OFFSETS: Offsets = np.empty(0, np.int64)
NOTHING = OffsetRange(0, 0)


class Fault(StrEnum):
    """Kind of fault in a partition of a table."""

    LOST = "lost"
    """A record below the position that is neither a row nor a dead letter, nor in a gap that was accepted."""
    DOUBLED = "doubled"
    """One more row, or dead letter, of an offset that is there already."""
    AHEAD = "ahead"
    """A row at or above the position, which will be read once more; or a position above the log's end."""
    FOREIGN = "foreign"
    """A row that no record of this topic between start and position can have become."""
    DELETED_UNREAD = "deleted_unread"
    """An offset at or above the position that Kafka has deleted: no consumer can read it any more."""
    CHANGED = "changed"
    """A row with other values than today's rule makes of its record; looked for on demand."""
    STILL_THERE = "still_there"
    """A row, or dead letter, of a record that a person has ended."""
    CONTRADICTION = "contradiction"
    """Start, position and gaps that cannot all be true."""

    @property
    def words(self) -> str:
        """For people."""
        return self.value.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of one partition.

    Attributes:
        count: rows, or offsets where rows are missing.
        ranges: the first few offsets that it shows at, ascending.
        note: what tells it from other findings of this fault.
        more: ranges left out.
    """

    fault: Fault
    count: int
    ranges: tuple[OffsetRange, ...]
    note: str
    more: int = 0

    def __str__(self) -> str:
        """`lost 3: 17-18, 40 (in the log)`."""
        if not self.ranges:
            return f"{self.fault}: {self.note}"
        shown = [str(r.start) if r.end == r.start + 1 else f"{r.start}-{r.end - 1}" for r in self.ranges]
        rest = [f"{self.more} more ranges"] if self.more else []
        return f"{self.fault.words} {self.count}: {', '.join(shown + rest)} ({self.note})"


@dataclass(frozen=True, slots=True, eq=False)
class EndedOffsets:
    """Offsets of one partition, ascending, whose records were decided to end: by `keep` of the rule, or by a person."""

    by_rule: Offsets = field(default_factory=lambda: NO_OFFSETS)
    by_person: Offsets = field(default_factory=lambda: NO_OFFSETS)

    @property
    def all(self) -> Offsets:
        """All of them, ascending."""
        return np.union1d(self.by_rule, self.by_person)


NONE_ENDED = EndedOffsets()


@dataclass(frozen=True, slots=True)
class StoredPositions:
    """Positions of one partition in a table's log.

    Attributes:
        start: where reading began; None: never fixed.
        position: next offset to read.
        gaps: losses that were accepted.
        dead_letters_position: offset below which dead letters are written; None: there are none.
        redriven: how many dead letters have become rows since, of side tables too, and their `offset_sum`.
        ended: records that need neither be a row nor a dead letter any more.
    """

    topic_id: TopicId
    partition: int
    start: int | None
    position: int | None
    gaps: tuple[OffsetRange, ...] = ()
    dead_letters_position: int | None = None
    redriven: tuple[int, int] = (0, 0)
    ended: EndedOffsets = NONE_ENDED


@dataclass(frozen=True, slots=True, eq=False)
class SideRows:
    """Rows of one partition in one side table.

    Attributes:
        offsets: of every row, in any order.
        position: offset below which rows are written there; None: no rows can be there.
    """

    table: str
    offsets: Offsets
    position: int | None


@dataclass(frozen=True, slots=True, eq=False)
class LogPart:
    """Part of a partition that Kafka's log still holds.

    Attributes:
        covered: the offsets that were read, without those of open transactions.
        records: offsets in `covered` that hold a record, ascending; the others hold markers of transactions, aborted
            records, or what compaction took.
        start: first offset of the log, where the position still is not behind it; None: unknown.
        end: where a reader of committed records must stop; None: unknown.
        absent: why the log says nothing of offsets outside `covered`.
    """

    covered: OffsetRange = NOTHING
    records: Offsets = field(default_factory=lambda: NO_OFFSETS)
    end: int | None = None
    absent: str = "log no longer there"
    start: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionAudit:
    """Findings in one partition of one table.

    Attributes:
        rows: in the table and its side tables, whether right or wrong; `dead_letters` likewise in the dead-letter
            table.
        unread: offsets from the position to the log's end; None: unknown.
        ended: records that are gone by `keep` of their rule; `erased`, likewise, by a person.
    """

    stored: StoredPositions
    rows: int
    dead_letters: int
    findings: tuple[Finding, ...]
    unread: int | None = None
    ended: int = 0
    erased: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def count(self, fault: Fault) -> int:
        """How many rows or offsets have this fault."""
        return sum(f.count for f in self.findings if f.fault is fault)


@dataclass(frozen=True, slots=True)
class TableAudit:
    """Findings in one table and its dead letters.

    Attributes:
        topic: empty where the table's log, which could not be read, was to tell it.
        version: of the table that was looked at; None: there is no table.
        partitions: ascending by topic id and number, of every topic id that the table has positions or rows of.
        notes: what a reader should know and is no fault.
        compared: rows whose values were compared with their records; None: they were not looked at.
        problem: why it could not be read, so that nothing is known of it, or that it is missing; or why values could
            not be compared; empty: all was.
    """

    topic: str
    table: str
    promise: Promise
    version: int | None
    partitions: tuple[PartitionAudit, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str = ""
    compared: int | None = None

    @property
    def ok(self) -> bool:
        """Whether it was read, and nothing is wrong in any partition."""
        return not self.problem and all(p.ok for p in self.partitions)

    @property
    def rows(self) -> int:
        """Rows of all partitions."""
        return sum(p.rows for p in self.partitions)

    @property
    def dead_letters(self) -> int:
        """Dead letters of all partitions."""
        return sum(p.dead_letters for p in self.partitions)

    @property
    def unread(self) -> int | None:
        """Offsets that the topic's present log has beyond the positions; None: that log was not asked."""
        known = [p.unread for p in self.partitions if p.unread is not None]
        return sum(known) if known else None

    def count(self, fault: Fault) -> int:
        """How many rows or offsets have this fault."""
        return sum(p.count(fault) for p in self.partitions)


@dataclass(frozen=True, slots=True)
class DerivedAudit:
    """A table of newest rows beside the table that it is derived from.

    Attributes:
        version: of the source that it was compared as of, which is its own position; None: there is nothing yet.
        rows: of the derived table.
        missing: keys that should be there; `extra`: rows that should not; `differing`: rows that are not the newest, or
            have other values.
        problem: why it could not be proven; empty: it was.
    """

    table: str
    source: str
    version: int | None = None
    rows: int = 0
    missing: int = 0
    extra: int = 0
    differing: int = 0
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Whether it is what its source makes it, as far as there is one."""
        return not self.problem and not self.wrong

    @property
    def wrong(self) -> int:
        """Keys and rows with a fault."""
        return self.missing + self.extra + self.differing

    def __str__(self) -> str:
        """A line for people."""
        if self.problem:
            return f"{self.table}: newest rows of {self.source}: NOT PROVEN: {self.problem}"
        if self.version is None:
            return f"{self.table}: newest rows of {self.source}: none yet"
        counts = f"{self.missing:,} missing, {self.extra:,} extra, {self.differing:,} differ"
        state = f"WRONG: {counts}" if self.wrong else "ok"
        return f"{self.table}: {self.rows:,} newest rows of {self.source} as of its version {self.version:,}: {state}"


@dataclass(frozen=True, slots=True)
class LakeAudit:
    """Findings in every table that was looked at, and in those that are derived from them."""

    tables: tuple[TableAudit, ...]
    derived: tuple[DerivedAudit, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong in any table."""
        return all(t.ok for t in self.tables) and all(t.ok for t in self.derived)
