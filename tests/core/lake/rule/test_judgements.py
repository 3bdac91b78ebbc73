"""Numbers of readings that may differ: odd while one is open, and the same in all tables then."""

from hypothesis import given
from hypothesis import strategies as st

from kgs_core.lake.rule.judgements import announced, closed, elsewhere, is_open


@given(st.none() | st.integers(0, 100))
def test_every_number_is_new_and_open_until_rows_are_committed(number):
    new = announced(number)
    assert is_open(new)
    assert new > (number or 0)
    assert elsewhere(new) == new
    assert not is_open(closed(new))
    assert elsewhere(closed(new)) == new
    assert announced(closed(new)) > new


def test_without_an_announcement_no_table_has_a_number():
    assert elsewhere(None) is elsewhere(0) is None
    assert not is_open(None)
