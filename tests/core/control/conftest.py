"""Loads, groups and settings in few letters."""

from random import Random

import pytest

from kgs_core.config import PackingSettings
from kgs_core.model import ConsumerId, TopicPartition


@pytest.fixture
def tp():
    return lambda name: TopicPartition(name, 0)


@pytest.fixture
def speeds_of(tp):
    return lambda **speeds: {tp(name): float(speed) for name, speed in speeds.items()}


@pytest.fixture
def assigned(tp):
    """`{1: "ab"}` is partitions a and b at consumer 1."""
    return lambda bins: {tp(name): ConsumerId(number) for number, names in bins.items() for name in names}


@pytest.fixture
def packing():
    """Capacity 100, rebalance above 120, no spare."""

    def build(**changes):
        plain = {"packing_capacity_bytes_per_s": 100, "consumer_capacity_bytes_per_s": 120, "spare_consumers": 0}
        return PackingSettings(**{**plain, **changes})

    return build


@pytest.fixture
def new_random():
    return lambda: Random(0)
