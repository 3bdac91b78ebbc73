"""The combined commit: one writer makes a log entry for all whose batches are ready ("flat combining").

A table's log has one next entry. With n writers that each want it, n - 1 lose each time and read what the winner wrote.
Here a writer leaves an intent, a small file that says what it would commit, and waits until some entry holds it.

1. Safety is the compare-and-set of the direct commit and nothing else (`delta_table`, 1 to 6): whoever makes an entry
   judges every batch in it by equality, as of the version right before it. That a batch is brought by another writer,
   late, twice, or after its owner died changes nothing (`lake/rule/combining.py`).
2. Who makes the entry is a hint (`turns`). Two at once are two writers that want one number: one loses, looks, and
   finds its batch landed, or tries again. None at all ends by every waiting writer's own patience. So a maker that is
   killed, at whatever request, delays the others and harms nobody.
3. The table answers what became of a batch, as after a lost reply: all positions at the end = landed, all at the
   start = wait or make the entry oneself, anything else = refused. An intent that its writer gave up may land later;
   then the positions have moved, the next batch from the same offsets is refused, and its rows are dropped.
4. A maker checks, after it looked at the log, that each file is there, whole and young, as for its own. An intent with
   a file that is not is left to its writer, which finds out itself. One that cannot be read or understood, or that is
   older than `STALE_S`, is left alone, too: it holds up nobody. `kgs maintain` removes old ones.
5. An intent is removed by the maker of the entry that ends it, by any other who sees that it is over, and by its writer
   when that gives up. That is tidying only.
6. What the writer itself promised before its intent holds for it in the same way as before a direct commit: topic ids,
   owners of the table, and dead letters, which are committed to their own table first, by this same way.
"""

import time
from collections.abc import Collection, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace

from kgs_core.lake.delta.delta_log import LogState
from kgs_core.lake.delta.pace import Tries
from kgs_core.lake.delta.table_log import ANEW_S, TableLog, helpers
from kgs_core.lake.delta.turns import Turns
from kgs_core.lake.files.intent_store import (
    INTENT_SUFFIX,
    IntentStore,
    decode_intent,
    encode_intent,
    new_name,
    remove_beside,
)
from kgs_core.lake.rule.combining import CommitIntent, select
from kgs_core.lake.rule.commit_rule import CommitDecision, judge
from kgs_core.ports import CommitOutcome
from kgs_core.system.failpoints import failpoint

STALE_S = 600.0
"""Age from which other writers pass an intent over: by then its writer has given up, or makes the entry itself."""
MANY = 8
"""New intents whose reading takes so long that others come meanwhile."""


