"""What is tried again, and what is heard anew, after each kind of failure of a store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.errors import PermanentError, TransientError, UnsafeError
from kgs_core.lake.delta.log_store import EntryExistsError, LogBrokenError
from kgs_core.lake.delta.pace import TRIES, Tries


@given(
    st.lists(st.sampled_from([OSError, EntryExistsError, LogBrokenError, None]), max_size=TRIES + 3), st.integers(1, 4)
)
def test_it_is_tried_until_it_is_done_or_failed_as_often_as_may_be(failures, most_races):
    """`failures`: what each try raises, None where it is done, as the ones behind the last are."""
    anew, given_lost, done = [], [], False
    tries = Tries(lambda: anew.append(1), most_races=most_races)
    what = iter(failures)
    while tries.are_left and not done:
        with tries.one() as lost:
            given_lost.append(lost)
            failure = next(what, None)
            if failure is not None:
                raise failure("no")
            done = True
    ran = failures[: len(given_lost)]
    races = ran.count(EntryExistsError)
    errors = sum(each not in (None, EntryExistsError) for each in ran)
    assert (tries.races, tries.errors, len(anew)) == (races, errors, errors)
    assert given_lost == [False, *(each is EntryExistsError for each in ran)][: len(given_lost)]
    assert done == (errors < TRIES and races < most_races)
    if not done:
        last = [each for each in ran if each is not None][-1]
        assert type(tries.given_up("t", "commit")) is (UnsafeError if last is LogBrokenError else TransientError)


def test_what_no_other_try_mends_is_raised_at_once():
    tries = Tries(lambda: pytest.fail("heard anew"))
    with pytest.raises(PermanentError, match="no"), tries.one():
        raise PermanentError("no")
    assert tries.are_left
