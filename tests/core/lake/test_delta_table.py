"""The compare-and-set commit: who is refused, and what an error leaves."""

import pytest

from kgs_core.errors import TransientError
from kgs_core.lake.delta.table_log import TableLog
from kgs_core.lake.files.storage import Storage
from kgs_core.ports import CommitOutcome
from tests.one_column import file_of, table_at, values_in


@pytest.fixture
def storage(tmp_path):
    return Storage(str(tmp_path / "lake"))


@pytest.fixture
def table(storage):
    return table_at(storage)


def test_rows_and_positions_are_committed_together(storage, table):
    assert table.commit({"a": None, "b": None}, {"a": 2, "b": 7}, [file_of(storage, 1, 2)]) is CommitOutcome.COMMITTED
    assert table.versions(["a", "b", "c"]) == {"a": 2, "b": 7, "c": None}
    assert values_in(storage) == [1, 2]


@pytest.mark.parametrize(
    ("expected", "new", "outcome"),
    [
        ({"a": 10}, {"a": 15}, CommitOutcome.COMMITTED),
        ({"a": 9}, {"a": 15}, CommitOutcome.REFUSED),
        ({"a": 0}, {"a": 15}, CommitOutcome.REFUSED),
        ({"a": 11}, {"a": 15}, CommitOutcome.REFUSED),
        ({"a": None}, {"a": 15}, CommitOutcome.REFUSED),
        ({"a": 5}, {"a": 10}, CommitOutcome.REFUSED),
        ({"a": 10, "b": 1}, {"a": 15, "b": 2}, CommitOutcome.REFUSED),
        ({"a": 10, "b": None}, {"a": 15, "b": 2}, CommitOutcome.COMMITTED),
        ({"b": None}, {"b": 2}, CommitOutcome.COMMITTED),
        ({"b": 0}, {"b": 2}, CommitOutcome.REFUSED),
        ({"a": 10, "b": None}, {"b": 2}, CommitOutcome.COMMITTED),
        ({"a": 9, "b": None}, {"b": 2}, CommitOutcome.REFUSED),
    ],
)
def test_commit_needs_every_stored_version_to_be_the_expected_one(storage, table, expected, new, outcome):
    table.commit({"a": None}, {"a": 10}, ())
    before = table.versions(["a", "b"])
    assert table.commit(expected, new, [file_of(storage, 1)]) is outcome
    refused = outcome is CommitOutcome.REFUSED
    assert table.versions(["a", "b"]) == (before if refused else before | new)
    assert values_in(storage) == ([] if refused else [1])


def test_second_commit_of_the_same_range_is_refused(storage, table):
    other = table_at(storage)
    table.versions(["a"])
    assert other.commit({"a": None}, {"a": 3}, [file_of(storage, 1)]) is CommitOutcome.COMMITTED
    assert table.commit({"a": None}, {"a": 3}, [file_of(storage, 1)]) is CommitOutcome.REFUSED
    assert values_in(storage) == [1]


def test_other_partitions_commits_in_between_do_no_harm(storage, table):
    class Interrupted(TableLog):
        def write(self, state, batches):
            for n in range(12 if table.versions(["b"]) == {"b": None} else 0):  # more than a checkpoint apart
                table.commit({"b": n or None}, {"b": n + 1}, ())
            super().write(state, batches)

    slow = table_at(storage, Interrupted)
    assert slow.commit({"a": None}, {"a": 1}, [file_of(storage, 1)]) is CommitOutcome.COMMITTED
    assert slow.versions(["a", "b"]) == {"a": 1, "b": 12}
    assert values_in(storage) == [1]


def racing(rival, storage, *, refresh):
    """A table whose rival commits the same range between its check and its write; `refresh` is the mistake."""

    class Racing(TableLog):
        def write(self, state, batches):
            if rival.versions(["a"]) == {"a": None}:
                rival.commit({"a": None}, {"a": 3}, [file_of(storage, 1)])
            if refresh:
                state = self.refreshed()
            super().write(state, batches)

    return table_at(storage, Racing)


def test_rival_between_check_and_write_has_taken_the_number(storage, table):
    racer = racing(table, storage, refresh=False)
    assert racer.commit({"a": None, "b": None}, {"a": 2, "b": 1}, [file_of(storage, 1)]) is CommitOutcome.REFUSED
    assert values_in(storage) == [1]
    assert table.versions(["a", "b"]) == {"a": 3, "b": None}


def test_state_refreshed_after_the_check_doubles_rows_so_these_tests_can_see_it(storage, table):
    """The mistake that rule 3 of delta_table.py forbids: were it harmless, the test above would prove little."""
    racer = racing(table, storage, refresh=True)
    assert racer.commit({"a": None, "b": None}, {"a": 2, "b": 1}, [file_of(storage, 1)]) is CommitOutcome.COMMITTED
    assert values_in(storage) == [1, 1]


def failing(storage, *, lands, times=1):
    """A table whose writes raise, after or instead of the commit."""

    class Failing(TableLog):
        failures = 0

        def write(self, state, batches):
            if self.failures >= times:
                super().write(state, batches)
                return
            self.failures += 1
            if lands:
                super().write(state, batches)
            raise OSError("the reply was lost")

    return table_at(storage, Failing)


@pytest.mark.parametrize("lands", [True, False])
def test_error_of_a_commit_is_answered_by_the_table_itself(storage, lands):
    table = failing(storage, lands=lands)
    assert table.commit({"a": None}, {"a": 2}, [file_of(storage, 1, 2)]) is CommitOutcome.COMMITTED
    assert values_in(storage) == [1, 2]
    assert table.versions(["a"]) == {"a": 2}


def test_error_after_which_somebody_else_has_part_of_the_range_is_a_refusal(storage, table):
    class Overtaken(TableLog):
        def write(self, *_):
            table.commit({"a": None}, {"a": 1}, [file_of(storage, 7)])
            raise OSError("the store went away")

    slow = table_at(storage, Overtaken)
    assert slow.commit({"a": None, "b": None}, {"a": 2, "b": 2}, [file_of(storage, 1, 2)]) is CommitOutcome.REFUSED
    assert values_in(storage) == [7]


def test_commit_that_never_works_is_reported_with_its_cause(storage):
    table = failing(storage, lands=False, times=1000)
    with pytest.raises(TransientError, match="table t: commit failed 8 times, last: the reply was lost"):
        table.commit({"a": None}, {"a": 2}, [file_of(storage, 1)])
    assert table.versions(["a"]) == {"a": None}
