"""Consumers of many partitions are given up where the others have room: what a search leaves open by itself."""

import math
from random import Random

import pytest

from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.packing.basics.problem import PackingProblem
from kgs_core.packing.search.packer import search


@pytest.mark.parametrize("partitions", [50, 400, 2100])
@pytest.mark.parametrize("load", [0.0, 1e-6, 0.1, 0.5, 0.85, 1.7, 2.4])
@pytest.mark.parametrize("had", [0, 6])
def test_no_consumer_more_than_many_quiet_partitions_need(partitions, load, had):
    draw = Random(partitions)
    shares = [draw.uniform(0.5, 1.5) for _ in range(partitions)]
    tps = [TopicPartition("t", number) for number in range(partitions)]
    speeds = {tp: 1e6 * load * share / math.fsum(shares) for tp, share in zip(tps, shares, strict=True)}
    current = {tp: ConsumerId(1 + n % had) for n, tp in enumerate(tps)} if had else {}
    found = search(PackingProblem(speeds, 1e6, current=current, consumer_weight=1.3), Random(1))
    loads = {}
    for tp, consumer in found.items():
        loads[consumer] = loads.get(consumer, 0.0) + speeds[tp]
    assert found.keys() == speeds.keys()
    assert max(loads.values()) <= 1e6 * (1 + 1e-9)
    assert len(loads) == max(1, math.ceil(load))


def test_what_is_moved_for_it_must_be_worth_a_consumer():
    tps = [TopicPartition("t", number) for number in range(40)]
    current = {tp: ConsumerId(1 + n // 20) for n, tp in enumerate(tps)}
    for weight, consumers in ((0.3, 2), (0.5, 1)):
        problem = PackingProblem(dict.fromkeys(tps, 2e4), 1e6, current=current, consumer_weight=weight)
        assert len(set(search(problem, Random(1)).values())) == consumers, "0.4 of C is moved"
