"""Ports of the lake: the lake as a whole, a table that rows are committed to, a table that is only looked at."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Protocol

from kgs_core.model import OffsetRange
from kgs_core.ports.upkeep import Moved, RowsRemoved, Upkeep

Schema = Any
"""A pyarrow schema; the core imports no pyarrow."""


@dataclass(frozen=True, slots=True)
class FileWritten:
    """One Parquet file that lies in a table's folder and is not part of the table yet.

    Attributes:
        path: relative to the table's root.
        size: bytes.
        stats: statistics of the file in Delta's form, as JSON text.
        partition_values: value of each partition column in Delta's form, None for null; the file has no such column.
    """

    path: str
    size: int
    rows: int
    stats: str
    partition_values: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Layout of a table, and words about it.

    Attributes:
        partition_by: its partition columns, in this order; none: it is not partitioned.
        description: of the table; used when it is made.
        comments: column -> words about it; likewise.
    """

    partition_by: tuple[str, ...] = ()
    description: str | None = None
    comments: Mapping[str, str] = field(default_factory=dict)


PLAIN = TableLayout()


class CommitOutcome(Enum):
    """Outcome of a commit."""

    COMMITTED = auto()
    REFUSED = auto()
    """Another writer was there first: drop the batch, read the positions again."""


class LakeTable(Protocol):
    """One table that rows are committed to, beside named numbers, the versions: a position is one of them.

    Used by one thread at a time.
    """

    @property
    def name(self) -> str:
        """Path under the lake's root."""

    @property
    def schema(self) -> Schema:
        """The columns."""

    def create(self) -> None:
        """Make the table, with its properties, if it is not there; several consumers may do so at once.

        Raises:
            UnsafeError: what is there has another schema or layout, or properties that break the guarantee.
        """

    def exists(self) -> bool:
        """Whether the table is there.

        Raises:
            TransientError: the store did not answer.
        """

    def versions(self, apps: Collection[str]) -> dict[str, int | None]:
        """Stored version of each application id, as of now.

        Raises:
            UnsafeError: the table has been changed so that the guarantee is gone.
        """

    def commit(
        self,
        expected: Mapping[str, int | None],
        new: Mapping[str, int],
        files: Sequence[FileWritten],
        along: Mapping[str, int] | None = None,
    ) -> CommitOutcome:
        """Commit `files` and move the versions from `expected` to `new`, all or nothing, by compare-and-set.

        Args:
            expected: application id -> version that must be stored now (None: none yet). What is expected and not in
                `new` is compared and left alone.
            files: the rows; none moves the versions only.
            along: more versions to write in the same commit, which nothing is compared with.

        Raises:
            TransientError: the outcome could not be learned, or a file is gone or too old; the positions must be read
                again before going on.
            UnsafeError: the table's properties break the guarantee.
        """


@dataclass(frozen=True, slots=True)
class TableContents:
    """Contents of one table's files, as its log tells them.

    Attributes:
        rows: None where a file does not say.
        size_bytes: of the files, compressed.
    """

    version: int
    rows: int | None
    size_bytes: int
    files: int
    fields: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table's columns and what is said of it, as its log has them.

    Attributes:
        fields: its columns in the JSON form that Delta and Spark share: name, type, nullable, metadata; types of
            nested ones are mappings.
        partition_by: its partition columns, in this order.
        description: words about it; None where there are none.
    """

    fields: Sequence[Mapping[str, Any]]
    partition_by: tuple[str, ...] = ()
    description: str | None = None


class PinnedTable(Protocol):
    """A table as it was at one moment, for who only looks. What the table's library raises passes through."""

    def refresh(self) -> None:
        """Go on to the newest moment. After an exception: pin the table anew."""

    @property
    def version(self) -> int:
        """Number of the commit that it is pinned at."""

    def version_of(self, app: str) -> int | None:
        """Version of an application id."""

    def contents(self) -> TableContents:
        """Rows and files."""

    def description(self) -> TableDescription:
        """Columns, and the words about the table."""

    @property
    def schema(self) -> Any:
        """Columns with their types, as a pyarrow schema."""

    def check_readable(self, columns: Collection[str]) -> None:
        """Whether the rows of the table are those of its files, with these columns.

        Raises:
            PermanentError: they are not: the table is not of kgs's making, or was changed since.
        """

    def files(
        self,
        offsets: OffsetRange | None = None,
        *,
        stamps_ms: OffsetRange | None = None,
        written_since_ms: int | None = None,
    ) -> list[str]:
        """Names of the data files that may hold rows of such offsets, in any partition, and of such timestamps.

        `written_since_ms`: only files written since, by upkeep too, ms since 1970.
        """

    def newest_files(self, rows: int) -> list[str]:
        """Names of the data files with the newest timestamps, so many that they have this many rows, if there are."""

    def added_since(self, version: int) -> list[str]:
        """Names of the data files of commits behind a version that added rows and did nothing else.

        Raises:
            FileNotFoundError: the log no longer has these commits.
        """

    def read(self, file: str, columns: Sequence[str]) -> Any:
        """Columns of one of `files`, as a pyarrow table. May be called by several threads."""


