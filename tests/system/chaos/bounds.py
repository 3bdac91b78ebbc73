"""What must hold of a run beside its rows: times without a reader, the way to rest, and what processes use.

Each bound is for an idle machine; on a busy one it is longer by what the bystander measured in that very time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from tests.system.chaos.bystander import Bystander
from tests.system.chaos.judge import Wait
from tests.system.chaos.stage import SUSPECT_S
from tests.system.chaos.witness import Unowned, Use

BATCH_S = 3.0
MOVE_S = 5.0
UNOWNED_S = SUSPECT_S + 2 * BATCH_S
"""Without an owner while somebody who could read had joined: suspicion, a batch that is drained, one that begins."""
UNREAD_S = SUSPECT_S + MOVE_S + 3 * BATCH_S
"""From acknowledgement to a row while nothing excuses it: the same, and the batch that the record is in."""
BEGIN_S = 90.0
REST_S = 60.0
DRAINED_S = 60.0
STOPPED_S = 60.0
GONE_S = 30.0
LIFE_S = 240.0
"""Lives shorter than this say nothing about growth."""
WARM_S = 120.0
"""A code server that is started while everything else is has its imports so late; then its memory stays."""
MORE_DESCRIPTORS = 24
MORE_MEMORY = 0.25
MORE_BYTES = 64_000_000
"""Growth of the last third of a life beyond its first third; of memory, the larger of share and bytes."""


def late(
    what: str, took_s: float | None, bound_s: float, begin: float, end: float, bystander: Bystander
) -> Iterator[str]:
    """That something took too long; None: it never came."""
    factor = bystander.factor(begin, end)
    if took_s is None:
        yield f"{what}: never, within {bound_s * factor:.0f} s"
    elif took_s > bound_s * factor:
        yield f"{what}: {took_s:.1f} s, bound {bound_s:.0f} s x {factor:.1f} for the machine"


def unowned_too_long(found: Iterable[Unowned], bystander: Bystander) -> Iterator[str]:
    for each in found:
        yield from late(
            f"{each.tp} without an owner", each.end - each.begin, UNOWNED_S, each.begin, each.end, bystander
        )


def unread_too_long(found: Sequence[Wait], bystander: Bystander) -> Iterator[str]:
    for each in found:
        name = f"{each.topic}:{each.partition} unread from offset {each.offset}"
        yield from late(name, each.seconds, UNREAD_S, each.begin, each.end, bystander)


def growing(uses: Mapping[tuple[str, int], Sequence[Use]]) -> tuple[list[str], int]:
    """Processes whose memory or descriptors grow, and how many lived long enough to tell."""
    problems, judged = [], 0
    for (kind, pid), life in uses.items():
        warm = [use for use in life if use.at > life[0].at + WARM_S]
        if not warm or warm[-1].at - warm[0].at < LIFE_S - WARM_S:
            continue
        judged += 1
        third = len(warm) // 3
        parts = warm[:third], warm[third:-third], warm[-third:]
        descriptors = [median(use.descriptors for use in part) for part in parts]
        memory = [median(use.rss for use in part) for part in parts]
        if _grows(descriptors, MORE_DESCRIPTORS):
            problems.append(f"{kind} {pid}: descriptors grow from {descriptors[0]:.0f} to {descriptors[2]:.0f}")
        if _grows(memory, max(MORE_BYTES, MORE_MEMORY * memory[0])):
            problems.append(f"{kind} {pid}: memory grows from {memory[0] / 1e6:.0f} to {memory[2] / 1e6:.0f} MB")
    return problems, judged


def _grows(thirds: Sequence[float], limit: float) -> bool:
    """All the time: who begins to work, or to work more, grows once."""
    first, middle, last = thirds
    return last - first > limit and min(middle - first, last - middle) > limit / 4
