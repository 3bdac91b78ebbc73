"""Replays side by side: runs of an algorithm over several seeds, their means and ranges, and who is on the front."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from kgs_core.packing import parse_name
from kgs_core.simulation.comparison import Summary, pareto_front
from kgs_core.simulation.pool import LatencySummary
from kgs_core.simulation.workload import StreamSpec

ENOUGH = 0.9
"""Of the least number of consumers: a load that is the same all the time is read with hardly less."""


@dataclass(frozen=True, slots=True)
class SeedSpread:
    """One figure over several seeds."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SeedGroup:
    """One algorithm or baseline on loads that differ in their seed only.

    Attributes:
        load: what the loads have in common: `uniform-delta05`, or the key of a recorded one.
        orders: of the same name with shuffled orders.
    """

    name: str
    load: str
    runs: Sequence[Summary]
    orders: Sequence[Summary] = ()

    @property
    def spec(self) -> StreamSpec | None:
        """What one of the loads was generated from."""
        return self.runs[0].spec

    def spread(self, figure: Callable[[Summary], float | None], *, orders: bool = False) -> SeedSpread | None:
        """Mean and range of a figure; None where a run has none."""
        found = [figure(run) for run in (self.orders if orders else self.runs)]
        known = [value for value in found if value is not None]
        return SeedSpread(fmean(known), min(known), max(known)) if known and len(known) == len(found) else None


def latency_figure(read: Callable[[LatencySummary], float | None]) -> Callable[[Summary], float | None]:
    """A figure of the latency model; None where it did not run."""
    return lambda run: read(run.latency) if run.latency is not None else None


FIGURES: dict[str, Callable[[Summary], float | None]] = {
    "cbs": lambda run: run.cbs,
    "average_rscore": lambda run: run.average_rscore,
    "mean_consumers": lambda run: run.mean_consumers,
    "least_consumers": lambda run: run.least,
    "moved_partitions": lambda run: run.moved,
    "mean_latency_s": latency_figure(lambda latency: latency.mean_s),
    "p95_latency_s": latency_figure(lambda latency: latency.p95_s),
    "p99_latency_s": latency_figure(lambda latency: latency.p99_s),
    "p90_delayed_latency_s": latency_figure(lambda latency: latency.p90_delayed_s),
    "delayed_share": latency_figure(lambda latency: latency.delayed_share),
    "consumer_hours": lambda run: run.consumer_hours,
    "least_consumer_hours": lambda run: run.least_consumer_hours,
    "rscore_total": lambda run: run.rscore_total,
    "bytes_delayed": lambda run: run.bytes_delayed,
}
"""Name, also in JSON -> figure. Latencies are seconds, a share is of the samples, bytes are stored ones."""


def groups_of(runs: Iterable[Summary]) -> list[SeedGroup]:
    """The runs by load, then by name, in the order in which they come."""
    found: dict[tuple[str, str], list[Summary]] = {}
    for one in runs:
        load = one.workload if one.spec is None else one.workload.replace(f"-seed{one.spec.seed}", "", 1)
        found.setdefault((load, one.name), []).append(one)
    return [
        SeedGroup(name, load, [one for one in mine if not one.order], [one for one in mine if one.order])
        for (load, name), mine in found.items()
    ]


def comparable(groups: Sequence[SeedGroup]) -> list[SeedGroup]:
    """The groups of one load as far as they can be compared: on equal seeds only, since seeds differ much.

    What counts are the seeds that most have replayed; a group that lacks one of these is left out.
    """
    count: dict[str, int] = {}
    for group in groups:
        for run in group.runs:
            count[run.workload] = count.get(run.workload, 0) + 1
    most = max(count.values(), default=0)
    shared = [workload for workload, number in count.items() if number == most]
    kept = _with_all(groups, shared)
    return kept or _with_all(groups, shared[:1])  # two with no seed in common


def with_enough_consumers(groups: Iterable[SeedGroup]) -> list[SeedGroup]:
    """Without baselines of fewer consumers than the load takes: their latency grows as long as one looks."""
    found = []
    for group in groups:
        consumers, least = group.spread(FIGURES["mean_consumers"]), group.spread(FIGURES["least_consumers"])
        if parse_name(group.name) or (consumers and least and consumers.mean >= ENOUGH * least.mean):
            found.append(group)
    return found


def front_of(groups: Iterable[SeedGroup]) -> list[str]:
    """The packers on the front of CBS (or consumers) and Rscore; baselines, which overload, are left out."""
    points = {}
    for group in groups:
        if parse_name(group.name):
            consumers = group.spread(FIGURES["cbs"]) or group.spread(FIGURES["mean_consumers"])
            price = group.spread(FIGURES["average_rscore"])
            if consumers is not None and price is not None:
                points[group.name] = consumers.mean, price.mean
    return pareto_front(points)


def _with_all(groups: Sequence[SeedGroup], shared: Sequence[str]) -> list[SeedGroup]:
    found = []
    for group in groups:
        runs = [run for run in group.runs if run.workload in shared]
        if len(runs) == len(shared):
            found.append(SeedGroup(group.name, group.load, runs))
    return found
