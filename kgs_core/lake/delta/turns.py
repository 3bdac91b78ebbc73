"""Whose turn it is to make the entry that holds everybody's batches. Pure but for chance; a hint, no safety is in it.

1. Whoever made the last entry makes the next one, once it has a batch: it has nothing to wait for. It gives the others
   time to bring theirs, the more the more there were in the last entry.
2. Everybody else waits for an entry that holds its batch. If none comes for some two usual intervals between entries,
   a writer counts those who wait for longer, gives each of them an interval, for it may be dead, and then makes an
   entry. So however many wait, few begin at once to read what all have left.
3. An entry of several batches without mine says that somebody is at work: I wait anew, but not more than `PATIENCE`
   times. An entry of one batch says nothing: its maker may not look at what others wait for.
"""

import random

GATHER_S = 0.006
"""Given to each of the batches that the last entry held."""
MOST_GATHER_S = 0.6
PATIENCE = 3
FIRST_INTERVAL_S = 0.2
MOST_INTERVAL_S = 2.0
MOST_WAIT_S = 8.0
LEAST_RANK_S = 0.3
MOST_RANK = 10
LEAST_POLL_S = 0.03
MOST_POLL_S = 0.3
POLLS = 3
"""Looks at the log in the time of one entry."""
MEMORY = 0.3
ALONE = 0.2
"""Share of commits that saw another writer, below which this one is alone."""


class Turns:
    """The memory of one writer on one table."""

    def __init__(self, chance: random.Random | None = None) -> None:
        self._chance = chance or random.Random()  # noqa: S311 - no secret
        self._version = -1
        self._seen_s = 0.0
        self._is_mine = False
        self._batches = 1
        self._interval_s = FIRST_INTERVAL_S
        self._due_s = 0.0
        self._postponed = 0
        self._has_counted = False
        self._began_s: float | None = None
        self._in_company = False
        self._company = 1.0

    @property
    def is_maker(self) -> bool:
        """Whether the newest entry is this writer's own."""
        return self._is_mine

    @property
    def is_alone(self) -> bool:
        """Whether hardly any of the latest commits saw another writer."""
        return self._company < ALONE

    def begin(self, now: float) -> None:
        """A batch is ready; the log was looked at just now."""
        self._postponed = 0
        self._has_counted = False
        self._began_s = now
        self._due_s = max(now, self._seen_s + self._gather_s()) if self._is_mine else now + self._wait_s()

    def saw(self, version: int, batches: int, now: float, *, is_mine: bool) -> None:
        """The newest entry, which may be the one already known, and does not hold my batch.

        `batches`: in it; 0: not known.
        """
        if version == self._version:
            return
        is_waiting = self._began_s is not None  # what came while this writer had nothing to commit says little
        if is_waiting and version > self._version >= 0:
            interval = min((now - self._seen_s) / (version - self._version), MOST_INTERVAL_S)
            self._interval_s += MEMORY * (interval - self._interval_s)
        self._version, self._seen_s, self._is_mine = version, now, is_mine
        self._batches = max(batches, 1)
        self._in_company |= is_waiting and not is_mine
        if batches > 1 and self._postponed < PATIENCE:
            self._postponed += 1
            self._put_off(self._wait_s(), now)

    def _put_off(self, seconds: float, now: float) -> None:
        latest = (now if self._began_s is None else self._began_s) + MOST_WAIT_S
        self._due_s = max(self._due_s, min(now + seconds, latest))

    def made(self, version: int, batches: int, now: float) -> None:
        """This writer's own entry."""
        self._version, self._seen_s, self._is_mine, self._batches = version, now, True, batches
        self._in_company |= batches > 1

    def ended(self) -> None:
        """The batch is committed, or dropped."""
        self._company += 0.1 * (self._in_company - self._company)
        self._in_company = False
        self._began_s = None

    def is_due(self, now: float) -> bool:
        """Whether to make an entry now."""
        return now >= self._due_s

    def is_first(self, before: int, now: float) -> bool:
        """Whether a writer whose turn it is goes ahead; else its turn comes later, once.

        `before`: others that wait for longer.
        """
        if self._is_mine or not before or self._has_counted:
            return True
        self._has_counted = True
        self._put_off(min(before, MOST_RANK) * max(self._interval_s, LEAST_RANK_S), now)
        return self.is_due(now)

    def pause_s(self, now: float) -> float:
        """Seconds until there is something to look at or to do."""
        poll = min(max(self._interval_s / POLLS, LEAST_POLL_S), MOST_POLL_S)
        return max(min(self._due_s - now, poll * self._chance.uniform(0.8, 1.2)), 0.001)

    def _gather_s(self) -> float:
        return min(GATHER_S * (self._batches - 1), MOST_GATHER_S)

    def _wait_s(self) -> float:
        return self._chance.uniform(1.5, 3.0) * self._interval_s + self._gather_s()
