"""Which waiting commits one log entry may hold. Pure.

A writer that does not make its own entry leaves an intent: its files, and the positions that it moves, from and to. One
writer makes an entry of its own batch and of all intents that fit.
1. An intent fits if each of its positions is where its batch began, as of the version that the entry is based on: the
   rule of the direct commit (`commit_rule`), judged by another writer. So it does not matter who made the intent, when,
   whether its writer is alive, or whether it was meant to be taken back.
2. It must fit after the intents taken before it, too: two for the same range never stand in one entry.
3. One that does not fit as of that version never will, since positions only grow: it has landed, or was overtaken. It
   is ended, and it may be removed by anybody.
4. One that fits as of that version, but not after those taken before it, is left: should this entry not be made, it may
   be the one that lands.
5. Its writer must have looked at this very table since its schema and properties last changed; else it is left to its
   writer, who looks again, and leaves another. (For a table that was made again, its numbers may fit by chance.)
6. The oldest come first, and an entry has a limit, so that none waits for ever behind newer ones.
"""

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kgs_core.lake.rule.commit_rule import CommitDecision, judge
from kgs_core.ports import FileWritten

MOST_FILES = 200
"""Files that intents bring into one entry; its size is below 1 MB then, and its readers are not slowed down."""


@dataclass(frozen=True, slots=True)
class CommitIntent:
    """A batch whose files are written, and what its commit moves.

    Attributes:
        expected: application id -> version that must be stored (None: none).
        new: application id -> version afterwards.
        along: more versions for the same entry, which nothing is compared with.
        looked_at: version of the table that its writer has checked schema and properties of.
        consumer: who read it, for those who read the log; nothing is decided by it.
        table: what that table is told by from one that was made under its name before or after; empty: not known.
    """

    expected: Mapping[str, int | None]
    new: Mapping[str, int]
    files: Sequence[FileWritten]
    along: Mapping[str, int] = field(default_factory=dict)
    looked_at: int = -1
    consumer: str = ""
    table: str = ""

    @property
    def versions(self) -> dict[str, int]:
        """All that the log entry sets."""
        return {**self.along, **self.new}


@dataclass(frozen=True, slots=True)
class Selection:
    """Names of intents: those for the entry, in order, and those that are over. The others are left as they are."""

    taken: list[str]
    ended: list[str]


def select(
    stored: Mapping[str, int | None],
    changed: int,
    own: CommitIntent,
    others: Iterable[tuple[str, CommitIntent]],
    most: int = MOST_FILES,
    *,
    table: str = "",
) -> Selection:
    """Choose the intents that go into an entry beside the maker's own batch.

    Args:
        stored: versions as of the table's version that the entry is based on; `own` fits it.
        changed: version of the last entry that changed schema or properties.
        others: names and intents, the oldest first.
        most: files of theirs at most. One that brings too many is left; it comes first in the next entry.
        table: as in `CommitIntent`.
    """
    at: ChainMap[str, int | None] = ChainMap(dict(own.versions), dict(stored))
    taken: list[str] = []
    ended: list[str] = []
    files = 0
    for name, intent in others:
        if judge(stored, intent.expected, intent.new, retry=False) is not CommitDecision.COMMIT:
            ended.append(name)
        elif (
            files + _weight(intent) <= most
            and intent.table == table
            and intent.looked_at >= changed
            and judge(at, intent.expected, intent.new, retry=False) is CommitDecision.COMMIT
        ):
            taken.append(name)
            files += _weight(intent)
            at.update(intent.versions)
    return Selection(taken, ended)


def _weight(intent: CommitIntent) -> int:
    return max(len(intent.files), 1)
