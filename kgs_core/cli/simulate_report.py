"""What `kgs simulate` found: a summary of each replay, means over seeds, fronts, and all of it as JSON."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from kgs_core.cli.simulate_options import Request
from kgs_core.experiments.comparison import Replayed, Summary, pareto_front, summarize
from kgs_core.experiments.pool import LatencySummary
from kgs_core.experiments.workload import StreamSpec
from kgs_core.packing import ALGORITHMS

_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure over several seeds."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Group:
    """One algorithm or baseline on loads that differ in their seed only.

    Attributes:
        load: what the loads have in common: `uniform-delta05`, or the key of a recorded one.
        runs: one for each seed.
        orders: of the same name with shuffled orders.
    """

    name: str
    load: str
    runs: Sequence[Summary]
    orders: Sequence[Summary]

    @property
    def spec(self) -> StreamSpec | None:
        """What one of the loads was generated from."""
        return self.runs[0].spec

    def spread(self, figure: Callable[[Summary], float | None], *, orders: bool = False) -> Spread | None:
        """Mean and range of a figure; None where a run has none."""
        found = [figure(run) for run in (self.orders if orders else self.runs)]
        known = [value for value in found if value is not None]
        return Spread(fmean(known), min(known), max(known)) if known and len(known) == len(found) else None


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
"""Key in the JSON -> figure. Latencies are seconds, a share is of the samples, bytes are stored ones."""


class Report:
    """Summaries of what was asked for, in the order in which it was."""

    def __init__(self, request: Request, replays: Iterable[Replayed]) -> None:
        self.request = request
        self.replays = [one for one in replays if one.name in request.names and not one.order]
        self._all = list(replays)

    @cached_property
    def summaries(self) -> list[Summary]:
        """Of each replay to show; those with shuffled orders come last."""
        names = self.request.names
        found = [one for one in summarize(self._all, self.request.grid.conditions) if one.name in names]
        return sorted(found, key=lambda one: one.order)

    @cached_property
    def groups(self) -> list[Group]:
        """By load, then by name."""
        found: dict[tuple[str, str], list[Summary]] = {}
        for one in self.summaries:
            found.setdefault((_load(one), one.name), []).append(one)
        return [
            Group(name, load, [one for one in runs if not one.order], [one for one in runs if one.order])
            for (load, name), runs in found.items()
        ]

    @property
    def loads(self) -> list[str]:
        """What loads there are, seeds aside."""
        return list(dict.fromkeys(group.load for group in self.groups))

    def front(self, load: str) -> list[str]:
        """The packers on the front of CBS (or consumers) and Rscore; baselines, which overload, are left out."""
        points = {}
        for group in self.groups:
            if group.load == load and group.name in ALGORITHMS:
                consumers = group.spread(FIGURES["cbs"]) or group.spread(FIGURES["mean_consumers"])
                price = group.spread(FIGURES["average_rscore"])
                if consumers is not None and price is not None:
                    points[group.name] = consumers.mean, price.mean
        return pareto_front(points)

    def tree(self) -> dict[str, Any]:
        """All of it as JSON, numbers rounded to nine decimals."""
        conditions = self.request.grid.conditions
        return {
            "conditions": {
                "capacity_bytes_per_s": conditions.capacity_bytes_per_s,
                "read_speed_percent_of_capacity": _rounded(conditions.latency.read_speed),
                "interval_s": conditions.latency.interval_s,
            },
            "results": [_run(one) for one in self.summaries if not one.order],
            "summary": [_group(group) for group in self.groups],
            "fronts": [{"load": load, "front": self.front(load)} for load in self.loads],
        }


def _load(one: Summary) -> str:
    """The key without its seed."""
    return one.workload.replace(f"-seed{one.spec.seed}", "", 1) if one.spec is not None else one.workload


def _identity(name: str, spec: StreamSpec | None) -> dict[str, Any]:
    return {"algorithm": name, "delta": spec.delta if spec else None, "start": spec.start if spec else None}


def _run(one: Summary) -> dict[str, Any]:
    return {
        **_identity(one.name, one.spec),
        "seed": one.spec.seed if one.spec else None,
        "workload": one.workload,
        "measurements": one.measurements,
        "partitions": one.partitions,
        **{key: _rounded(figure(one)) for key, figure in FIGURES.items()},
    }


def _group(group: Group) -> dict[str, Any]:
    found = {**_identity(group.name, group.spec), "load": group.load, "seeds": len(group.runs)}
    found |= {key: _spread(group.spread(figure)) for key, figure in FIGURES.items()}
    if group.orders:
        orders = {key: _spread(group.spread(figure, orders=True)) for key, figure in FIGURES.items()}
        found["shuffled_orders"] = {"orders": len(group.orders) // len(group.runs), **orders}
    return found


def _spread(spread: Spread | None) -> dict[str, Any] | None:
    if spread is None:
        return None
    return {"mean": _rounded(spread.mean), "low": _rounded(spread.low), "high": _rounded(spread.high)}


def _rounded(value: float | None) -> float | int | None:
    return round(value, _DIGITS) if isinstance(value, float) else value
