"""Charts of bills: who ran when beside what other ways would have had, and the days of a month."""

from collections.abc import Mapping
from typing import Any

from kgs_core.reporting.usage import running_at
from kgs_core.simulation.bill import Bill
from kgs_core.simulation.charts import Chart, Point

_MAX_POINTS = 300
_HOUR_MS = 3_600_000


def bill_charts(bill: Bill) -> list[Chart]:
    """Consumers over time, and consumer-hours beside p99 latency; nothing where there is no load to compare with."""
    if bill.recording is None:
        return []
    return [_consumers(bill), _hours(bill)]


def month_chart(month: str, days: Mapping[int, Mapping[str, Any] | None]) -> Chart:
    """Consumer-hours of each day; each is a mark, and one of which nothing is known has none.

    Args:
        month: as 2026-11.
        days: day of the month -> its bill as `Bill.to_dict` gives it; None: there is none.
    """
    names = dict.fromkeys(name for bill in days.values() for name in day_hours(bill))
    lines = {name: _line({day: day_hours(bill).get(name) for day, bill in days.items()}) for name in names}
    lines = {name: line for name, line in lines.items() if line}
    return Chart(f"{month}: consumer hours", "day", "consumer hours", lines=lines, x_from_zero=False, marked=True)


def day_hours(bill: Mapping[str, Any] | None) -> dict[str, float | None]:
    """Consumer-hours of a day by name, `used` first: all that was used, not only where it is compared."""
    if bill is None:
        return {}
    rows = {row["name"]: row["consumer_hours"] for row in bill["compared"] if row["name"] != "used"}
    return {"used": bill["used_consumer_hours"], **rows}


def _consumers(bill: Bill) -> Chart:
    measurements = bill.recording.measurements if bill.recording else ()
    every = -(-len(measurements) // _MAX_POINTS)
    picked = range(0, len(measurements), every)
    begin_ms = bill.period.since_ms
    hours = [(round(measurements[at].time * 1000) - begin_ms) / _HOUR_MS for at in picked]
    lines: dict[str, list[Point]] = {}
    if bill.usage is not None:
        moments = [round(measurements[at].time * 1000) for at in picked]
        lines["used"] = [(h, float(running_at(bill.usage.lives, ms))) for h, ms in zip(hours, moments, strict=True)]
    for cost in bill.costs:
        lines[cost.name] = [(h, float(cost.consumers[at])) for h, at in zip(hours, picked, strict=True)]
    lines["least"] = [(h, float(bill.costs[0].least[at])) for h, at in zip(hours, picked, strict=True)]
    return Chart(f"{bill.group}: consumers", "hours since the beginning", "consumers", lines=lines)


def _hours(bill: Bill) -> Chart:
    used, least = bill.used_hours_compared, bill.least_hours
    mark = (used, "used") if used is not None else (least, "least") if least is not None else None
    return Chart(
        f"{bill.group}: the bill",
        "consumer hours",
        "p99 latency, s",
        dots={cost.name: (cost.summary.consumer_hours, cost.p99_s) for cost in bill.costs},
        mark=mark,
        x_from_zero=False,
        scale="log y",
    )


def _line(days: Mapping[int, float | None]) -> list[Point]:
    return [(float(day), float(hours)) for day, hours in days.items() if hours is not None]
