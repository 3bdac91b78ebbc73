"""The compare-and-set commit: who is refused, and what an error leaves."""

import pytest

from kgs_core.errors import TransientError
from kgs_core.lake.delta.table_log import TableLog
from kgs_core.ports import CommitOutcome
from tests.one_column import file_of, table_at, values_in


@pytest.mark.parametrize(
    ("expected", "new", "outcome"),
    [
        ({"a": 10}, {"a": 15}, CommitOutcome.COMMITTED),
        ({"a": 9}, {"a": 15}, CommitOutcome.REFUSED),
        ({"a": None}, {"a": 15}, CommitOutcome.REFUSED),
        ({"a": 5}, {"a": 10}, CommitOutcome.REFUSED),
        ({"a": 10, "b": 1}, {"a": 15, "b": 2}, CommitOutcome.REFUSED),
        ({"a": 10, "b": None}, {"b": 2}, CommitOutcome.COMMITTED),
    ],
)
def test_commit_needs_every_stored_version_to_be_the_expected_one(storage, table, expected, new, outcome):
    table.commit({"a": None}, {"a": 10}, ())
    before = table.versions(["a", "b"])
    assert table.commit(expected, new, [file_of(storage, 1)]) is outcome
    refused = outcome is CommitOutcome.REFUSED
    assert table.versions(["a", "b"]) == (before if refused else before | new)
    assert values_in(storage) == ([] if refused else [1])


def test_commit_that_never_works_is_reported_with_its_cause(storage):
    """What becomes of one error, and of rivals between its steps, is in test_commit_steps.py."""

    class Failing(TableLog):
        def write(self, *_):
            raise OSError("the reply was lost")

    table = table_at(storage, Failing)
    with pytest.raises(
        TransientError, match="table t: commit failed 8 times and lost 0 races, last: the reply was lost"
    ):
        table.commit({"a": None}, {"a": 2}, [file_of(storage, 1)])
    assert table.versions(["a"]) == {"a": None}
