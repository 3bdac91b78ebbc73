"""The compare-and-set rule: what to do with a batch, given what the table says. Pure."""

from collections.abc import Mapping
from enum import Enum, auto


class CommitDecision(Enum):
    """Decision by the stored positions on a batch."""

    COMMIT = auto()
    """Every position is where the batch began: nobody has written these offsets."""
    LANDED = auto()
    """Every position is where the batch ends: it is in the table, by us or by somebody with the same range."""
    REFUSED = auto()
    """Anything else: part of the range may be in the table; drop the batch and read the positions again."""


def judge(
    stored: Mapping[str, int | None], expected: Mapping[str, int | None], new: Mapping[str, int], *, retry: bool
) -> CommitDecision:
    """Compare stored versions with a batch's `expected` (before) and `new` (after), keyed by application id.

    Offsets only grow, so equality is the proof: a partition that went to another consumer and back cannot show the
    same position with other rows behind it.

    Args:
        retry: a first try has been made, whose result is unknown. Only then does "already at the end" mean landed;
            before it, the same finding means that another consumer has written these offsets.
    """
    if all(stored.get(app) == version for app, version in expected.items()):
        return CommitDecision.COMMIT
    if retry and all(stored.get(app) == version for app, version in new.items()):
        return CommitDecision.LANDED
    return CommitDecision.REFUSED
