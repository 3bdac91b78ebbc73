"""A comparison as plain values for JSON: conditions, every replay, means over seeds, and the fronts."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from kgs_core.reporting.plain_values import plain
from kgs_core.simulation.comparison import Summary
from kgs_core.simulation.groups import FIGURES, SeedGroup, SeedSpread, front_of
from kgs_core.simulation.replay import Conditions
from kgs_core.simulation.workload import StreamSpec

_rounded = partial(plain, digits=9)


def comparison_values(
    conditions: Conditions, summaries: Iterable[Summary], groups: Sequence[SeedGroup]
) -> dict[str, Any]:
    """All of it as values for JSON, numbers rounded to nine decimals; null where something is not known.

    Returns:
        {"conditions": {...}, "results": [a replay with a figure for each of `FIGURES`], "summary": [the same as "mean",
        "low" and "high" over seeds], "fronts": [{"load", "front": [name]}]}
    """
    loads = dict.fromkeys(group.load for group in groups)
    fronts = {load: front_of(group for group in groups if group.load == load) for load in loads}
    return {
        "conditions": {
            "capacity_bytes_per_s": conditions.capacity_bytes_per_s,
            "read_speed_percent_of_capacity": _rounded(conditions.latency.read_speed),
            "interval_s": conditions.latency.interval_s,
        },
        "results": [_run(one) for one in summaries if not one.order],
        "summary": [_group(group) for group in groups],
        "fronts": [{"load": load, "front": front} for load, front in fronts.items()],
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


def _group(group: SeedGroup) -> dict[str, Any]:
    found = {**_identity(group.name, group.spec), "load": group.load, "seeds": len(group.runs)}
    found |= {key: _spread(group.spread(figure)) for key, figure in FIGURES.items()}
    if group.orders:
        orders = {key: _spread(group.spread(figure, orders=True)) for key, figure in FIGURES.items()}
        found["shuffled_orders"] = {"orders": len(group.orders) // len(group.runs), **orders}
    return found


def _spread(spread: SeedSpread | None) -> dict[str, Any] | None:
    if spread is None:
        return None
    return {"mean": _rounded(spread.mean), "low": _rounded(spread.low), "high": _rounded(spread.high)}
