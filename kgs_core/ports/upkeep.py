"""What was done to one table: upkeep, and rows that ended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Moved = Callable[[Mapping[str, int], Mapping[Any, Any]], dict[str, int]]
"""Versions to write with the removal of rows at some places, given all versions before it."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Upkeep that one table got, or would get.

    Attributes:
        files: data files of the table before and after; `bytes`, likewise, their sizes.
        removed: files taken off the disk: replaced long ago, or never committed.
        problem: what could not be done; the rest was.
        ended: records of the table that its rule's `keep` has ended, or would end.
    """

    table: str
    files: tuple[int, int]
    bytes: tuple[int, int]
    removed: int
    removed_bytes: int
    seconds: float
    problem: str | None = None
    ended: int = 0


@dataclass(frozen=True, slots=True)
class RowsRemoved:
    """Rows of one table that have ended.

    Attributes:
        files: names of the files that had them; those are no longer in the table, and still in the store.
        version: the newest one of the table that still has such rows, for those who read it as of then; None: no row
            was removed.
    """

    table: str
    rows: int = 0
    files: tuple[str, ...] = ()
    version: int | None = None
