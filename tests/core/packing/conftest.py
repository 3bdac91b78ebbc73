"""Assignments in few letters, and a list that is not shuffled."""

import pytest


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
def bins_of():
    """`{1: "ab"}` out of an assignment."""

    def bins(assignment):
        found = {}
        for partition, consumer in sorted(assignment.items()):
            found[consumer] = found.get(consumer, "") + partition.topic
        return found

    return bins
