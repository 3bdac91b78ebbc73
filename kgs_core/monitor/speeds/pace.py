"""How fast a topic grows, and when in the window its load has stepped.

A window's average takes the whole window to follow a step, and noise forbids a shorter window for each partition. The
sum over a topic's partitions is much calmer: in it a step shows within seconds. What was written before is then
counted at the new pace, so that a partition's speed is its share of the whole window, at the topic's speed since the
step; unless what it has had since tells that its share is another one. Without it a load that grows fourfold is known
after the window, in several plans one after the other.
"""

from collections import deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from math import fsum, sqrt
from statistics import NormalDist, fmean
from typing import NamedTuple

from kgs_core.monitor.speeds.measurement import PartitionReading

FALSE_ALARM = 1e-4
"""How often, of one comparison, noise that is normally distributed is taken for a step."""
LEAST_CHANGE = 0.15
"""A share of the load before: what is less changes no plan in a hurry."""
_RISE = (3, 4, 6, 8, 12, 16)
_FALL = (8, 12, 16)
"""Newest intervals compared: a great step shows in few of them, a small one in many. A fall has time: a producer that
pauses for some seconds is back before consumers have been given up. The first of them is that of the step itself."""
_BEFORE = 8
"""Intervals that must be known of the load before."""
_FORGOTTEN = 30
"""Windows after which a short spike is no reason any more to wait for the next one to be over."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What growth counts for that was read from `from_s` on; None: it tells nothing about the load now."""

    from_s: float
    factor: float | None


class _Interval(NamedTuple):
    """New records/s between two readings, the later one at `at`."""

    begins: float
    at: float
    rate: float


