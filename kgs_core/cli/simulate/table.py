"""A comparison for people: one row per algorithm or baseline, and the bill beside it."""

from collections.abc import Callable, Mapping

from rich.table import Table

from kgs_core.api.replays import Comparison
from kgs_core.cli.terminal import output_console, plain_table, print_table
from kgs_core.simulation.groups import FIGURES, SeedGroup, SeedSpread

_WIDTH_IN_FILE = 200
Show = Callable[[float], str]

_COLUMNS: dict[str, tuple[str, Show]] = {
    "cbs": ("CBS", lambda value: f"{value:.4f}"),
    "average_rscore": ("E[R]", lambda value: f"{value:.2f}"),
    "mean_consumers": ("consumers", lambda value: f"{value:.2f}"),
    "moved_partitions": ("moved", lambda value: f"{value:,.0f}"),
    "rscore_total": ("Rscore total", lambda value: f"{value:,.1f}"),
    "consumer_hours": ("consumer hours", lambda value: f"{value:,.1f}"),
}
_LATE_COLUMNS: dict[str, tuple[str, Show]] = {
    "mean_latency_s": ("mean latency s", lambda value: f"{value:.3f}"),
    "p95_latency_s": ("p95 s", lambda value: f"{value:.2f}"),
    "p99_latency_s": ("p99 s", lambda value: f"{value:.2f}"),
    "p90_delayed_latency_s": ("p90 of delayed s", lambda value: f"{value:.2f}"),
    "delayed_share": ("delayed", lambda value: f"{value:.2%}"),
    "bytes_delayed": ("delayed MB", lambda value: f"{value / 1e6:,.0f}"),
}


def print_report(report: Comparison) -> None:
    """Print to standard output, a table for each load."""
    console = output_console(_WIDTH_IN_FILE)
    for load in report.loads:
        groups = [group for group in report.groups if group.load == load]
        console.print(_headline(groups[0]), style="bold")
        front = report.front(load)
        print_table(console, _table(groups, front, _COLUMNS))
        if report.conditions.record_latency:
            print_table(console, _table(groups, front, _LATE_COLUMNS))
        for group in groups:
            if group.orders:
                console.print(_orders(group), style="dim")
    console.print("* no other packer has both fewer consumers and a lower Rscore", style="dim")


def _headline(group: SeedGroup) -> str:
    run = group.runs[0]
    seeds = f", mean (least-greatest) of {len(group.runs)} seeds" if len(group.runs) > 1 else ""
    least = group.spread(FIGURES["least_consumers"])
    hours = group.spread(FIGURES["least_consumer_hours"])
    bound = f"at least {least.mean:.2f} consumers, {hours.mean:,.1f} hours" if least and hours else ""
    return f"{group.load}: {run.measurements:,} measurements of {run.partitions:,} partitions{seeds}; {bound}"


def _table(groups: list[SeedGroup], front: list[str], columns: Mapping[str, tuple[str, Show]]) -> Table:
    table = plain_table("", *(heading for heading, _ in columns.values()), left=("",))
    for group in groups:
        cells = [_cell(group.spread(FIGURES[key]), show) for key, (_, show) in columns.items()]
        table.add_row(f"{group.name}{'*' if group.name in front else ''}", *cells)
    return table


def _cell(spread: SeedSpread | None, show: Show) -> str:
    if spread is None:
        return "-"
    if spread.low == spread.high:
        return show(spread.mean)
    return f"{show(spread.mean)} ({show(spread.low)}-{show(spread.high)})"


def _orders(group: SeedGroup) -> str:
    count = len(group.orders) // len(group.runs)
    parts = []
    for key, (heading, show) in _LATE_COLUMNS.items():
        spread = group.spread(FIGURES[key], orders=True)
        if spread is not None:
            parts.append(f"{heading} {_cell(spread, show)}")
    return f"{group.name} over {count} shuffled orders: {', '.join(parts) or 'the same'}"
