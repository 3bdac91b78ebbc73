"""The price of a change."""

from kgs_core.packing import rebalanced, rscore


def test_only_partitions_with_a_consumer_before_and_another_now_count(speeds_of, assigned, tp):
    """a stays, b moves, c is new, d is gone: (1/C) x s(b); of ten 0.1 the order of addition does not show."""
    current, target = assigned({1: "abd"}), assigned({1: "a", 2: "bc"})
    assert rebalanced(current, target) == [tp("b")]
    assert rscore(current, target, speeds_of(a=5, b=30, c=7), 20) == 1.5
    names = "abcdefghij"
    assert rscore(assigned({1: names}), assigned({2: names}), speeds_of(**dict.fromkeys(names, 0.1)), 1) == 1.0
