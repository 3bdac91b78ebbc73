"""A picture of the dashboard's panels over a time, from any Prometheus that has the series, without Grafana.

python bench/draw_dashboard.py --prometheus http://127.0.0.1:9090 --group flights-demo --minutes 60 dashboard.png
"""

import argparse
import json
import math
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgs_core.simulation.charts import Chart, picture
from ops.make_dashboard import PANELS

_POINTS = 240
_LABEL = re.compile(r"{{(\w+)}}")
_UNITS = {"Bps": ("MB/s", 1e6), "s": ("s", 1.0), "short": ("", 1.0)}


def charts(ask: Any, group: str, start_s: float, end_s: float, rows: Sequence[str] = ()) -> list[Chart]:
    """A chart for each panel that has series, in the dashboard's order; x is minutes since the start.

    Args:
        ask: takes an expression, seconds since 1970 from and to, and a step in seconds; returns the series of a range
            query: [{"metric": {label: value}, "values": [[seconds, text]]}].
        start_s: seconds since 1970.
        rows: of the dashboard, by their titles; none: all.
    """
    step_s = max(1.0, (end_s - start_s) / _POINTS)
    found = []
    for row, title, unit, queries in PANELS:
        if rows and row not in rows:
            continue
        name, divisor = _UNITS[unit]
        lines: dict[str, list[tuple[float, float]]] = {}
        for legend, expression in queries.items():
            # Grafana's least window: four scrapes
            text = expression.replace("$group", group).replace("$__rate_interval", f"{max(15, round(4 * step_s))}s")
            for series in ask(text, start_s, end_s, step_s):
                label = _filled(legend, series["metric"])
                known = [(at, float(value) / divisor) for at, value in series["values"] if value != "NaN"]
                lines[label] = [((at - start_s) / 60, value) for at, value in _with_gaps(known, step_s)]
        if lines:
            found.append(Chart(title, "minutes", name, lines=dict(sorted(lines.items()))))
    return found


def _filled(legend: str, metric: Mapping[str, str]) -> str:
    return _LABEL.sub(lambda match: metric.get(match[1], ""), legend)


def _with_gaps(points: Sequence[tuple[float, float]], step_s: float) -> Iterator[tuple[float, float]]:
    """With a point that is no number where there were none: a line through it would say what nobody knows."""
    for n, (at, value) in enumerate(points):
        if n and at - points[n - 1][0] > 1.5 * step_s:
            yield at - step_s, math.nan
        yield at, value


def ask_prometheus(address: str) -> Any:
    """What `charts` asks, of a Prometheus at this address."""

    def ask(expression: str, start_s: float, end_s: float, step_s: float) -> Iterator[dict[str, Any]]:
        text = urllib.parse.urlencode({"query": expression, "start": start_s, "end": end_s, "step": step_s})
        url = f"{address}/api/v1/query_range?{text}"
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - the user's own address
            yield from json.load(answer)["data"]["result"]

    return ask


def main() -> None:
    """The picture, written to a file."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--prometheus", default="http://127.0.0.1:9090", help="its address")
    options.add_argument("--group", default="flights-demo", help="the group; that of `kgs demo`")
    options.add_argument("--minutes", type=float, default=60.0, help="until now")
    every = list(dict.fromkeys(row for row, *_ in PANELS))
    options.add_argument("--row", action="append", choices=every, default=[], help="this one only; may be repeated")
    options.add_argument("file", type=Path, help="to be written: .png or .svg")
    given = options.parse_args()
    now = time.time()
    drawn = charts(ask_prometheus(given.prometheus), given.group, now - 60 * given.minutes, now, given.row)
    if not drawn:
        options.error(f"--group: {given.group}: {given.prometheus} has no series of it in these minutes")
    given.file.write_bytes(picture(drawn, "svg" if given.file.suffix == ".svg" else "png"))


if __name__ == "__main__":
    main()
