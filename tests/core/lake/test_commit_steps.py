"""A commit with something happening between each two of its steps: every step, every thing that others may do.

A step is a call to the log's store. Whatever happens before it, rows and position move together, once, or not at all.
"""

import json
import os
import shutil

import pytest
from deltalake import DeltaTable

from kgs_core.errors import PortError
from kgs_core.lake.delta import combined_commit
from kgs_core.lake.delta.combined_commit import CombinedCommits, _OpenCommit
from kgs_core.lake.delta.log_store import DiskLog
from kgs_core.lake.delta.table_log import ANEW_S, TableLog
from kgs_core.lake.files.intent_store import IntentStore, encode_intent
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.combining import CommitIntent
from kgs_core.ports import CommitOutcome
from tests.one_column import LAKE, SCHEMA, file_of, table_at, values_in
from tests.waiting import wait_for_upkeep

STEPS = range(4)
"""Of a commit alone: the listing, the note of the newest checkpoint, the creation."""
LATER_STEPS = range(3, 9)
"""Of one that lost its number: the entries behind it, the creation, and, anew, all of the first."""
OURS, THEIRS = [1, 2], [7]


@pytest.fixture
def storage(tmp_path):
    storage = Storage(str(tmp_path / "lake"))
    table = table_at(storage)
    for n in range(3):
        table.commit({"a": n or None}, {"a": n + 1}, [file_of(storage, 100 + n)])
    return storage


def same_partition(storage):
    other = table_at(storage)
    if other.versions(["a"]) == {"a": 3}:
        other.commit({"a": 3}, {"a": 4}, [file_of(storage, *THEIRS)])


def other_partitions(storage):
    """So many that the chase takes several readings."""
    other = table_at(storage)
    for _ in range(10):
        at = other.versions(["b"])["b"]
        other.commit({"b": at}, {"b": (at or 0) + 1}, ())


def checkpoint(storage):
    DeltaTable(storage.uri("t")).create_checkpoint()


def cleaned_log(storage):
    """A checkpoint, and all before it gone, as to a process that was stopped for longer than the log is kept."""
    other_partitions(storage)
    handle = DeltaTable(storage.uri("t"))
    handle.create_checkpoint()
    for version in range(handle.version()):
        name = storage.path("t", f"_delta_log/{version:020d}.json")
        if os.path.exists(name):
            os.remove(name)


def half_cleaned_log(storage):
    """As before, but the cleaner died when it had removed the newest of them only."""
    known = max(int(name[:20]) for name in os.listdir(storage.path("t", "_delta_log")) if name.endswith(".json"))
    other_partitions(storage)
    handle = DeltaTable(storage.uri("t"))
    handle.create_checkpoint()
    for version in range(known + 1, handle.version()):
        os.remove(storage.path("t", f"_delta_log/{version:020d}.json"))


def harmless_property(storage):
    DeltaTable(storage.uri("t")).alter.set_table_properties({"delta.checkpointInterval": "77"})


def breaking_property(storage):
    DeltaTable(storage.uri("t")).alter.set_table_properties(
        {"delta.setTransactionRetentionDuration": "interval 1 hours"}
    )


def restored(storage):
    DeltaTable(storage.uri("t")).restore(2)


def made_again(storage):
    """With as many entries as before, and more."""
    wait_for_upkeep()
    shutil.rmtree(storage.path("t", "_delta_log"))
    table_at(storage)
    other_partitions(storage)


def deleted(storage):
    """And nobody makes it again."""
    wait_for_upkeep()
    shutil.rmtree(storage.path("t", "_delta_log"), ignore_errors=True)


def compacted(storage):
    DeltaTable(storage.uri("t")).optimize.compact()


def nothing(_):
    """The commit alone."""


ACTS = [
    nothing, same_partition, other_partitions, checkpoint, cleaned_log, half_cleaned_log, harmless_property,
    breaking_property, restored, made_again, deleted, compacted,
]  # fmt: skip


class SteppedLog(DiskLog):
    """Does something before one step."""

    def __init__(self, folder, before_step):
        super().__init__(folder)
        self._before_step = before_step

    def since(self, version):
        self._before_step()
        return super().since(version)

    def read(self, name):
        self._before_step()
        return super().read(name)

    def entry(self, version):
        self._before_step()
        return super().entry(version)

    def create(self, version, data):
        self._before_step()
        return super().create(version, data)


def stepped(storage, plan):
    """A table that knows its state already; before which steps of what is asked of it next something is done."""

    class Stepped(TableLog):
        steps = -1

        def before_step(self):
            self.steps += self.steps >= 0
            if act := plan.get(self.steps - 1):
                act(storage)
                if act in (cleaned_log, half_cleaned_log):  # it takes hours until entries are cleaned away
                    self.looked_s -= 24 * 3600

        def connected(self):
            if self._log is None:
                self._log = SteppedLog(super().connected()._folder, self.before_step)
            return self._log

    table = table_at(storage, Stepped)
    table._log.steps = 0
    return table


def entries_with(storage, app):
    """Versions that the log as it lies there gives to an application id, in order."""
    folder = storage.path("t", "_delta_log")
    names = sorted(n for n in os.listdir(folder) if n.endswith(".json")) if os.path.isdir(folder) else []
    found = []
    for name in names:
        with open(f"{folder}/{name}") as lines:
            found += [a["txn"]["version"] for a in map(json.loads, lines) if a.get("txn", {}).get("appId") == app]
    return found


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_commit_with_one_thing_between_its_steps(storage, act, subtests):
    for at in STEPS:
        with subtests.test(at=at):
            check(copy_of(storage, at), at, act, {at: act})


