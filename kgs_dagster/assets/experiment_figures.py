"""Figures of experiments: plain numbers, which Dagster draws, tables, and plots that are small enough."""

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import dagster as dg

from kgs_core.errors import ConfigError
from kgs_core.lake.files.stored_path import AnyPath
from kgs_dagster import metadata

if TYPE_CHECKING:
    from kgs_core.simulation.charts import Chart
    from kgs_core.simulation.comparison import Summary
    from kgs_core.simulation.groups import SeedGroup
    from kgs_core.simulation.replay import Conditions
    from kgs_core.simulation.workload import Workload

MOST_ROWS = 1000
"""Of a table; all of it is in the Parquet file."""
MOST_INLINE_BYTES = 20_000
"""Of a plot: Dagster keeps every one that was ever recorded, twice."""
MOST_INLINE = 4
_DIGITS = 6
Metadata = dict[str, Any]
Row = Mapping[str, str | int | float | bool | None]


def of_load(load: "Workload", conditions: "Conditions", path: AnyPath) -> Metadata:
    """What a load is like, in consumers of capacity C."""
    fastest = max((speed for speeds in load.measurements for speed in speeds.values()), default=0.0)
    totals = [math.fsum(speeds.values()) / load.capacity for speeds in load.measurements]
    return {
        "measurements": len(load.measurements),
        "partitions": max(map(len, load.measurements), default=0),
        "mean_load": _rounded(fmean(totals or [0.0])),
        "max_load": _rounded(max(totals, default=0.0)),
        "max_partition_load": _rounded(fastest / load.capacity),
        "hours": len(load.measurements) * conditions.latency.interval_s / 3600,
        "is_recorded": load.spec is None,
        "path": dg.MetadataValue.path(str(path)),
    }


def of_run(summary: "Summary", path: AnyPath) -> Metadata:
    """The figures that an experiment run has by itself; CBS takes the other algorithms, too: see algorithm_summary."""
    from kgs_core.simulation.groups import FIGURES

    values = {name: figure(summary) for name, figure in FIGURES.items()}
    known = {name: _rounded(value) for name, value in values.items() if value is not None}
    return {"measurements": summary.measurements, **known, "path": dg.MetadataValue.path(str(path))}


def _rounded(value: float) -> float:
    return round(value, _DIGITS) if isinstance(value, float) else value


def run_text(summary: "Summary") -> str:
    """An experiment run in a line for the log."""
    late = f", p99 {summary.latency.p99_s:.2f} s" if summary.latency and summary.latency.p99_s is not None else ""
    return (
        f"{summary.name} on {summary.workload}: {summary.mean_consumers:.2f} consumers, "
        f"E[R] {summary.average_rscore:.2f}{late}"
    )


def group_rows(groups: "Sequence[SeedGroup]", names: Sequence[str]) -> list[Row]:
    """A row for each algorithm and load, means over seeds; what is not known is an empty cell, not 0."""
    from kgs_core.simulation.groups import FIGURES

    rows: list[Row] = []
    for group in groups:
        spreads = {name: group.spread(FIGURES[name]) for name in names}
        means = {name: _rounded(spread.mean) if spread else None for name, spread in spreads.items()}
        rows.append({"load": group.load, "algorithm": group.name, "seeds": len(group.runs), **means})
    return rows


def table(rows: Sequence[Row], columns: Mapping[str, str]) -> dg.TableMetadataValue:
    """The first rows as a table; `columns`: name -> type."""
    return metadata.table(rows[:MOST_ROWS], columns)


def columns_of(names: Sequence[str]) -> dict[str, str]:
    """Columns of `group_rows`."""
    return {"load": "string", "algorithm": "string", "seeds": "int", **dict.fromkeys(names, "float")}


def plots(panels: "Sequence[Chart]", save: Callable[[str], AnyPath]) -> Metadata:
    """The panels as a file that `save` writes, and inline as far as they are small enough."""
    from kgs_core.simulation.charts import svg

    if not panels:
        return {"plot": "nothing to draw: no algorithm has replayed a load"}
    try:
        file = save(svg(panels))
    except ConfigError as e:  # an image without the extra `plots`
        return {"plot": str(e)}
    found: Metadata = {}
    shown: list[str] = []
    rest = list(panels)
    while rest and len(shown) < MOST_INLINE:
        picture, count = _largest(rest)
        if not count:
            break
        shown.append(picture)
        rest = rest[count:]
    for number, picture in enumerate(shown):
        found["plot" if len(shown) == 1 else f"plot_{number + 1}"] = dg.MetadataValue.md(picture)
    found["plot_file"] = dg.MetadataValue.path(str(file))
    if rest:
        found["plots_left_out"] = f"{len(rest)} of {len(panels)} panels are in the file only"
    return found


def _largest(panels: "Sequence[Chart]") -> tuple[str, int]:
    """The picture with as many of the first panels, two abreast, as are small enough to be kept inline."""
    from kgs_core.simulation.charts import svg

    for count in [count for count in (6, 4, 2) if count <= len(panels) + 1] + [1]:
        picture = base64.b64encode(svg(panels[:count]).encode()).decode()
        markdown = f"![{panels[0].title}](data:image/svg+xml;base64,{picture})"
        if len(markdown) <= MOST_INLINE_BYTES:
            return markdown, min(count, len(panels))
    return "", 0
