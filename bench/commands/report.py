"""Report of `bench ingest`: tables of medians with their range."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.figures import MB, BenchResult, Pass, Spread, significant, spread
from bench.ingest_profile import STAGES, ProfileResult
from kgs_core.cli.terminal import plain_table

TITLES: Mapping[str, str] = {
    "mb_per_s": "MB/s",
    "records_per_s": "records/s",
    "batch_ms": "ms/batch",
    "cpu_s_per_gb": "CPU s/GB",
    "driver_mb": "driver MB",
    "jvm_mb": "JVM MB",
    "worker_mb": "workers MB",
}
"""Figure -> column, in this order. MB = 10^6 bytes."""


def bench_report(result: BenchResult) -> RenderableType:
    """Machine, throughput, where the time went, ratios, latency, start-up; what was not measured is left out."""
    parts: list[tuple[str, Table]] = []
    if result.passes:
        runs = len({p.run for p in result.passes})
        parts.append((f"From a backlog: median (least-greatest), runs: {runs}", _throughput(result)))
        parts.append(("Where a batch's time goes: ms, median of the runs", _phases(result)))
    if ratios := result.ratios():
        parts.append(("How many times faster the arrow processor is: MB/s over MB/s of the same run", _ratios(ratios)))
    if result.latencies:
        parts.append(("One record, produced -> committed, idle: ms", _latencies(result)))
    if result.starts:
        parts.append(("Start-up, one after the other: seconds", _starts(result)))
    shown = (item for title, table in parts for item in (Text(), Text(title, style="bold"), table))
    return Group(_machine(result.machine), *shown)


def profile_report(result: ProfileResult) -> RenderableType:
    """Processor time by stage, s per 10^9 bytes consumed, median of the runs; the total with its range."""
    table = _table("records", "batch", "total", *STAGES, "MB/s")
    by_row = attrgetter("kind", "batch_mb")
    for (kind, batch_mb), found in groupby(sorted(result.runs, key=by_row), by_row):
        runs = list(found)
        stages = (spread(run.stages[stage] for run in runs) for stage in STAGES)
        shown = (f"{each.median:.2f}" for each in stages)
        total, speed = spread(run.total for run in runs), spread(run.mb_per_s for run in runs)
        table.add_row(kind, f"{batch_mb:g} MB", total.text(), *shown, significant(speed.median, 3))
    return Group(_machine(result.machine), Text(), Text("CPU s/GB by stage, without Spark", style="bold"), table)


def formats_report(result: ProfileResult) -> RenderableType:
    """A line for each format and size, median of the runs; CPU s/GB with its range."""
    table = _table("format", "batch", "B/record", "MB/s", "records/s", "CPU s/GB", "of it parse", "CPU s/10^6 records")
    by_row = attrgetter("kind", "batch_mb")
    for (kind, batch_mb), found in groupby(sorted(result.runs, key=by_row), by_row):
        runs = list(found)
        size, parse, speed = (
            spread(each).median
            for each in zip(*((run.record_bytes, run.stages["parse"], run.mb_per_s) for run in runs), strict=True)
        )
        total = spread(run.total for run in runs)
        cpu = (total.text(), f"{parse:.2f}", f"{total.median * size / 1e3:.2f}")
        speeds = (significant(each, 3) for each in (speed, speed * MB / size))
        table.add_row(kind, f"{batch_mb:g} MB", f"{size:.0f}", *speeds, *cpu)
    words = "The same records in each format, without Spark and commits; Structured Streaming's from_avro and "
    words += "from_protobuf are not measured"
    return Group(_machine(result.machine), Text(), Text(words, style="bold"), table)


def _machine(machine: Mapping[str, Any]) -> Text:
    return Text(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in machine.items()))


def _spreads(passes: Sequence[Pass]) -> dict[str, Spread]:
    each = [p.figures() for p in passes]
    return {name: spread(f[name] for f in each) for name in each[0] if all(name in f for f in each)}


def _throughput(result: BenchResult) -> Table:
    table = _table("batch", "variant", *TITLES.values())
    for (batch_mb, variant), passes in result.groups().items():
        found = _spreads(passes)
        table.add_row(f"{batch_mb:g} MB", variant, *(found[name].text() for name in TITLES))
    return table


def _phases(result: BenchResult) -> Table:
    """A column of text: the variants have different phases."""
    table = _table("batch", "variant", "phases")
    table.columns[2].justify = "left"
    table.columns[2].no_wrap = False
    for (batch_mb, variant), passes in result.groups().items():
        phases = {
            name.removeprefix("phase_").removesuffix("_ms"): found.median
            for name, found in _spreads(passes).items()
            if name.startswith("phase_")
        }
        shown = ", ".join(f"{name} {significant(ms, 2)}" for name, ms in phases.items() if ms)
        table.add_row(f"{batch_mb:g} MB", variant, shown)
    return table


def _ratios(ratios: Sequence[Mapping[str, Any]]) -> Table:
    others = list(dict.fromkeys(ratio["to"] for ratio in ratios))
    table = _table("batch", *(f"than {other}" for other in others))
    for batch_mb, group in groupby(ratios, key=lambda ratio: ratio["batch_mb"]):
        found = {ratio["to"]: ratio["times"] for ratio in group}
        table.add_row(f"{batch_mb:g} MB", *(found[other].text() if other in found else "" for other in others))
    return table


def _latencies(result: BenchResult) -> Table:
    table = _table("variant", "records", "p50", "p99", "least", "most")
    for latency in result.latencies:
        found = latency.to_dict()
        figures = (significant(found[name], 3) for name in ("p50_ms", "p99_ms", "min_ms", "max_ms"))
        table.add_row(latency.variant, str(found["records"]), *figures)
    return table


def _starts(result: BenchResult) -> Table:
    table = _table("variant", "Spark session", "first commit")
    for start in result.starts:
        table.add_row(start.variant, f"{start.session_s:.1f}", f"{start.first_commit_s:.1f}")
    return table


def _table(*columns: str) -> Table:
    return plain_table(*columns, left=("batch", "variant", "records"), no_wrap=True)
