"""Sizes of batches: their bounds, where they come to rest, and what many writers of one table write together."""

import heapq
import itertools
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.ingest.round.batch_size import FULL_SHARE, BatchSize

LEAST, MOST, TIMEOUT_S = 16_000_000, 64_000_000, 300.0
SIZE = BatchSize.between(LEAST, MOST, TIMEOUT_S)
seconds = st.floats(0, 1000)


def settled(size, bytes_per_s, fixed_s, commit_s, rounds=100):
    """After many full batches, each read in a fixed time and so many bytes/s."""
    for _ in range(rounds):
        size = size.after(size.now, size.now, fixed_s + size.now / bytes_per_s, commit_s, has_landed=True)
    return size


@given(
    st.lists(
        st.tuples(st.integers(0, 10**10), st.integers(1, 10**9), seconds, st.none() | seconds, st.booleans()),
        max_size=30,
    ),
    st.integers(1_000, 10**9),
    st.integers(0, 10**9),
)
def test_always_between_the_bounds_and_one_step_at_a_time(rounds, least, more):
    size = BatchSize.between(least, least + more, TIMEOUT_S)
    for taken, asked, work_s, commit_s, has_landed in rounds:
        after = size.after(taken, asked, work_s, commit_s, has_landed=has_landed)
        assert least <= after.now <= least + more
        assert size.now / 2 - 1 <= after.now <= 2 * size.now
        size = after


@given(st.integers(10**5, 10**9), st.floats(0, 2), st.floats(0.001, 20))
def test_with_commits_of_one_length_it_comes_to_rest_from_wherever_it_was(bytes_per_s, fixed_s, commit_s):
    sizes = [settled(replace(SIZE, now=now), bytes_per_s, fixed_s, commit_s).now for now in (LEAST, MOST)]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.02)
    work_s = fixed_s + sizes[0] / bytes_per_s
    if sizes[0] < 0.98 * MOST:
        assert commit_s / (commit_s + work_s) < 1 / 3 + 0.01
    if sizes[0] > LEAST:
        assert commit_s / (commit_s + work_s) > 1 / 3 - 0.01


def test_slow_commits_let_it_grow_and_quick_ones_shrink():
    slow = SIZE.after(LEAST, LEAST, 1.0, 2.0, has_landed=True)
    assert slow.now == 2 * LEAST
    slow = slow.after(2 * LEAST, 2 * LEAST, 2.0, 1.5, has_landed=True)
    assert slow.now == 3 * LEAST
    quick = slow.after(3 * LEAST, 3 * LEAST, 3.0, 0.05, has_landed=True)
    assert quick.now == 1.5 * LEAST
    assert quick.after(quick.now, quick.now, 1.5, 0.05, has_landed=True).now == LEAST


def test_without_a_backlog_it_shrinks_however_slow_commits_are():
    grown = replace(SIZE, now=MOST)
    taken = int(FULL_SHARE * MOST) - 1
    assert [grown := grown.after(taken // n, MOST // n, 1.0, 9.0, has_landed=True) for n in (1, 2, 4)][-1].now == LEAST


def test_a_batch_that_was_asked_for_with_an_earlier_size_was_full_all_the_same():
    assert replace(SIZE, now=2 * LEAST).after(LEAST, LEAST, 1.0, 2.0, has_landed=True).now == 4 * LEAST


def test_what_is_not_known_is_not_zero():
    grown = replace(SIZE, now=2 * LEAST)
    assert grown.after(2 * LEAST, 2 * LEAST, 1.0, None, has_landed=False).now == 2 * LEAST, "no commit was tried"
    assert grown.after(2 * LEAST, 2 * LEAST, 1.0, 0.01, has_landed=False).now == 2 * LEAST, "it is not over"
    assert grown.after(2 * LEAST, 2 * LEAST, 1.0, 30.0, has_landed=False).now == 4 * LEAST, (
        "it has taken so long already"
    )


def test_rounds_that_gather_count_to_the_batch_that_comes_of_them():
    size = replace(SIZE, now=2 * LEAST)
    gathering = size.after(0, LEAST, 1.0, None, has_landed=True).after(0, LEAST, 1.0, None, has_landed=True)
    assert gathering.now == size.now
    full = gathering.after(2 * LEAST, 2 * LEAST, 0.5, 1.25, has_landed=True)
    assert (full.now, full.work_s) == (2 * LEAST, 0.0), "two thirds of 3.75 s are 2.5 s"


def test_a_round_stays_far_from_the_age_at_which_the_process_ends():
    slow = BatchSize.between(LEAST, 100 * LEAST, 60.0)
    slow = settled(slow, LEAST / 5, 0.0, 100.0)  # 5 s for the least
    assert slow.now == 2 * LEAST, "two thirds of a quarter of a minute are 10 s"


READ_BYTES_PER_S = 16_000_000
COMMIT_S = 0.08
CROWD = 0.02
"""A commit takes so much longer for each writer that waits: it reads what others wrote, and tries again."""


def bytes_per_s(writers, size, end_s=200.0, seed=1):
    """What writers write together to a table that takes one commit at a time; the first half is left to settle."""
    chance = random.Random(seed)
    sizes, began, free_at, written = [size] * writers, [0.0] * writers, 0.0, 0
    ready = [(chance.random(), writer) for writer in range(writers)]  # when its batch is read, and waits for its turn
    heapq.heapify(ready)
    while (at := max(free_at, ready[0][0])) < end_s:
        waiting = [heapq.heappop(ready) for _ in range(len(ready)) if ready and ready[0][0] <= at]
        turn = waiting.pop(chance.randrange(len(waiting)))
        for other in waiting:
            heapq.heappush(ready, other)
        read_at, writer = turn
        free_at = at + COMMIT_S * (1 + CROWD * len(waiting))
        now = sizes[writer].now
        if free_at > end_s / 2:
            written += now
        sizes[writer] = sizes[writer].after(now, now, read_at - began[writer], free_at - read_at, has_landed=True)
        began[writer] = free_at
        reading_s = sizes[writer].now / READ_BYTES_PER_S * chance.uniform(0.9, 1.1)
        heapq.heappush(ready, (free_at + reading_s, writer))
    return written / (end_s / 2)


WRITERS = (1, 2, 4, 8, 12, 16, 24, 32, 48)
"""With more of them, each comes to its bound."""


def test_writers_that_are_added_to_one_table_never_lower_what_all_write_where_it_grows():
    found = [bytes_per_s(n, SIZE) for n in WRITERS]
    assert all(more >= 0.99 * fewer for fewer, more in itertools.pairwise(found)), found
    assert found[-1] > 2 * bytes_per_s(WRITERS[-1], replace(SIZE, most=LEAST))
