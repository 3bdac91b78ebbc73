"""Report of `kgs simulate`: a summary of each replay, means over seeds, fronts, and all of it as JSON."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from kgs_core.cli.simulate.options import Request
from kgs_core.simulation.comparison import Replayed, Summary, summarize
from kgs_core.simulation.groups import FIGURES, Group, Spread, front_of, groups_of
from kgs_core.simulation.workload import StreamSpec

_DIGITS = 9


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
        return groups_of(self.summaries)

    @property
    def loads(self) -> list[str]:
        """What loads there are, seeds aside."""
        return list(dict.fromkeys(group.load for group in self.groups))

    def front(self, load: str) -> list[str]:
        """The packers on the front of CBS (or consumers) and Rscore; baselines, which overload, are left out."""
        return front_of(group for group in self.groups if group.load == load)

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
