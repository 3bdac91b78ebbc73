"""How soon a step of the load is known, and what a group makes of it: two estimators on the same loads.

Pure: readings are generated, and `planning.triggers.decide` decides on each measurement, as a controller does; a target
is carried out at once. What is compared is the measurement, not the hand-over.
"""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from statistics import fmean

from kgs_core.config.packing import PackingSettings
from kgs_core.model import Assignment, TopicId, TopicPartition, WriteSpeeds, grouped
from kgs_core.monitor.speeds import Measure, PartitionReading, Reading, Window
from kgs_core.planning.load import Load
from kgs_core.planning.triggers import Watched, decide

ESTIMATORS = {"window": False, "steps": True}
"""Name -> `follows_steps` of the window."""
STEP_AT_S = 300
TOLERANCE = 0.05
_CONSUMERS = 8
_MINUTE = 60
_RECORD_BYTES = 100
_WINDOW_S = 30

Shape = Callable[[int], float]
"""The load in a second, as a multiple of the first one."""


def _step(times: float) -> Shape:
    return lambda t: times if t >= STEP_AT_S else 1.0


def _each_minute(times: float, seconds: int = 5) -> Shape:
    return lambda t: times if t >= _MINUTE and t % _MINUTE < seconds else 1.0


SHAPES: dict[str, Shape] = {
    "steady": lambda _: 1.0,
    **{f"x {times:g}": _step(times) for times in (1.2, 2.0, 4.0, 0.5, 0.25)},
    "ramp x 2 in 200 s": lambda t: 1.0 + min(1.0, max(0.0, (t - 200) / 200)),
    "x 4 for 5 s, each minute": _each_minute(4.0),
    "x 0 for 5 s, each minute": _each_minute(0.0),
    "a day in 600 s": lambda t: 1.0 + 0.6 * math.sin(t / 600 * math.tau),
    "one partition x 4": lambda _: 1.0,
}


@dataclass(frozen=True, slots=True)
class StepsCase:
    """One load: its shape, and the noise of each partition and second (deviation, a share; normally distributed).

    Attributes:
        recorded: true write speeds, each for `interval_s`, instead of a shape, number of partitions and duration.
    """

    shape: str
    noise: float
    partitions: int = 80
    seconds: int = 900
    recorded: Sequence[WriteSpeeds] = ()
    interval_s: int = 5


@dataclass(slots=True)
class StepsResult:
    """What came of it.

    Attributes:
        known_s: from the step until the sum of the speeds is within 5 % and two deviations of the noise of the new
            load, for good; None: there is no step.
        error: mean of |measured - true| over all partitions and seconds, as a share of the load.
        changes_per_h, rscore_per_h: of all Targets but the first.
        above: of the bytes, those that came for a consumer above its `consumer_capacity`.
        p99_s: how long 99 % of the bytes waited at most, as consumers read at that capacity.
        consumers: mean.
    """

    known_s: float | None = None
    error: float = 0.0
    changes_per_h: float = 0.0
    rscore_per_h: float = 0.0
    above: float = 0.0
    p99_s: float = 0.0
    consumers: float = 0.0


@dataclass
class _Group:
    settings: PackingSettings
    target: Assignment = field(default_factory=dict)
    earlier: WriteSpeeds = field(default_factory=dict)
    packed_at: int = 0
    changes: int = 0
    rscore: float = 0.0
    behind: dict[TopicPartition, float] = field(default_factory=dict)
    waited: list[tuple[float, float]] = field(default_factory=list)

    def take(self, second: int, speeds: WriteSpeeds) -> None:
        watched = Watched(
            self.target, self.target, frozenset(self.target.values()), since_packing_s=float(second - self.packed_at)
        )
        decision = decide(Load(speeds, earlier=self.earlier), watched, self.settings, lambda: random.Random(1))  # noqa: S311
        if decision.plan is None:
            return
        if self.target:
            self.changes, self.rscore = self.changes + 1, self.rscore + decision.plan.rscore
        self.target, self.earlier, self.packed_at = dict(decision.plan.target), speeds, second

    def read(self, true: WriteSpeeds) -> tuple[float, int]:
        """A second's bytes; returns those above the capacity of their consumer, and how many consumers read."""
        capacity, above = self.settings.consumer_capacity, 0.0
        shares = grouped((self.target[tp], tp) for tp in true if tp in self.target)
        for tps in shares.values():
            came = sum(true[tp] for tp in tps)
            total = came + sum(self.behind.get(tp, 0.0) for tp in tps)
            left = max(0.0, total - capacity)
            self.behind.update({tp: (true[tp] + self.behind.get(tp, 0.0)) * left / total for tp in tps if total})
            self.waited.append((left / capacity, came))
            above += max(0.0, came - capacity)
        return above, len(shares)

    def p99_s(self) -> float:
        """See `StepsResult`."""
        late = 0.01 * sum(came for _, came in self.waited)
        for seconds, came in sorted(self.waited, reverse=True):
            late -= came
            if late < 0:
                return seconds
        return 0.0


