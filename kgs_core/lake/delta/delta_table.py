"""The compare-and-set commit on one Delta table: rows and positions in one log entry, or neither.

Theory of operation. Correctness needs no lock, no lease and no Kafka group: the table's log is the lock.
1. Every commit of rows carries, in the same atomic log entry, one `txn` action per partition: application id, version
   = next offset. So there is no moment at which rows are there and their position is not, or the reverse.
2. Before a commit the log is looked at, and every partition's stored version must *equal* the offset that its batch
   began at. Delta's own idempotence ("skip if the stored version is not lower") is not enough: it takes a stale writer
   whose batch begins below and ends above the stored position, and doubles rows.
3. The commit creates exactly the entry *after* the one that the positions were judged as of, and the store refuses to
   create what is there. Whoever commits in between, be it to other partitions, takes that number; then the new entries
   are read, and all is judged again as of them. So nothing is ever written on a base that was not looked at.
   Positions are a map that new entries move (`delta_log`), so judging costs nothing that grows with their number.
4. An exception does not mean "not committed" (the reply may be lost), and "the number is taken" may speak of our own
   entry (the store's client tries again by itself). After either, the log is read and asked: all at the end = landed;
   all at the start = try again with the same files; anything else = refused, and the batch is dropped. A try whose
   reply never came is bound to its number for good: it cannot land behind the one that follows it.
   One that comes after the log went on for hours, with its number taken and cleaned away again, lies in a hole before
   a checkpoint, where nobody reads it; so after a long time, too, the log is asked. (Should no clock have told of that
   time: then the next commit does not find its positions, is refused, and they are read again; they never moved.)
5. A data file is never deleted after a failed or unknown commit: it may be in the table. Vacuum takes what is not.
6. A file older than half a day is not committed: vacuum might have taken it (a process that was
   stopped for days would otherwise commit a name without a file behind it). The store is asked whether the file is
   there, and when it was written, at the same time as for new entries, so it costs no time; it is not left out for a
   file just written, since a machine that is halted and goes on believes in its clocks that it was.
7. Checkpoints are made beside the commits, by whoever committed an entry whose number says so (`log_upkeep`), and by
   maintenance; a commit waits for neither.
8. Losers of the race for a number wait a random time before they try again (`pace`): so many writers share a table
   fairly, and one alone does not wait. Where they lose often, one makes an entry for all (`combined_commit`).
9. Topics of one process that share a table try one after the other: against each other they lose no race.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TypeVar

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from kgs_core.errors import UnsafeError, one_line
from kgs_core.lake.delta.combined_commit import CombinedCommits
from kgs_core.lake.delta.pace import CommitWay, Pace, Tries
from kgs_core.lake.delta.table_log import TableLog
from kgs_core.lake.delta.table_properties import wanted_properties
from kgs_core.lake.delta.whole_table import opened_table
from kgs_core.lake.rule.combining import CommitIntent
from kgs_core.lake.rule.commit_rule import CommitDecision, judge
from kgs_core.ports import CommitOutcome, FileWritten

T = TypeVar("T")


class DeltaTopicTable:
    """Port `LakeTable`: one Delta table and what is known of its log. Not for use by two threads at once.

    Args:
        turn: held while an entry is tried; shared by those of this process that commit to the table.
        commits: see `open_lake`.
        made_with: columns to make it with, where files may have fewer.
    """

    def __init__(
        self,
        log: TableLog,
        turn: AbstractContextManager[object] | None = None,
        *,
        commits: CommitWay = "auto",
        made_with: pa.Schema | None = None,
    ) -> None:
        self.name = log.name
        self.schema = log.schema if made_with is None else made_with
        self._commits = commits
        self._log = log
        self._turn = turn or threading.Lock()
        self._pace = Pace()
        self._combined = CombinedCommits(log)

    def create(self) -> None:
        """See `LakeTable`."""
        lake, layout, words = self._log.lake, self._log.layout, self._log.layout.comments
        described = [f.with_metadata({"comment": words[f.name]}) if f.name in words else f for f in self.schema]

        def attempt() -> None:
            with suppress(TableNotFoundError):
                self._log.refreshed()
                return
            try:
                DeltaTable.create(
                    self._log.uri,
                    schema=pa.schema(described),
                    partition_by=list(layout.partition_by),
                    description=layout.description,
                    mode="ignore",
                    configuration=wanted_properties(lake.checkpoint_interval),
                    storage_options=self._log.options,
                )
            except Exception:
                if not self._is_there():  # else another consumer made it in the same moment
                    raise
            self._log.refreshed()

        self._persist(attempt)

    def exists(self) -> bool:
        """See `LakeTable`."""
        return self._persist(self._is_there)

    def _is_there(self) -> bool:
        return opened_table(self._log.storage, self.name) is not None

    def versions(self, apps: Collection[str]) -> dict[str, int | None]:
        """See `LakeTable`."""

        def read() -> dict[str, int | None]:
            stored = self._log.refreshed().apps
            return {app: stored.get(app) for app in apps}

        return self._persist(read)

    def commit(
        self,
        expected: Mapping[str, int | None],
        new: Mapping[str, int],
        files: Sequence[FileWritten],
        along: Mapping[str, int] | None = None,
    ) -> CommitOutcome:
        """See `LakeTable`; the versions go into the log as `txn` actions."""
        batch = CommitIntent(expected, new, files, along or {}, consumer=self._log.consumer)
        tries = Tries(self._log.connect_anew, self._pace)
        while tries.are_left and not self._is_combined(batch):
            with tries.one() as lost, self._turn:
                tries.begin()
                return self._attempt(batch, lost=lost, retry=tries.problem is not None)
        if self._is_combined(batch):
            return self._commit_combined(batch, is_tried=tries.problem is not None)
        raise tries.given_up(self.name, "commit") from tries.problem

    def _attempt(self, batch: CommitIntent, *, lost: bool, retry: bool) -> CommitOutcome:
        """Make the entry, where the log as it is now lets it."""
        state = self._log.looked_at(batch.files, lost=lost)
        verdict = judge(state.apps, batch.expected, batch.new, retry=retry)
        if verdict is CommitDecision.COMMIT:
            self._log.write(state, [batch])
            self._pace.won()
        return CommitOutcome.REFUSED if verdict is CommitDecision.REFUSED else CommitOutcome.COMMITTED

    def _is_combined(self, batch: CommitIntent) -> bool:
        if not batch.files:  # what moves versions alone is rare
            return False
        return self._commits == "combined" or (self._commits == "auto" and self._pace.is_crowded)

    def _commit_combined(self, batch: CommitIntent, *, is_tried: bool) -> CommitOutcome:
        self._pace.left()
        outcome = self._combined.commit(batch, is_tried=is_tried)
        if self._commits == "auto" and self._combined.is_alone:
            self._pace, self._combined = Pace(), CombinedCommits(self._log)
        return outcome

    def _not_there(self, error: TableNotFoundError) -> str:
        """Also what a table that cannot be made is called by deltalake."""
        if self._log.was_there:
            return f"table {self.name}: not there: it was moved or deleted: bring it back"
        return (
            f"table {self.name}: not there, and not made: {one_line(error)}: see that this user may write to "
            f"{self._log.storage.root}; if the table was there before, it was moved or deleted: bring it back"
        )

    def _persist(self, action: Callable[[], T]) -> T:
        """Try again what fails for a moment: a log entry cleaned away under us, a listing that raced with commits."""
        tries = Tries(self._log.connect_anew)
        while tries.are_left:
            with tries.one():
                try:
                    return action()
                except TableNotFoundError as e:
                    if self._log.state is None:
                        raise UnsafeError(self._not_there(e)) from e
                    raise
        raise tries.given_up(self.name, "look") from tries.problem