class CombinedCommits:
    """One writer's combined commits to one table. Not for use by two threads at once."""

    def __init__(self, log: TableLog, turns: Turns | None = None) -> None:
        self._log = log
        self._turns = turns or Turns()
        self._intents = IntentStore(log.storage, log.name)
        self._known: dict[str, CommitIntent] = {}
        self._known_since_s = 0.0
        self._over: set[str] = set()

    @property
    def is_alone(self) -> bool:
        """Whether no other writer was met for some time."""
        return self._turns.is_alone

    def commit(self, batch: CommitIntent, *, is_tried: bool = False) -> CommitOutcome:
        """Commit a batch that has files; see `LakeTable.commit`.

        `is_tried`: this writer has tried to commit it, and does not know for sure that it failed.
        """
        waiting, tries = _OpenCommit(batch, is_asked=is_tried), Tries(self._log.connect_anew)
        waiting.is_anew = self._turns.is_maker
        outcome = None
        try:
            while outcome is None and tries.are_left:
                with tries.one() as lost:
                    outcome = self._attempt(waiting, lost=lost)
            if outcome is None:
                raise tries.given_up(self._log.name, "combined commit") from tries.problem
            return outcome
        finally:
            self._turns.ended()
            if waiting.name and outcome is not CommitOutcome.COMMITTED:
                self._tidy([waiting.name])

    def _attempt(self, waiting: "_OpenCommit", *, lost: bool = False) -> CommitOutcome | None:
        """A look, and what follows from it; None: nothing is decided yet.

        `lost`: a number was lost just now.
        """
        anew, waiting.is_anew = waiting.is_anew, False
        state = self._look(waiting, lost=lost, anew=anew)
        verdict = judge(state.apps, waiting.batch.expected, waiting.batch.new, retry=waiting.is_asked)
        if verdict is not CommitDecision.COMMIT:
            return CommitOutcome.COMMITTED if verdict is CommitDecision.LANDED else CommitOutcome.REFUSED
        if self._turns.is_due(time.monotonic()):
            if not (lost or anew):
                waiting.is_anew = True
                return None
            if self._may_make_entry(waiting, lost=lost):
                self._make_entry(state, waiting)
                return CommitOutcome.COMMITTED
        if waiting.asked_at is not None and state.changed > waiting.asked_at:  # nobody takes that intent any more
            self._tidy([waiting.name])
            waiting.name, waiting.asked_at = "", None
        if waiting.asked_at is None and not self._turns.is_maker:
            self._ask(state, waiting)
        time.sleep(self._turns.pause_s(time.monotonic()))
        return None

    def _look(self, waiting: "_OpenCommit", *, lost: bool, anew: bool) -> LogState:
        """The newest state.

        Args:
            anew: by a listing, with this writer's files: before it makes an entry. A log that was put back to an older
                state while it waited is noticed by that.
        """
        if anew or not waiting.has_looked:
            state = self._log.looked_at(waiting.batch.files if anew else ())
        else:
            state = self._log.looked_at(waiting.batch.files, again=True, lost=lost)
        now = time.monotonic()
        self._turns.saw(state.version, state.batches, now, is_mine=state.maker == self._log.writer)
        if not waiting.has_looked:
            self._turns.begin(now)
            waiting.has_looked = True
        return state

    def _ask(self, state: LogState, waiting: "_OpenCommit") -> None:
        """Leave the intent, for whoever makes the next entry; where that fails this writer waits for its own turn."""
        batch = waiting.batch
        asked = replace(batch, looked_at=state.version, table=self._log.metadata.table_id)
        # Before the request: should its reply be lost, the intent may be there, and land.
        waiting.name, waiting.asked_at, waiting.is_asked = new_name(), state.version, True
        with suppress(Exception):  # of whatever kind: nobody needs the intent
            self._intents.put(waiting.name, encode_intent(asked))
        failpoint("intent-left")

    def _make_entry(self, state: LogState, waiting: "_OpenCommit") -> None:
        """Make the entry behind `state`, of this writer's batch and all that fit."""
        others, table = self._known.items(), self._log.metadata.table_id
        chosen = select(state.apps, state.changed, waiting.batch, others, table=table)
        taken = [self._known[name] for name in chosen.taken]
        waiting.is_asked = True
        self._log.write(state, [waiting.batch, *taken])
        failpoint("entry-made")
        self._turns.made(state.version + 1, 1 + len(taken), time.monotonic())
        over = {*chosen.taken, *chosen.ended}
        self._known = {name: intent for name, intent in self._known.items() if name not in over}
        self._over |= over
        self._tidy({*over, waiting.name} - {""})

    def _may_make_entry(self, waiting: "_OpenCommit", *, lost: bool) -> bool:
        """Whether this writer may go ahead, knowing what others wait for, the oldest first.

        Files are looked at after the log: an entry that is no writer's, as vacuum makes one, leads to looking at the
        log as a whole, and at all files again.

        `lost`: a race, just now, so nothing is asked for again where that is not needed.
        """
        is_known = self._log.looked_s <= self._known_since_s and abs(time.time() - self._known_since_s) < ANEW_S
        if lost and is_known:
            return True
        others, before = self._listed(waiting)
        if not self._turns.is_first(before, time.monotonic()):
            return False
        if not is_known:
            self._known, self._known_since_s = {}, time.time()
        if self._read_new(others) > MANY:  # it took a while: take those, too, that came meanwhile
            self._read_new(self._listed(waiting)[0])
        return True

    def _listed(self, waiting: "_OpenCommit") -> tuple[list[str], int]:
        """Names of the others' intents, the oldest first; and how many of them are older than this writer's."""
        ages = self._intents.ages()
        self._over &= ages.keys()
        names = (name for name, age in ages.items() if age < STALE_S and name.endswith(INTENT_SUFFIX))
        others = sorted((-ages[name], name) for name in names if name != waiting.name and name not in self._over)
        own = (-ages.get(waiting.name, 0.0), waiting.name)
        return [name for _, name in others], sum(other < own for other in others)

    def _read_new(self, names: list[str]) -> int:
        """Know these intents, in their order, and only these; how many of them were not known before."""
        reads = {name: helpers().submit(self._read, name) for name in names if name not in self._known}
        read = {name: reads[name].result() for name in reads}
        checks = {
            name: [helpers().submit(self._log.check_file, file) for file in intent.files]
            for name, intent in read.items()
            if intent is not None
        }
        found = {name: self._known.get(name) or (read[name] if _all_well(checks.get(name)) else None) for name in names}
        self._known = {name: intent for name, intent in found.items() if intent is not None}
        self._over |= found.keys() - self._known.keys()  # not to be read for each entry again
        return len(reads)

    def _read(self, name: str) -> CommitIntent | None:
        try:
            return decode_intent(self._intents.read(name))
        except Exception:  # noqa: BLE001 - of whatever kind: this one is left to its writer
            return None

    def _tidy(self, names: Collection[str]) -> None:
        """Remove intents that are over, beside what comes next; another writer does it, or `kgs maintain`, if not."""
        if names:
            with suppress(Exception):
                remove_beside(self._intents, names)


def _all_well(checks: Iterable[Future[None]] | None) -> bool:
    """Whether each file of an intent is there and young; where that could not be learned, it is left to its writer."""
    return checks is not None and all(check.exception() is None for check in checks)


class _OpenCommit:
    """A batch that is being committed.

    Attributes:
        name: of its intent; empty: none was left.
        asked_at: version of the table that it was tried to leave one as of; None: it was not.
        is_asked: whether it may be in the table by what was tried.
        has_looked: whether the log was looked at since it was ready.
        is_anew: whether the next look is at the log as a whole.
    """

    def __init__(self, batch: CommitIntent, *, is_asked: bool) -> None:
        self.batch = batch
        self.name = ""
        self.asked_at: int | None = None
        self.is_asked = is_asked
        self.has_looked = self.is_anew = False
