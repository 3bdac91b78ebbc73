"""When too many records of a topic are bad, and when that is over."""

import random
from itertools import pairwise

import pytest

from kgs_core.group.membership.bad_share import BadShare, bad_topics, is_bad


@pytest.mark.parametrize(
    ("share", "percent", "begins", "stays"),
    [
        (0.0, 50, False, False),
        (0.25, 50, False, False),
        (0.26, 50, False, True),
        (0.5, 50, False, True),
        (0.501, 50, True, True),
        (1.0, 50, True, True),
        (0.001, 0, True, True),
        (0.0, 0, False, False),
        (1.0, 100, False, True),
        (0.01, 1, False, True),
        (0.011, 1, True, True),
    ],
)
def test_it_begins_above_the_limit_and_ends_at_half_of_it(share, percent, begins, stays):
    found = BadShare(share, percent / 100)
    assert (is_bad(found, was_bad=False), is_bad(found, was_bad=True)) == (begins, stays)


def test_of_each_topic_its_own_limit_counts_and_nothing_is_reported_of_others():
    found = {"a": BadShare(0.6, 0.5), "b": BadShare(0.6, 0.9), "c": BadShare(0.3, 0.5)}
    assert bad_topics(found, {"c", "given away"}) == {"a": 0.6, "c": 0.3}
    assert bad_topics({}, {"a"}) == {}


@pytest.mark.parametrize("limit", [0.05, 0.5, 0.9])
def test_a_share_beside_the_limit_is_reported_once(limit):
    """Shares of 1,000 records each, as chance has them, of a topic that is exactly at its limit."""
    chance = random.Random(7)
    bad, states = {}, []
    for _ in range(100):
        share = sum(chance.random() < limit for _ in range(1000)) / 1000
        bad = bad_topics({"t": BadShare(share, limit)}, bad)
        states.append(bool(bad))
    assert sum(a != b for a, b in pairwise([False, *states])) == 1