def run_case(case: StepsCase, seed: int, *, follows_steps: bool) -> StepsResult:
    """One load through one estimator; the same for every estimator of one seed."""
    window = Window(_WINDOW_S, _WINDOW_S / 3, follows_steps=follows_steps)
    group = _Group(PackingSettings())
    errors, totals, above, readers = [], [], [], []
    for second, true, reading in _seconds(case, seed):
        known = window.add(reading).known
        if second < _WINDOW_S:
            continue
        if not group.target:
            mean = fmean(sum(each.values()) for each in case.recorded) if case.recorded else sum(true.values())
            group.settings = PackingSettings(packing_capacity_bytes_per_s=mean / _CONSUMERS)
        group.take(second, known)
        load = sum(true.values())
        totals.append((second, sum(known.values()), load))
        if load:
            errors.append(sum(abs(known.get(tp, 0.0) - speed) for tp, speed in true.items()) / load)
        beyond, reading_now = group.read(true)
        above.append(beyond)
        readers.append(reading_now)
    hours = len(totals) / 3600
    return StepsResult(
        _known_s(case, totals) if case.shape.startswith("x ") and "each" not in case.shape else None,
        fmean(errors),
        group.changes / hours,
        group.rscore / hours,
        sum(above) / sum(load for _, _, load in totals),
        group.p99_s(),
        fmean(readers),
    )


def _seconds(case: StepsCase, seed: int) -> Iterator[tuple[int, WriteSpeeds, Reading]]:
    generator = random.Random(seed)  # noqa: S311 - a load, not a secret
    sizes: dict[TopicPartition, float] = {}
    for second, true in enumerate(_recorded(case) if case.recorded else _generated(case, generator)):
        for tp, speed in true.items():
            sizes[tp] = sizes.get(tp, 0.0) + speed * max(0.0, generator.gauss(1.0, case.noise))
        now = float(second + 1)
        logs = {
            tp: PartitionReading(now, now, TopicId("id"), 1, 0, int(size / _RECORD_BYTES), int(size))
            for tp, size in sizes.items()
        }
        yield second, true, Reading(now, 0, "bench", Measure.LOG_DIRS, logs)


def _recorded(case: StepsCase) -> Iterator[WriteSpeeds]:
    for speeds in case.recorded:
        yield from repeat(speeds, case.interval_s)


def _generated(case: StepsCase, generator: random.Random) -> Iterator[WriteSpeeds]:
    base = {TopicPartition("t", n): 1e6 * generator.lognormvariate(0, 0.5) for n in range(case.partitions)}
    phase = generator.random()
    shape, hot = SHAPES[case.shape], max(base, key=base.__getitem__) if case.shape.startswith("one") else None
    for second in range(case.seconds):
        # A step does not wait for a reading: the interval in which it happens has some of both loads
        load = phase * shape(second - 1) + (1 - phase) * shape(second)
        yield {tp: speed * load * (4.0 if tp == hot and second >= STEP_AT_S else 1.0) for tp, speed in base.items()}


def _known_s(case: StepsCase, totals: list[tuple[int, float, float]]) -> float:
    tolerance = TOLERANCE + 2 * case.noise / math.sqrt(case.partitions)
    late = [
        second for second, measured, load in totals if second >= STEP_AT_S and abs(measured - load) > tolerance * load
    ]
    return float(max(late, default=STEP_AT_S - 1) + 1 - STEP_AT_S)
