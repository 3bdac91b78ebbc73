"""Plots of a comparison: the front, the bill, and latency, a panel for each load; consumers over time."""

from collections.abc import Sequence

from kgs_core.packing import parse_name
from kgs_core.simulation.charts import Chart, Point
from kgs_core.simulation.comparison import Replayed
from kgs_core.simulation.groups import FIGURES, SeedGroup, front_of

CBS, RSCORE = "cardinal bin score (CBS), a ratio", "mean Rscore E[R], in C"
"""Names of axes."""
_MAX_POINTS = 300
_MAX_LINES = 7


def comparison_charts(groups: Sequence[SeedGroup], replays: Sequence[Replayed], *, latency: bool) -> list[Chart]:
    """All that a comparison shows: of each load the front, with latency also the bill; of one also what it read with.

    Args:
        replays: measurement by measurement, the first seed of each name first.
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


def bill_chart(load: str, groups: Sequence[SeedGroup]) -> Chart:
    """What each costs in consumer hours and in latency, beside the hours that nobody can go below."""
    keys = ("consumer_hours", "p99_latency_s", "least_consumer_hours")
    return _beside_least(groups, keys, (f"{load}: the bill", "consumer hours", "p99 latency, s"))


def latency_chart(load: str, groups: Sequence[SeedGroup]) -> Chart:
    """With how many consumers data is read how late on the average."""
    keys = ("mean_consumers", "mean_latency_s", "least_consumers")
    return _beside_least(groups, keys, (f"{load}: latency", "mean consumers", "mean latency, s"))


def _beside_least(groups: Sequence[SeedGroup], keys: tuple[str, str, str], names: tuple[str, str, str]) -> Chart:
    """Figures of x and y, and a mark at the least x; `names` are of the title and the axes."""
    least = groups[0].spread(FIGURES[keys[2]])
    mark = (least.mean, "least") if least is not None else None
    return Chart(*names, dots=_dots(groups, *keys[:2]), mark=mark, x_from_zero=False, scale="log y")


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
