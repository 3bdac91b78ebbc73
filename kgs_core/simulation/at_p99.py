"""What a load takes at a p99 latency, by the latency model: each way to share out partitions with as little as does it.

Kafka's own assignment is given more consumers, KEDA a lower lag threshold, and a packer a lower capacity, until the
latency is low enough. The least that does it is found by halving: fewer may do it by luck, for no way is better with
every step.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from kgs_core.model import BytesPerSecond
from kgs_core.packing import ALGORITHMS, RandomSource
from kgs_core.simulation.baselines import BASELINES
from kgs_core.simulation.comparison import Replayed, Summary, summarize
from kgs_core.simulation.keda import LAG_THRESHOLD_S, Keda
from kgs_core.simulation.replay import Conditions, replay
from kgs_core.simulation.strategies import Packer, Strategy
from kgs_core.simulation.workload import Workload

NewRandom = Callable[[str], RandomSource]
"""Random numbers that follow from a text."""

_MOST_STEPS = 16
_LESS = 0.9
"""Of a packer's capacity, or of a lag threshold, at each step: 0.9 ** 16 is less than a fifth."""


@dataclass(frozen=True, slots=True)
class LoadCost:
    """Cost of a load with one way to share out partitions.

    Attributes:
        name: `kafka`, `keda`, or a packer's.
        setting: what was chosen so that the p99 is low enough, in words.
        consumers: at each measurement; `least`: as many as its load takes at least, ceil(sum of speeds / C).
        is_met: whether the p99 is low enough; else no setting that was tried does it, and this is the one nearest.
    """

    name: str
    setting: str
    summary: Summary
    consumers: tuple[int, ...]
    least: tuple[int, ...]
    is_met: bool = True

    @property
    def p99_s(self) -> float:
        """Of its latency; 0 where nothing was written."""
        latency = self.summary.latency
        return latency.p99_s if latency is not None and latency.p99_s is not None else 0.0


def own_cost(
    workload: Workload, conditions: Conditions, name: str, consumer_weight: float | None, new_random: NewRandom
) -> LoadCost:
    """What the model says of a group's own algorithm: its p99 is what the others are measured by."""
    strategy = Packer(ALGORITHMS[name], workload.capacity, new_random(f"{workload.key} {name}"), consumer_weight)
    return _cost(workload, conditions, name, "as configured", strategy)


def costs_at(p99_s: float, workload: Workload, conditions: Conditions, new_random: NewRandom) -> Iterator[LoadCost]:
    """Kafka's own assignment, KEDA and MWF, each with the least that keeps the p99 at most at `p99_s`."""
    for attempt, steps in (
        _kafka(workload, conditions),
        _keda(workload, conditions),
        _mwf(workload, conditions, new_random),
    ):
        yield _least(attempt, steps, p99_s)


_Attempt = Callable[[int], LoadCost]


def _kafka(workload: Workload, conditions: Conditions) -> tuple[_Attempt, int]:
    most = max(1, max((len(speeds) for speeds in workload.measurements), default=1))

    def attempt(step: int) -> LoadCost:
        strategy = BASELINES["kafka"].begin(str(step + 1), workload, conditions.latency)
        noun = "consumer" if step == 0 else "consumers"
        return _cost(workload, conditions, "kafka", f"{step + 1} {noun}", strategy)

    return attempt, most - 1


def _keda(workload: Workload, conditions: Conditions) -> tuple[_Attempt, int]:
    def attempt(step: int) -> LoadCost:
        threshold_s = LAG_THRESHOLD_S * _LESS**step
        strategy = Keda(conditions.latency, workload.capacity, threshold_s)
        return _cost(workload, conditions, "keda", f"lag threshold {threshold_s:.3g} s of C", strategy)

    return attempt, _MOST_STEPS


def _mwf(workload: Workload, conditions: Conditions, new_random: NewRandom) -> tuple[_Attempt, int]:
    def attempt(step: int) -> LoadCost:
        share = _LESS**step
        capacity: BytesPerSecond = workload.capacity * share
        strategy = Packer(ALGORITHMS["mwf"], capacity, new_random(f"{workload.key} mwf {step}"))
        return _cost(workload, conditions, "mwf", f"packs to {share:.0%} of C", strategy)

    return attempt, _MOST_STEPS


def _least(attempt: _Attempt, most: int, p99_s: float) -> LoadCost:
    """The first step, of 0 to `most`, at which the p99 is low enough; the best one tried where it never is."""
    tried: dict[int, LoadCost] = {}

    def is_met(step: int) -> bool:
        tried.setdefault(step, attempt(step))
        return tried[step].p99_s <= p99_s

    if is_met(0):
        return tried[0]
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_met(middle) else (middle, high)
    if is_met(high):
        return tried[high]
    best = min(tried.values(), key=lambda cost: (cost.p99_s, cost.summary.consumer_hours))
    return replace(best, is_met=False)


def _cost(workload: Workload, conditions: Conditions, name: str, setting: str, strategy: Strategy) -> LoadCost:
    steps = list(replay(workload, strategy, conditions))
    (summary,) = summarize([Replayed(name, workload.key, workload.spec, steps)], conditions)
    return LoadCost(name, setting, summary, tuple(s.consumers for s in steps), tuple(s.least for s in steps))
