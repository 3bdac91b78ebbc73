"""The pictures of `kgs simulate --plot`: fronts, the bill, and consumers over time."""

from collections.abc import Sequence

from kgs_core.cli.simulate_charts import Chart, charts
from kgs_core.cli.simulate_figure import Point, svg
from kgs_core.cli.simulate_png import png
from kgs_core.cli.simulate_report import FIGURES, Group, Report
from kgs_core.packing import ALGORITHMS

_MAX_POINTS = 300
_MAX_LINES = 7


def plot(report: Report, suffix: str) -> bytes:
    """The report as a picture, `.svg` or `.png`."""
    panels: list[Chart] = []
    for load in report.loads:
        groups = [group for group in report.groups if group.load == load]
        panels.append(scatter(load, groups, report.front(load)))
        if report.request.grid.conditions.record_latency:
            panels.append(bill(load, groups))
    if len(report.loads) == 1:
        panels.append(_over_time(report))
    picture = charts(panels)
    return png(picture) if suffix == ".png" else svg(picture).encode()


def scatter(title: str, groups: Sequence[Group], front: Sequence[str]) -> Chart:
    """CBS, or consumers where it is not known, and mean Rscore; the front joined."""
    known = all(group.spread(FIGURES["cbs"]) for group in groups)
    return Chart(
        title,
        "cardinal bin score (CBS)" if known else "mean consumers",
        "mean Rscore E[R]",
        dots=_dots(groups, "cbs" if known else "mean_consumers", "average_rscore"),
        path=front,
        x_from_zero=known,
    )


def bill(title: str, groups: Sequence[Group]) -> Chart:
    """What each costs in consumer hours and in lateness, beside the hours that nobody can go below."""
    least = groups[0].spread(FIGURES["least_consumer_hours"])
    return Chart(
        f"{title}: the bill",
        "consumer hours",
        "p99 latency, s",
        dots=_dots(groups, "consumer_hours", "p99_latency_s"),
        mark=(least.mean, "least") if least is not None else None,
        x_from_zero=False,
        log_y=True,
    )


def _dots(groups: Sequence[Group], x_key: str, y_key: str) -> dict[str, Point]:
    dots = {}
    for group in groups:
        x, y = group.spread(FIGURES[x_key]), group.spread(FIGURES[y_key])
        if x is not None and y is not None:
            dots[group.name] = x.mean, y.mean
    return dots


def _over_time(report: Report) -> Chart:
    """Consumers at each measurement of the first seed, beside the least: the front, then baselines, then others."""
    first = report.replays[0].workload
    shown = {one.name: one.steps for one in report.replays if one.workload == first}
    lines = {"least": _thin([step.least for step in next(iter(shown.values()))])}
    front = report.front(report.loads[0])
    first_names = [*front, *(name for name in shown if name not in ALGORITHMS)]
    for name in [*first_names, *(name for name in shown if name not in first_names)][: _MAX_LINES - 1]:
        lines[name] = _thin([step.consumers for step in shown[name]])
    return Chart(f"{first}: consumers", "measurement", "", lines=lines, x_from_zero=False)


def _thin(values: Sequence[float]) -> list[Point]:
    every = -(-len(values) // _MAX_POINTS)
    return [(float(number), float(value)) for number, value in enumerate(values) if number % every == 0]
