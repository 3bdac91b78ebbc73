"""How long a writer waits that lost the race for a log's next entry, and how often anything is tried again.

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
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from kgs_core.errors import PortError, TransientError, UnsafeError, one_line
from kgs_core.lake.delta.log_store import EntryExistsError, LogBrokenError

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


class Tries:
    """What was tried of one thing that a store may refuse for a moment, and how it failed.

    Args:
        anew: called after an error: what was heard last may not have come from the store.
        pace: how long to wait after a lost race; None: not at all.
        most_races: lost races before it is given up.
    """

    def __init__(
        self, anew: Callable[[], None] = lambda: None, pace: Pace | None = None, most_races: int = MOST_RACES
    ) -> None:
        self._anew = anew
        self._pace = pace
        self._most_races = most_races
        self._began_s = 0.0
        self._lost = False
        self.errors = self.races = 0
        self.problem: Exception | None = None

    @property
    def are_left(self) -> bool:
        """Whether to try once more."""
        return self.errors < TRIES and self.races < self._most_races

    def begin(self) -> None:
        """The try begins now, not when its context was entered."""
        self._began_s = time.monotonic()

    @contextmanager
    def one(self) -> Iterator[bool]:
        """One try: what the store's client or deltalake raises ends it, and the next one may follow.

        It is given whether the one before it lost a race.
        """
        lost, self._lost = self._lost, False
        self.begin()
        try:
            yield lost
        except PortError:
            raise
        except EntryExistsError as e:
            self.problem, self._lost = e, True
            self.races += 1
            if self._pace is not None:
                time.sleep(self._pace.lost(time.monotonic() - self._began_s))
        except Exception as e:  # noqa: BLE001 - stores' clients and deltalake raise what they like
            self.problem = e
            self._anew()
            time.sleep(pause_after_error(self.errors))
            self.errors += 1

    def given_up(self, table: str, what: str) -> PortError:
        """What is raised when no try is left."""
        if isinstance(self.problem, LogBrokenError):
            return UnsafeError(f"table {table}: {self.problem}")
        last = one_line(self.problem) if self.problem else ""
        words = f"{what} failed {self.errors} times and lost {self.races} races, last: {last}"
        return TransientError(f"table {table}: {words}")
