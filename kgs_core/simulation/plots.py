"""Plots of a comparison: the front, the bill, and latency, a panel for each load; consumers over time."""

from collections.abc import Sequence

from kgs_core.packing import parse_name
from kgs_core.simulation.charts import Chart
from kgs_core.simulation.comparison import Replayed
from kgs_core.simulation.groups import FIGURES, SeedGroup, front_of
from kgs_core.simulation.labels import Point

CBS, RSCORE = "cardinal bin score (CBS), a ratio", "mean Rscore E[R], in C"
"""Names of axes."""
_MAX_POINTS = 300
_MAX_LINES = 7


def comparison_charts(groups: Sequence[SeedGroup], replays: Sequence[Replayed], *, latency: bool) -> list[Chart]:
    """All that a comparison shows: of each load the front, with latency also the bill; of one also what it read with.

    Args:
        groups: of all loads.
        replays: measurement by measurement, the first seed of each name first.
        latency: whether late data was modelled.
    """
    charts: list[Chart] = []
    loads = list(dict.fromkeys(group.load for group in groups))
    for load in loads:
        shown = [group for group in groups if group.load == load]
        charts.append(front_chart(load, shown, front_of(shown)))
        if latency:
            charts.append(bill_chart(load, shown))
    if len(loads) == 1:
        charts.append(consumers_chart(replays, front_of(groups)))
    return charts


def front_chart(title: str, groups: Sequence[SeedGroup], front: Sequence[str]) -> Chart:
    """CBS, or consumers where it is not known, and mean Rscore; the front joined."""
    known = all(group.spread(FIGURES["cbs"]) for group in groups)
    return Chart(
        title,
        CBS if known else "mean consumers",
        RSCORE,
        dots=_dots(groups, "cbs" if known else "mean_consumers", "average_rscore"),
        path=front,
        x_from_zero=known,
    )


def bill_chart(title: str, groups: Sequence[SeedGroup]) -> Chart:
    """What each costs in consumer hours and in latency, beside the hours that nobody can go below."""
    least = groups[0].spread(FIGURES["least_consumer_hours"])
    return Chart(
        f"{title}: the bill",
        "consumer hours",
        "p99 latency, s",
        dots=_dots(groups, "consumer_hours", "p99_latency_s"),
        mark=(least.mean, "least") if least is not None else None,
        x_from_zero=False,
        scale="log y",
    )


def latency_chart(title: str, groups: Sequence[SeedGroup]) -> Chart:
    """With how many consumers data is read how late on the average."""
    least = groups[0].spread(FIGURES["least_consumers"])
    return Chart(
        f"{title}: latency",
        "mean consumers",
        "mean latency, s",
        dots=_dots(groups, "mean_consumers", "mean_latency_s"),
        mark=(least.mean, "least") if least is not None else None,
        x_from_zero=False,
        scale="log y",
    )


def consumers_chart(replays: Sequence[Replayed], front: Sequence[str]) -> Chart:
    """Consumers at each measurement of the first seed, beside the least: the front, then baselines, then others."""
    first = replays[0].workload
    shown = {one.name: one.steps for one in replays if one.workload == first}
    lines = {"least": _thin([step.least for step in next(iter(shown.values()))])}
    first_names = [*front, *(name for name in shown if parse_name(name) is None)]
    for name in [*first_names, *(name for name in shown if name not in first_names)][: _MAX_LINES - 1]:
        lines[name] = _thin([step.consumers for step in shown[name]])
    return Chart(f"{first}: consumers", "measurement", "consumers", lines=lines, y_from_zero=False)


def _thin(values: Sequence[float]) -> list[Point]:
    every = -(-len(values) // _MAX_POINTS)
    return [(float(number), float(value)) for number, value in enumerate(values) if number % every == 0]


def _dots(groups: Sequence[SeedGroup], x_key: str, y_key: str) -> dict[str, Point]:
    dots = {}
    for group in groups:
        x, y = group.spread(FIGURES[x_key]), group.spread(FIGURES[y_key])
        if x is not None and y is not None:
            dots[group.name] = x.mean, y.mean
    return dots
