"""Which topics of a full batch can wait for `wait_time_s`: a file of some records for each, in each batch, is too many.

A batch that is due takes what is there of every topic, and comes no more often than once in `wait_time_s`. One that is
full before that takes topics only as long as it gains by each: the largest, until they make up half of what is held,
and whoever has enough for a file of its own. So more than half a batch goes, whatever waits, and what is held never
grows beyond a batch.
"""

import numpy as np
import numpy.typing as npt

MOST_PASSED_BYTES = 256_000_000
"""Taken of other topics while small ones wait. The client keeps the whole answer of a broker that a record came with,
which may be most of these bytes, as long as the record is held."""
LARGE_SHARE = 64
"""A topic is large that has one part in so many of `batch_bytes`."""
Longs = npt.NDArray[np.int64]


def can_wait(sizes: Longs, batch_bytes: int) -> npt.NDArray[np.bool_]:
    """Whether each topic of a full batch can wait; never all of them.

    `sizes`: bytes that are held of each topic; of all, more than 0.
    """
    descending = np.argsort(-sizes, kind="stable")
    own = sizes[descending]
    of_larger = np.cumsum(own) - own
    waits = np.zeros(len(sizes), np.bool_)
    waits[descending] = (2 * of_larger >= own.sum()) & (own * LARGE_SHARE < batch_bytes)
    return waits


def taking_order(topics: Longs, sizes: Longs, batch_bytes: int, *, is_due: bool) -> tuple[Longs | None, int]:
    """The order in which a batch takes held events, and how many of them it may take at most.

    Events of one topic keep their order. What a batch that is due leaves behind, it leaves of the largest topics: the
    others have waited for long enough.

    Args:
        topics: number of each event's topic, from 0; -1 where it has none: such an event never waits.
        is_due: it takes every topic.

    Returns:
        Positions of the events, None: as they are; and how many of the first may be taken.
    """
    of_topic = np.bincount(topics + 1, weights=sizes).astype(np.int64)[1:]
    held = np.flatnonzero(np.bincount(topics + 1)[1:])
    if not len(held) or (is_due and int(sizes.sum()) <= batch_bytes):
        return None, len(topics)
    rank = np.zeros(len(of_topic) + 1, np.int64)  # that of no topic is the last, which -1 names
    if is_due:
        rank[held[np.argsort(of_topic[held], kind="stable")]] = np.arange(len(held))
        return np.argsort(rank[topics], kind="stable"), len(topics)
    rank[held] = can_wait(of_topic[held], batch_bytes)
    waiting = int(rank[topics].sum())
    return (np.argsort(rank[topics], kind="stable") if waiting else None), len(topics) - waiting
