"""Fixed shares of partitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.errors import ConfigError
from kgs_core.group.membership.share import EqualShare, parse_share


@given(st.from_regex(r"[a-z.]{1,20}", fullmatch=True), st.integers(0, 200), st.integers(1, 12))
def test_equal_shares_hold_every_partition_once_and_differ_by_one_at_most(topic, partitions, count):
    shares = [EqualShare(index, count).of(topic, partitions) for index in range(1, count + 1)]
    assert sorted(p for share in shares for p in share) == list(range(partitions))
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_topics_of_one_partition_are_spread_over_the_shares():
    held = [len([t for t in "abcdefgh" if EqualShare(index, 4).of(t, 1)]) for index in range(1, 5)]
    assert held == [2, 2, 2, 2]


@pytest.mark.parametrize("text", ["", "0/2", "3/2", "1/0", "1", "a/b", "1/2/3", "-1/2"])
def test_shares_that_make_no_sense_are_refused(text):
    with pytest.raises(ConfigError, match="write 1/2"):
        parse_share(text)


def test_share_is_one_based():
    assert parse_share("2/3") == EqualShare(2, 3)
