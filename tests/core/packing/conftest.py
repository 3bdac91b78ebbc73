"""Partitions and assignments in few letters."""

import pytest

from kgs_core.model import ConsumerId, TopicPartition


class GivenOrder:
    """A random source under which a shuffled list stays in order."""

    def __init__(self):
        self._drawn = 0

    def random(self):
        self._drawn += 1
        return self._drawn / 1e6


@pytest.fixture
def in_order():
    return GivenOrder()


@pytest.fixture
def tp():
    """`a` is partition 0 of topic a."""
    return lambda name: TopicPartition(name, 0)


@pytest.fixture
def speeds_of(tp):
    return lambda **speeds: {tp(name): speed for name, speed in speeds.items()}


@pytest.fixture
def assigned(tp):
    """`{1: "ab"}` is partitions a and b at consumer 1."""
    return lambda bins: {tp(name): ConsumerId(number) for number, names in bins.items() for name in names}
