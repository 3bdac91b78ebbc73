"""Plots of a comparison: the front, the bill, and latency; a panel for each load."""

from collections.abc import Sequence

from kgs_core.simulation.charts import Chart
from kgs_core.simulation.groups import FIGURES, SeedGroup
from kgs_core.simulation.labels import Point

CBS, RSCORE = "cardinal bin score (CBS), a ratio", "mean Rscore E[R], in C"
"""Names of axes."""


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


def _dots(groups: Sequence[SeedGroup], x_key: str, y_key: str) -> dict[str, Point]:
    dots = {}
    for group in groups:
        x, y = group.spread(FIGURES[x_key]), group.spread(FIGURES[y_key])
        if x is not None and y is not None:
            dots[group.name] = x.mean, y.mean
    return dots
