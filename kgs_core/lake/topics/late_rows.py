"""Rows that have come into a table since a version of its log, of hours before a time. Reads only.

The log says which files a commit added, whoever made it: rows of consumers, of side tables, and redriven ones. What
upkeep rewrites has come before. Where the log no longer says so, files written since that time are read: too many
rows then count as late, never too few.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.lake.rule.completeness import HOUR_MS
from kgs_core.model import OffsetRange
from kgs_core.ports import PinnedTable

_NONE = -1


@dataclass(frozen=True, slots=True)
class _Counted:
    """Late rows `found` from version `since` to `version`."""

    since: int
    until_ms: int
    version: int
    found: Counter[int]


class LateRows:
    """Looks for late rows again and again. For one thread."""

    def __init__(self) -> None:
        self._counted: dict[str, _Counted] = {}

    def of(self, table: str, pinned: PinnedTable, since: int, until_ms: int) -> Counter[int]:
        """Late rows behind version `since`: start of their hour, ms since 1970 -> rows.

        Asked the same again (its caller has not waited for the answer), it reads only what is new since.

        Args:
            pinned: the table at the version to look up to.
            until_ms: only rows with earlier timestamps; rows up to `since` were there at that time or later.
        """
        if since > pinned.version:  # the table was made again, or put back: nothing of it is known
            since = _NONE
        found, last = Counter[int](), self._counted.get(table)
        base = since
        if last is not None and (last.since, last.until_ms) == (since, until_ms) and last.version <= pinned.version:
            base, found = last.version, last.found
        if pinned.version > base:
            try:
                found = found + _hours(pinned, _added(pinned, base, until_ms), until_ms)
            except FileNotFoundError:  # entries expired; or a file was replaced, and vacuumed
                early, written_since_ms = OffsetRange(0, until_ms), until_ms - HOUR_MS  # other machines' clocks
                found = _hours(pinned, pinned.files(stamps_ms=early, written_since_ms=written_since_ms), until_ms)
        self._counted[table] = _Counted(since, until_ms, pinned.version, found)
        return found


def _added(pinned: PinnedTable, base: int, until_ms: int) -> set[str]:
    names = set(pinned.added_since(base))
    # By their statistics, as far as they are still there
    return names and names - set(pinned.files()) | names & set(pinned.files(stamps_ms=OffsetRange(0, until_ms)))


def _hours(pinned: PinnedTable, names: Iterable[str], until_ms: int) -> Counter[int]:
    found = Counter[int]()
    for name in sorted(names):
        stamps_ms = pc.divide(pinned.read(name, ["_timestamp"])["_timestamp"].cast(pa.int64()), 1000)
        hours = pc.divide(stamps_ms.filter(pc.less(stamps_ms, until_ms)), HOUR_MS)
        found.update({one["values"] * HOUR_MS: one["counts"] for one in pc.value_counts(hours).to_pylist()})
    return found
