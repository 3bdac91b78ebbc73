"""When too many records of a topic are bad, and when that is over."""

import random
from itertools import pairwise

import pytest

from kgs_core.group.membership.bad_share import BEGINS_ABOVE, bad_topics


@pytest.mark.parametrize(
    ("share", "begins", "stays"),
    [
        (0.0, False, False),
        (0.25, False, False),
        (0.26, False, True),
        (0.5, False, True),
        (0.501, True, True),
        (1.0, True, True),
    ],
)
def test_it_begins_above_a_half_and_ends_at_a_quarter(share, begins, stays):
    found = {"a": share}
    assert bad_topics(found, {"given away"}) == (found if begins else {})
    assert bad_topics(found, {"a"}) == (found if stays else {})


def test_a_share_beside_the_limit_is_reported_once():
    """Shares of 1,000 records each, as chance has them, of a topic that is exactly at its limit."""
    chance = random.Random(7)
    bad, states = {}, []
    for _ in range(100):
        share = sum(chance.random() < BEGINS_ABOVE for _ in range(1000)) / 1000
        bad = bad_topics({"t": share}, bad)
        states.append(bool(bad))
    assert sum(a != b for a, b in pairwise([False, *states])) == 1
