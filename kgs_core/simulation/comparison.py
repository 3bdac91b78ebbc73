"""Algorithms beside each other: the published scores, the front, and what a load's bill would be."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from kgs_core.simulation.pool import LatencyPool, LatencySummary
from kgs_core.simulation.replay import Conditions, Step
from kgs_core.simulation.workload import StreamSpec

PUBLISHED = ("nf", "ff", "bf", "wf", "nfd", "ffd", "bfd", "wfd", "mwf", "mbf", "mwfp", "mbfp")
"""The algorithms over which the cardinal bin score takes its minimum, so that a further one does not move theirs."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """One run of a grid: a load through one algorithm or baseline.

    Attributes:
        spec: what the load was generated from; None: it was recorded.
        order: 0: partitions are dealt as the first measurement has them; else the number of a shuffled order (`kafka`).
    """

    name: str
    workload: str
    spec: StreamSpec | None
    steps: Sequence[Step]
    order: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """Summary of one replay.

    Attributes:
        cbs: cardinal bin score; None unless all published algorithms have replayed the same load.
        moved: partitions moved, all measurements together.
        least: mean of the lower bound on consumers.
        latency: None unless recorded.
        consumer_hours: of all measurements, each as long as the latency model has it.
        bytes_delayed: stored bytes read later than at once; None unless latency was recorded.
    """

    name: str
    workload: str
    spec: StreamSpec | None
    order: int
    measurements: int
    partitions: int
    cbs: float | None
    average_rscore: float
    rscore_total: float
    mean_consumers: float
    least: float
    moved: int
    consumer_hours: float
    least_consumer_hours: float
    latency: LatencySummary | None
    bytes_delayed: float | None


def summarize(replays: Iterable[Replayed], conditions: Conditions) -> list[Summary]:
    """A summary of each, in their order."""
    found = list(replays)
    least = least_consumers(found)
    return [_summary(one, least.get(one.workload), conditions) for one in found]


def least_consumers(replays: Iterable[Replayed]) -> dict[str, list[int]]:
    """Workload -> min_b z_i(b) of each measurement, for the loads that all published algorithms have replayed.

    References:
        Landau 2022, section "Metrics", CBS.
    """
    columns: dict[str, dict[str, list[int]]] = {}
    for one in replays:
        if one.name in PUBLISHED:
            columns.setdefault(one.workload, {})[one.name] = [step.consumers for step in one.steps]
    whole = {key: found for key, found in columns.items() if len(found) == len(PUBLISHED)}
    return {key: [min(numbers) for numbers in zip(*found.values(), strict=True)] for key, found in whole.items()}


def cardinal_bin_score(consumers: Sequence[int], least: Sequence[int]) -> float:
    """CBS: how many more consumers than `least`, on average over the measurements, as a share of `least`.

    A measurement without partitions, where nobody is needed, counts as 0.

    References:
        Landau 2022, section "Metrics", CBS.
    """
    return fmean((z - m) / m if m else 0.0 for z, m in zip(consumers, least, strict=True))


def pareto_front(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """The names that no other one beats or equals in both figures while beating it in one; in the order given."""
    return [
        name
        for name, (x, y) in points.items()
        if not any(a <= x and b <= y and (a < x or b < y) for a, b in points.values())
    ]


def _summary(one: Replayed, least: Sequence[int] | None, conditions: Conditions) -> Summary:
    steps = one.steps
    hours = conditions.latency.interval_s / 3600
    consumers = [step.consumers for step in steps]
    latency = None
    if conditions.record_latency:
        latency = LatencyPool(stretch for step in steps for stretch in step.stretches).summary()
    return Summary(
        name=one.name,
        workload=one.workload,
        spec=one.spec,
        order=one.order,
        measurements=len(steps),
        partitions=max(step.partitions for step in steps),
        cbs=cardinal_bin_score(consumers, least) if least is not None else None,
        average_rscore=fmean(step.rscore for step in steps),
        rscore_total=sum(step.rscore for step in steps),
        mean_consumers=fmean(consumers),
        least=fmean(step.least for step in steps),
        moved=sum(step.moved for step in steps),
        consumer_hours=sum(consumers) * hours,
        least_consumer_hours=sum(step.least for step in steps) * hours,
        latency=latency,
        bytes_delayed=latency.delayed * conditions.capacity_bytes_per_s / 100 if latency is not None else None,
    )