@pytest.mark.slow
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_commit_that_lost_its_number_with_one_thing_between_its_later_steps(storage, act, subtests):
    for at in LATER_STEPS:
        with subtests.test(at=at):
            check(copy_of(storage, at), at, act, {2: other_partitions, at: act})


def copy_of(storage, number):
    copy = Storage(f"{storage.root}-{number}")
    shutil.copytree(storage.root, copy.root)
    return copy


def check(storage, at, act, plan):
    table = stepped(storage, plan)
    try:
        outcome = table.commit({"a": 3}, {"a": 5}, [file_of(storage, *OURS)])
    except PortError:
        outcome = None
    acted = table._log.steps > at
    assert table._log.steps > 0
    assert acted or at > 2  # a commit that loses nothing has three steps
    if act is deleted and acted:
        assert outcome is not CommitOutcome.REFUSED
        return
    there, stored = values_in(storage), table_at(storage).versions(["a"])["a"] if act is not breaking_property else None
    ours, theirs = [v for v in there if v in OURS], [v for v in there if v in THEIRS]
    assert ours in ([], OURS)
    assert not (ours and theirs)
    if outcome is CommitOutcome.COMMITTED:
        assert (ours == OURS and stored in (5, None)) or (act in (made_again, restored) and not ours)
    elif outcome is CommitOutcome.REFUSED:
        assert not ours
        assert act in (same_partition, made_again)
    if act in (nothing, other_partitions, checkpoint, cleaned_log, half_cleaned_log, harmless_property, compacted):
        assert outcome is CommitOutcome.COMMITTED
        assert entries_with(storage, "a")[-1] == 5
    numbers = sorted(int(n[:20]) for n in os.listdir(storage.path("t", "_delta_log")) if n[20:] == ".json")
    if act not in (cleaned_log, half_cleaned_log):
        assert numbers == list(range(len(numbers)))


@pytest.mark.parametrize("act", [nothing, same_partition, other_partitions, cleaned_log], ids=lambda act: act.__name__)
@pytest.mark.parametrize("lands", [True, False])
def test_reply_that_is_lost_with_one_thing_behind_it(storage, act, lands):
    """The commit's own try is the one whose fate is unknown; then others act; then the log is asked."""

    class Lossy(TableLog):
        lossy = True

        def write(self, state, batches):
            if not self.lossy:
                super().write(state, batches)
                return
            self.lossy = False
            if lands:
                super().write(state, batches)
            act(storage)
            raise OSError("the reply was lost")

    outcome = table_at(storage, Lossy).commit({"a": 3}, {"a": 5}, [file_of(storage, *OURS)])
    refused = act is same_partition and not lands
    assert outcome is (CommitOutcome.REFUSED if refused else CommitOutcome.COMMITTED)
    assert [v for v in values_in(storage) if v < 100] == (THEIRS if refused else OURS)


def test_entry_made_in_a_hole_unnoticed_by_any_clock_moves_nothing(storage):
    """A machine halted between look and write, for so long that the log was cleaned: the next commit finds it out."""

    class Halted(TableLog):
        halted = False

        def write(self, state, batches):
            if not self.halted:
                self.halted = True
                cleaned_log(storage)
            super().write(state, batches)

    table = table_at(storage, Halted)
    assert table.commit({"a": 3}, {"a": 5}, [file_of(storage, 1, 2)]) is CommitOutcome.COMMITTED
    assert table.commit({"a": 5}, {"a": 6}, [file_of(storage, 3)]) is CommitOutcome.REFUSED
    assert table.versions(["a"]) == {"a": 3}
    assert table.commit({"a": 3}, {"a": 5}, [file_of(storage, 1, 2)]) is CommitOutcome.COMMITTED
    assert [v for v in values_in(storage) if v < 100] == OURS


def test_what_was_known_of_others_files_counts_only_for_a_while(storage, monkeypatch):
    """A maker that slept between two lost races: vacuum may have taken the files of an intent that it knew."""
    log = TableLog(storage, "t", SCHEMA, LAKE)
    maker, batch = CombinedCommits(log), CommitIntent({"b": None}, {"b": 1}, [file_of(storage, *OURS)])
    maker._turns.is_first = lambda *_: True
    theirs, later = file_of(storage, *THEIRS), combined_commit.time.time() + ANEW_S + 1
    table_id = DeltaTable(storage.uri("t")).metadata().id
    intent = CommitIntent({"c": None}, {"c": 1}, [theirs], looked_at=3, table=str(table_id))
    IntentStore(storage, "t").put("theirs.json", encode_intent(intent))
    waiting = _OpenCommit(batch, is_asked=False)
    state = log.looked_at(())
    assert maker._may_make_entry(waiting, lost=False)
    assert list(maker._known) == ["theirs.json"]
    assert maker._may_make_entry(waiting, lost=True), "just now"
    os.remove(storage.path("t", theirs.path))
    monkeypatch.setattr(combined_commit.time, "time", lambda: later)
    assert maker._may_make_entry(waiting, lost=True)
    maker._make_entry(state, waiting)
    assert values_in(storage) == [*OURS, 100, 101, 102]
    assert table_at(storage).versions(["b", "c"]) == {"b": 1, "c": None}
