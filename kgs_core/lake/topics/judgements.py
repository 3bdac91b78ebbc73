"""Numbers that settle which reading of a record counts, in a topic's own table and those that are committed before it.

`lake.rule.judgements` explains what they mean, and why they exist.
"""

from collections.abc import Collection, Mapping, Sequence

from kgs_core.lake.rule.batch import TopicBatch
from kgs_core.lake.rule.judgements import announced, closed, elsewhere, is_open
from kgs_core.lake.rule.positions import AppIds
from kgs_core.ports import CommitOutcome, LakeTable
from kgs_core.system.failpoints import failpoint

Versions = Mapping[str, int | None]


class Judgements:
    """The numbers of one topic id's partitions, as of when they were taken up. Used by one thread at a time."""

    def __init__(self, ids: AppIds) -> None:
        self._ids = ids
        self._known: dict[int, int | None] = {}

    def apps(self, partitions: Collection[int]) -> list[str]:
        """App ids whose versions in the own table `take_up` needs."""
        return [app for p in partitions for app in (self._ids.position(p), self._ids.judgement(p))]

    def take_up(
        self, own: LakeTable, others: Sequence[LakeTable], partitions: Collection[int], stored: Versions
    ) -> bool:
        """Take partitions up by their numbers in the own table; False: another writer was faster, look again.

        Marks in the other tables must be read afterwards.

        Args:
            others: dead letters and side tables.
            stored: versions of `apps` in the own table.
        """
        judgement = self._ids.judgement
        found = {p: stored[judgement(p)] for p in partitions}
        taken = {p: announced(number) for p, number in found.items() if is_open(number)}
        if taken:
            expected = {app: stored[app] for app in self.apps(taken)}
            if own.commit(expected, {judgement(p): n for p, n in taken.items()}, ()) is CommitOutcome.REFUSED:
                return False
            failpoint("judgement-taken")
        found |= taken
        numbers = {p: n for p, number in found.items() if (n := elsewhere(number)) is not None}
        for table in others if numbers else ():
            if not self._fenced(table, numbers, table.versions(self.apps(numbers))):
                return False
        self._known |= found
        return True

    def of_own(self, partitions: Collection[int]) -> dict[str, int | None]:
        """Versions that a commit to the own table must find."""
        return {self._ids.judgement(p): self._known.get(p) for p in partitions}

    def of_others(self, partitions: Collection[int]) -> dict[str, int | None]:
        """Versions that a commit to another table must find."""
        return {self._ids.judgement(p): elsewhere(self._known.get(p)) for p in partitions}

    def closing(self, partitions: Collection[int]) -> dict[str, int]:
        """Versions that the commit of rows sets."""
        return {self._ids.judgement(p): closed(n) for p in partitions if (n := self._known.get(p)) and is_open(n)}

    def are_closed(self, partitions: Collection[int]) -> None:
        """Note that the commit of rows has landed."""
        self._known |= {p: closed(n) for p in partitions if (n := self._known.get(p))}

    def announce(
        self,
        own: LakeTable,
        letters: LakeTable,
        sides: Sequence[LakeTable],
        batch: TopicBatch,
        guard: dict[str, int | None],
    ) -> CommitOutcome:
        """Announce the dead letters of a batch that another reading might not find.

        Args:
            letters: the dead-letter table, which is there.
            guard: what else a commit to the own table must find.
        """
        ids, ranges = self._ids, batch.ranges
        numbers = {p: announced(self._known.get(p)) for p in batch.unsettled if not is_open(self._known.get(p))}
        if not numbers:
            return CommitOutcome.COMMITTED
        expected = {ids.position(p): ranges[p].start for p in numbers} | guard
        if own.commit(expected, {ids.judgement(p): n for p, n in numbers.items()}, ()) is CommitOutcome.REFUSED:
            return CommitOutcome.REFUSED
        failpoint("judgement-announced")
        for side in sides:
            there = side.versions(self.apps(numbers))
            if any((there[ids.position(p)] or 0) > ranges[p].start for p in numbers):
                return CommitOutcome.REFUSED  # rows of an earlier owner, who read before
            if not self._fenced(side, numbers, there):
                return CommitOutcome.REFUSED
        marks = {ids.position(p): batch.dead_letter_marks.get(p) for p in numbers}
        if not self._fenced(letters, numbers, self.of_others(numbers) | marks):
            return CommitOutcome.REFUSED
        self._known |= numbers
        return CommitOutcome.COMMITTED

    def _fenced(self, table: LakeTable, numbers: Mapping[int, int], stored: Versions) -> bool:
        """Give a table these numbers if it is still as in `stored`; False: it is not."""
        judgement = self._ids.judgement
        new = {p: n for p, n in numbers.items() if stored[judgement(p)] != n}
        if not new:
            return True
        expected = {app: stored[app] for app in self.apps(new)}
        outcome = table.commit(expected, {judgement(p): n for p, n in new.items()}, ())
        failpoint("judgement-fenced")
        return outcome is CommitOutcome.COMMITTED