class TopicPace:
    """One topic. It knows its readings' end offsets only: they are there whatever is deleted meanwhile."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._last: Mapping[int, PartitionReading] = {}
        self._heard_s = float("-inf")
        self._of: Set[int] = frozenset()
        self._rates: deque[_Interval] = deque()
        self._steps: list[float] = []
        self._risen: tuple[float, float] | None = None
        self._spike = 0
        self._spike_s = float("-inf")

    def add(self, time_s: float, partitions: Mapping[int, PartitionReading]) -> None:
        """Take in a reading, which is later than the last."""
        rate = _records_per_s(self._last, partitions)
        begins, self._last, self._heard_s = self._heard_s, partitions, time_s
        while self._rates and self._rates[0].begins < time_s - self._window_s:
            self._rates.popleft()
        if not self._rates:
            self._of = partitions.keys()
        begun = self._rates[0].at if self._rates else time_s
        self._steps = [at for at in self._steps if at > begun]
        if rate is None or partitions.keys() != self._of:
            return  # a broker is silent, or partitions come: the pace holds until the window has forgotten it
        self._rates.append(_Interval(begins, time_s, rate))
        if time_s > self._spike_s + _FORGOTTEN * self._window_s:
            self._spike = 0
        self._look()

    def counted(self) -> tuple[Counted, ...]:
        """Beginning with the oldest; the last one counts as it is. Empty: all of the window counts alike."""
        if not self._steps:
            return ()
        *before, newest = self._parts()
        now = _mean(newest)
        factors = [*(now / level if part and (level := _mean(part)) else None for part in before), 1.0]
        found = [Counted(float("-inf"), factors[0])]
        for begins, factor in zip(self._steps, factors[1:], strict=True):
            within = next(last.at for last, each in pairwise(self._rates) if each.at == begins)
            found += [Counted(within, None), Counted(begins, factor)]
        return tuple(found)

    def _parts(self) -> list[list[_Interval]]:
        """The rates between the steps, without the intervals in which these happened: they have some of both loads."""
        begins = [float("-inf"), *self._steps, float("inf")]
        *before, newest = ([each for each in self._rates if a <= each.at < b] for a, b in pairwise(begins))
        return [*(part[:-1] for part in before), newest]

    def _look(self) -> None:
        *before, newest = self._parts()
        spread = [each.rate / level for part in before if part and (level := _mean(part)) for each in part]
        since = newest_since_step([each.rate for each in newest], spread, self._spike)
        if not since:
            return
        begins = self._rates[-since].at
        was, now = _mean(newest[: -since - 1]), _mean(newest[-since:])
        if now > was:
            self._risen = (begins, was)
        elif self._risen is not None:
            rose, low = self._risen
            if begins - rose < self._window_s and now - low <= 2 * LEAST_CHANGE * low:
                lasted = sum(rose <= each.at < begins for each in self._rates)
                self._spike, self._spike_s = max(self._spike, lasted + 1), begins
        self._steps.append(begins)


def factor_at(counted: Sequence[Counted], time_s: float) -> float | None:
    """What growth that was read at `time_s` counts for."""
    return next((each.factor for each in reversed(counted) if time_s >= each.from_s), 1.0)


def newest_since_step(rates: Sequence[float], spread: Sequence[float] = (), longer_than: int = 0) -> int:
    """How many of the newest rates are wholly of another load than those before; 0: the load is one.

    A step is there where each of the newest is nearer to their mean than to the mean of those before; and the means
    differ by `LEAST_CHANGE`, and by more than Student's t of `FALSE_ALARM` allows for two samples of one load.

    Args:
        rates: of consecutive intervals of about one length since the last step, in order of time, in any unit.
        spread: rates from before it as shares of their own mean: they, too, tell how much noise there is.
        longer_than: of a rise, intervals that it must have lasted.

    References:
        Page 1954, "Continuous Inspection Schemes", for the task. Student's two-sample test, with the deviation of the
        older sample alone: a step may bring another one with it.
    """
    sums = [0.0, *accumulate(rates)]
    for newest in _RISE:
        known = len(rates) - newest
        if known < 2 or known + len(spread) < _BEFORE:  # noqa: PLR2004 - a mean of two
            return 0
        old, new = sums[known] / known, (sums[-1] - sums[known + 1]) / (newest - 1)
        if not is_far(old, new) or not (newest > longer_than if new > old else newest in _FALL):
            continue
        if not all(abs(rate - new) < abs(rate - old) for rate in rates[known:]):
            continue
        squares = fsum((rate - old) ** 2 for rate in rates[:known]) + old**2 * fsum(
            (share - 1) ** 2 for share in spread
        )
        if _differ(old, new, squares, (known, newest - 1), known + len(spread) - 1):
            return newest - 1
    return 0


def is_far(old: float, new: float) -> bool:
    """Whether two paces differ by more than `LEAST_CHANGE`."""
    return abs(new - old) > LEAST_CHANGE * old


def is_its_own(older: Sequence[float], newest: Sequence[float]) -> bool:
    """Whether a partition's newest rates are of another load than its older ones at its topic's new pace."""
    if len(older) < _BEFORE:  # too few to tell, and the newest are many
        return True
    old, new = fmean(older), fmean(newest)
    squares = fsum((rate - old) ** 2 for rate in older)
    return is_far(old, new) and _differ(old, new, squares, (len(older), len(newest)), len(older) - 1)


def _differ(old: float, new: float, squares: float, of: tuple[int, int], freedom: int) -> bool:
    """Whether two means, `of` so many, are not of one load; `squares`: of the deviations from the old one."""
    allowed = _student(freedom) * sqrt(squares / freedom * (1 / of[0] + 1 / of[1]))
    return abs(new - old) > allowed


def _mean(intervals: Sequence[_Interval]) -> float:
    seconds = [each.at - each.begins for each in intervals]
    return fsum(each.rate * of for each, of in zip(intervals, seconds, strict=True)) / fsum(seconds)


@cache
def _student(freedom: int) -> float:
    """The quantile of `FALSE_ALARM`, both sides together, within 3 % from 7 degrees of freedom on.

    References:
        Abramowitz and Stegun 1964, 26.7.5.
    """
    z = NormalDist().inv_cdf(1 - FALSE_ALARM / 2)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return fsum(term / freedom**power for power, term in enumerate(terms))


def _records_per_s(last: Mapping[int, PartitionReading], now: Mapping[int, PartitionReading]) -> float | None:
    """None: not the same logs, or one of them does not go on."""
    if not now or last.keys() != now.keys():
        return None
    total = 0.0
    for number, reading in now.items():
        before = last[number]
        records, seconds = reading.end_offset - before.end_offset, reading.offsets_s - before.offsets_s
        if records < 0 or seconds <= 0 or reading.topic_id != before.topic_id:
            return None
        total += records / seconds
    return total
