"""Fixed shares of partitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.errors import ConfigError
from kgs_core.group.membership.share import EqualShare, parse_partitions, parse_share


@given(st.from_regex(r"[a-z.]{1,20}", fullmatch=True), st.integers(0, 200), st.integers(1, 12))
def test_equal_shares_hold_every_partition_once_and_differ_by_one_at_most(topic, partitions, count):
    shares = [EqualShare(index, count).of(topic, partitions) for index in range(1, count + 1)]
    assert sorted(p for share in shares for p in share) == list(range(partitions))
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_topics_of_one_partition_are_spread_over_the_shares():
    held = [len([t for t in "abcdefgh" if EqualShare(index, 4).of(t, 1)]) for index in range(1, 5)]
    assert held == [2, 2, 2, 2]


def test_named_partitions_are_those_that_exist():
    share = parse_partitions("a:0-2, b:5 ,c:*,a:7")
    assert share.of("a", 6) == {0, 1, 2}
    assert share.of("a", 8) == {0, 1, 2, 7}
    assert share.of("b", 5) == set()
    assert share.of("b", 6) == {5}
    assert share.of("c", 3) == {0, 1, 2}
    assert share.of("d", 3) == set()


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty"),
        ("a", "'a'"),
        ("a:", "'a:'"),
        ("a:3-1", "'a:3-1'"),
        ("a:-1", "'a:-1'"),
        ("a b:1", "'a b:1'"),
        ("a:1-99999999999", "'a:1-99999999999'"),
        ("a:0-3,a:3", "named twice"),
        ("a:*,a:9", "named twice"),
    ],
)
def test_partitions_that_make_no_sense_are_refused(text, part):
    with pytest.raises(ConfigError) as caught:
        parse_partitions(text)
    assert part in str(caught.value)


def test_all_wrong_partitions_are_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        parse_partitions("a:x,b:0-3,c")
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("text", ["", "0/2", "3/2", "1/0", "1", "a/b", "1/2/3", "-1/2"])
def test_shares_that_make_no_sense_are_refused(text):
    with pytest.raises(ConfigError, match="write 1/2"):
        parse_share(text)


def test_share_is_one_based():
    assert parse_share("2/3") == EqualShare(2, 3)


def test_what_is_named_and_not_there_is_reported():
    named = parse_partitions("a:0-9,b:1,c:*,d:4,e:0-2,f:7")
    assert named.missing({"a": 3, "b": 2, "c": 1, "e": 3, "f": 7}) == [
        "a:3-9: not there: the topic has 3 partitions",
        "d: no such topic",
        "f:7: not there: the topic has 7 partitions",
    ]
    assert parse_partitions("g:*").missing({}) == ["g: no such topic"]
