"""Losers' waits, by a simulation of writers on one log: what many of them share, and what it costs."""

import heapq
import itertools
import random

import pytest

from kgs_core.lake.delta.pace import Pace

ROUND_TRIP_S = 0.03
SECONDS = 60.0


def simulate(writers, pace=Pace, seed=1):
    """Commits of each writer, and tries, of writers that commit back to back; a try is a reading and a writing."""
    chance = random.Random(seed)
    paces = [pace(random.Random(chance.random())) for _ in range(writers)]
    commits, tries, head = [0] * writers, 0, 0
    order = itertools.count()
    events = [(chance.random() * ROUND_TRIP_S, next(order), writer, None) for writer in range(writers)]
    heapq.heapify(events)
    while (event := heapq.heappop(events))[0] < SECONDS:
        now, _, writer, base = event
        trip = ROUND_TRIP_S * chance.uniform(0.9, 1.3)
        if base is None:  # the store tells the head; the entry behind it arrives a trip later
            heapq.heappush(events, (now + trip, next(order), writer, head))
            continue
        tries += 1
        wait = 0.0
        if base == head:
            head += 1
            commits[writer] += 1
            paces[writer].won()
        else:
            wait = paces[writer].lost(2 * ROUND_TRIP_S)
        heapq.heappush(events, (now + wait + trip, next(order), writer, None))
    return commits, tries


class NoPace(Pace):
    """Nobody waits."""

    def lost(self, _try_s):
        return 0.0


def test_one_writer_alone_never_waits():
    commits, tries = simulate(1)
    assert tries == commits[0]


def test_more_writers_commit_no_less_and_try_less_than_without_waits():
    found = {writers: simulate(writers) for writers in (1, 4, 16, 64, 128)}
    totals = [sum(commits) for commits, _ in found.values()]
    assert all(more >= 0.9 * fewer for fewer, more in itertools.pairwise(totals)), totals
    for writers in (16, 64, 128):
        free, free_tries = simulate(writers, NoPace)
        commits, tries = found[writers]
        assert tries / sum(commits) < 0.5 * free_tries / sum(free)


@pytest.mark.parametrize("writers", [2, 4, 16])
def test_writers_share_the_table(writers):
    commits, _ = simulate(writers)
    assert 2.5 * min(commits) >= max(commits)


def test_nobody_starves_among_many():
    commits, _ = simulate(64)
    assert min(commits) > 0


def test_who_lost_often_enough_waits_no_more():
    pace = Pace(random.Random(1))
    waits = [pace.lost(1.0) for _ in range(30)]
    assert max(waits[:5]) > 0
    assert waits[15:] == [0.0] * 15
