"""The pictures of `kgs simulate --plot`: fronts, the bill, and consumers over time."""

from collections.abc import Sequence

from kgs_core.api.replays import Comparison
from kgs_core.packing import parse_name
from kgs_core.simulation.charts import Chart, picture
from kgs_core.simulation.labels import Point
from kgs_core.simulation.plots import bill_chart, front_chart

_MAX_POINTS = 300
_MAX_LINES = 7


def plot(report: Comparison, suffix: str) -> bytes:
    """The report as a picture, `.svg` or `.png`."""
    panels: list[Chart] = []
    for load in report.loads:
        groups = [group for group in report.groups if group.load == load]
        panels.append(front_chart(load, groups, report.front(load)))
        if report.conditions.record_latency:
            panels.append(bill_chart(load, groups))
    if len(report.loads) == 1:
        panels.append(_over_time(report))
    return picture(panels, "png" if suffix == ".png" else "svg")


def _over_time(report: Comparison) -> Chart:
    """Consumers at each measurement of the first seed, beside the least: the front, then baselines, then others."""
    first = report.replays[0].workload
    shown = {one.name: one.steps for one in report.replays if one.workload == first}
    lines = {"least": _thin([step.least for step in next(iter(shown.values()))])}
    front = report.front(report.loads[0])
    first_names = [*front, *(name for name in shown if parse_name(name) is None)]
    for name in [*first_names, *(name for name in shown if name not in first_names)][: _MAX_LINES - 1]:
        lines[name] = _thin([step.consumers for step in shown[name]])
    return Chart(f"{first}: consumers", "measurement", "consumers", lines=lines, y_from_zero=False)


def _thin(values: Sequence[float]) -> list[Point]:
    every = -(-len(values) // _MAX_POINTS)
    return [(float(number), float(value)) for number, value in enumerate(values) if number % every == 0]