class Lake(Protocol):
    """The lake as a whole: all tables under one root, in one format."""

    @property
    def root(self) -> str:
        """Local path, or an address in a store of objects."""

    def probe(self) -> None:
        """Prove, on a table of the probe's own, that the second of two commits of one base is refused.

        Raises:
            UnsafeError: both were taken; such a lake would lose rows.
            PermanentError: the root cannot be written.
            TransientError: the store did not answer, is full or cannot be written for now.
        """

    def remove_probes(self) -> None:
        """Remove what probes of killed processes have left; the store's own trouble is no error here."""

    def folders(self, under: str) -> list[str]:
        """Names of the folders right under a path of the lake, tables or not; none where there is no such path.

        Raises:
            PermanentError: it cannot be listed.
        """

    def table(self, name: str, schema: Schema, layout: TableLayout = PLAIN) -> LakeTable:
        """A table with these columns and this layout, which may have to be created yet; nothing is asked of the store.

        Raises:
            UnsafeError: no safe address: it leads out of the root, or an option would take the guarantee away.
        """

    def columns(self, name: str, default: Schema, wanted: Schema | None = None, layout: TableLayout = PLAIN) -> Schema:
        """The columns that a table has.

        Args:
            default: columns to make it with where it is not there.
            wanted: what it is to have, too; what it lacks is added, in a commit that changes nothing else.

        Raises:
            UnsafeError: the table breaks the guarantee.
        """

    def open(self, name: str) -> LakeTable:
        """A table with the columns that it has.

        Raises:
            UnsafeError: there is none.
        """

    def all_versions(self, name: str) -> dict[str, int]:
        """Version of every application id that a table has; empty where there is no table.

        Raises:
            PermanentError: a part of the table's log is missing or broken.
        """

    def forget_intents(self, name: str) -> None:
        """Remove what writers that have ended have left for others to commit.

        Raises:
            TransientError: the store did not answer.
        """

    def pin(self, name: str) -> PinnedTable | None:
        """A table as it is now; None where there is none. What the table's library raises passes through."""

    def maintain(self, name: str, *, dry_run: bool) -> Upkeep | None:
        """Compact a table, keep its log short, remove files that belong to no version; consumers may go on committing.

        Args:
            dry_run: look only; the files "after" are those before.

        Returns:
            None where there is no such table.

        Raises:
            UnsafeError: the log is broken.
        """

    def ended(self, name: str) -> dict[str, dict[Any, Any]]:
        """Decision (`keep` or `erase`) -> places of records of a topic's own table that it has ended, see `Places`.

        Raises:
            TransientError: the store did not answer.
        """

    def note_ended(self, name: str, by: str, places: Mapping[Any, Any]) -> None:
        """Note such a decision for good, before any row goes.

        Raises:
            TransientError: the store did not answer.
        """

    def remove_rows(self, name: str, places: Mapping[Any, Any], moved: Moved) -> RowsRemoved:
        """Remove the rows at these places; consumers may go on committing, and may be killed or this be at any step.

        Args:
            moved: see there.

        Raises:
            TransientError: the store did not answer, or others rewrite the same files all the time: run it again.
            UnsafeError: the table breaks the guarantee.
        """

    def kept_h(self, name: str) -> float:
        """Hours for which upkeep keeps replaced files, 0 without a table; a TransientError if the store is silent."""

    def vacuum_replaced(self, name: str) -> int:
        """Remove from the store the files that a newer version has replaced, at once; how many.

        Raises:
            TransientError: the store did not answer.
        """
