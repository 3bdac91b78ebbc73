"""How long a writer waits that lost the race for a log's next entry. Pure but for chance.

One of all that try always wins, so collisions cost requests, not commits; waiting is there to save requests and to
share the table fairly.
1. A writer keeps the usual number of its losses before a commit, from one commit to the next. What it learnt is not
   forgotten with a success: else the last winner would win again, against those who wait.
2. It waits a random time, up to so many tries' time as its usual losses and a factor. The more tries there are at once,
   the more losses, the longer the waits, the fewer tries: with n writers the losses settle near the root of n.
3. The more losses *this* commit has had, the shorter the wait, down to none at twice the usual: whoever waited longest
   tries most often.
4. Without a loss there is no wait: one writer alone is not slowed down, and nothing remembers that others were there.
"""

import random
from typing import Literal

CommitWay = Literal["direct", "combined", "auto"]
"""A writer makes entries of its own, shares them with others, or (auto) shares them while it is crowded."""
SPREAD = 4.0
PATIENCE = 2.0
LEARNT_AT_ONCE = 4
"""Losses of a commit that count as usual before they are: a table that others have just begun to write to."""
MOST_TRY_S = 0.25
"""A try that takes longer waits for a machine or a store, and not for other writers: that is no measure of a wait."""
MEMORY = 0.1
"""Weight of the newest commit in the usual number of losses."""
CROWDED = 1.2
"""Usual losses above which commits are better combined (docs/scale.md)."""
CROWDED_AT_ONCE = 4
"""Losses of one commit after which it need not wait to know what is usual."""
TRIES = 8
"""Errors of a store before a commit or a look is given up."""
MOST_RACES = 1000
"""Lost in a row before a commit is given up: its file is as old by then as many batches."""


def pause_after_error(errors: int) -> float:
    """Seconds to wait before a store is asked again. `errors`: so many before this one."""
    return min(0.02 * 2.0**errors, 1.0)


class Pace:
    """The memory of one writer on one table."""

    def __init__(self, chance: random.Random | None = None) -> None:
        self._chance = chance or random.Random()  # noqa: S311 - no secret
        self._losses = 0
        self._usual = 0.0

    @property
    def is_crowded(self) -> bool:
        """Whether most of what this writer tries is lost to others."""
        return self._usual > CROWDED or self._losses >= CROWDED_AT_ONCE

    def left(self) -> None:
        """The commit goes on in another way; its losses are no chance of this one commit."""
        self._usual = max(self._usual, self._losses)
        self._losses = 0

    def lost(self, try_s: float) -> float:
        """Seconds to wait after a lost race."""
        self._losses += 1
        usual = max(self._usual, min(self._losses, LEARNT_AT_ONCE))
        impatience = min(1.0, self._losses / (PATIENCE * (usual + 1)))
        return self._chance.uniform(0, SPREAD * min(try_s, MOST_TRY_S) * usual * (1 - impatience))

    def won(self) -> None:
        """A commit was made."""
        self._usual += MEMORY * (self._losses - self._usual)
        self._losses = 0
