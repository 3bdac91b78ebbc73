"""`ingest`: one consumer's speed, beside what one would use instead."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.commands.options import ABOVE_0, json_option, listed, names, write_json
from kgs_core.cli.terminal import output_console
from kgs_core.config.rule.value_formats import FORMATS
from kgs_core.errors import ConfigError

if TYPE_CHECKING:
    from bench.figures import BenchResult
    from bench.ingest import IngestPlan
    from bench.ingest_profile import ProfilePlan

_WIDTH_IN_LOG = 140
_FINISHES = ("arrow", "dataframe")


@click.command("ingest")
@click.option("--sizes", default="1,5,16,64", metavar="MB,MB", help="Batch sizes (batch_bytes).")
@click.option("--runs", type=click.IntRange(min=1), default=5, help="Passes of each, interleaved.")
@click.option("--topics", type=click.IntRange(1, 99), default=12, help="Topics, each with a table.")
@click.option("--partitions", type=click.IntRange(1, 100), default=4, help="Partitions of each topic.")
@click.option("--records-mb", type=ABOVE_0, default=200.0, help="MB consumed in one pass, uncompressed.")
@click.option("--processor", "processors", default="arrow,dataframe", help="Ours to measure.")
@click.option(
    "--peer/--no-peer",
    default=True,
    help="Structured Streaming with delta-spark, into one table and into one for each topic.",
)
@click.option(
    "--latency-records",
    type=click.IntRange(min=0),
    default=200,
    help="Single records of each processor; a peer gets a tenth, 20 at most.",
)
@click.option(
    "--warm-up",
    "warm_up_s",
    type=click.FloatRange(min=0),
    default=20.0,
    metavar="SECONDS",
    help="Batches of each process before its first pass; three times as long for a peer.",
)
@click.option(
    "--pass",
    "pass_s",
    type=ABOVE_0,
    default=15.0,
    metavar="SECONDS",
    help="A pass ends after so long even if it has not consumed --records-mb, but not before its third batch.",
)
@click.option(
    "--records",
    default="json-1000",
    metavar="KIND",
    help="Records of the backlog: json-1000, raw-1000 (the same, unparsed) or json-100; the number is their bytes.",
)
@click.option(
    "--profile", is_flag=True, help="Instead: processor time by stage, in one process and without Spark and commits."
)
@click.option(
    "--format",
    "formats",
    metavar="NAME,NAME",
    help="Instead: the same records in each of these formats of values, or in `all`; as --profile. A registry in "
    "memory has the schemas.",
)
@json_option
def bench_ingest(
    *, sizes: str, processors: str, profile: bool, formats: str | None, json_file: Path | None, **rest: Any
) -> None:
    """One consumer reading a backlog, and one record at a time: MB/s, CPU, memory, latency, start-up time.

    Both processors, and beside them Structured Streaming with delta-spark on the same machine in the same minutes, each
    in a process that stays and is warmed up first. Every figure is the median of the runs, with the least and the
    greatest. The peer's own environment is made in the cache directory at first use (500 MB).

    Takes about three quarters of an hour with the defaults, and 2 GB in the system's temporary directory. Figures mean
    something only while the machine does nothing else.
    """
    from bench.commands.report import bench_report
    from bench.ingest import IngestPlan
    from bench.ingest_profile import ProfilePlan

    if profile or formats is not None:
        if profile and formats is not None:
            raise ConfigError(["--profile and --format measure different records: give one of them"])
        wanted = None if formats is None else parse_formats(formats)
        counts = (rest[name] for name in ("runs", "topics", "partitions", "records_mb"))
        _profile(ProfilePlan(parse_sizes(sizes), *counts), wanted, json_file)
        return
    plan = IngestPlan(parse_sizes(sizes), processors=names("--processor", processors, _FINISHES), **rest)
    result = _run(plan)
    output_console(_WIDTH_IN_LOG).print(bench_report(result), highlight=False)
    write_json(json_file, result.to_dict())


def _profile(plan: "ProfilePlan", formats: Sequence[str] | None, json_file: Path | None) -> None:
    """Processor time of a consumer's rounds: by stage, or of several formats of values."""
    from bench.commands.report import formats_report, profile_report
    from bench.ingest_profile import formats_of_records, run_profile
    from bench.records import KINDS, kind_of_records

    def say(line: str) -> None:
        click.echo(line, err=True)

    if formats is None:
        found = run_profile(plan, [kind_of_records(name) for name in KINDS], say)
        output_console(_WIDTH_IN_LOG).print(profile_report(found), highlight=False)
    else:
        with formats_of_records(formats) as kinds:
            found = run_profile(plan, kinds, say)
        output_console(_WIDTH_IN_LOG).print(formats_report(found), highlight=False)
    write_json(json_file, found.to_dict())


def _run(plan: "IngestPlan") -> "BenchResult":
    """The benchmark, with a progress bar on stderr, or lines where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from bench.ingest import run_ingest_bench

    errors = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("starting", total=plan.steps)

        def say(text: str) -> None:
            progress.update(task, description=text)
            if not errors.is_terminal:
                click.echo(text, err=True)

        return run_ingest_bench(plan, say, lambda done, total: progress.update(task, completed=done, total=total))


def parse_sizes(text: str) -> tuple[float, ...]:
    """`1,5,16` as batch sizes in MB, ascending.

    Raises:
        ConfigError: names each that is not a number from 0.001 to 1000.
    """

    def read(part: str) -> float | None:
        try:
            return float(part) if 0.001 <= float(part) <= 1000 else None  # noqa: PLR2004 - what batch_bytes takes
        except ValueError:
            return None

    return tuple(sorted(set(listed("--sizes", text, read, "write MB from 0.001 to 1000, with commas between"))))


def parse_formats(text: str) -> tuple[str, ...]:
    """`raw,avro` as names of formats of values; `all` is every one.

    Raises:
        ConfigError: names each that there is not.
    """
    if text.strip() == "all":
        return tuple(FORMATS)
    return names("--format", text, tuple(FORMATS), f"write {', '.join(FORMATS)}, several with commas, or all")
