"""`bench topics`: what many small topics cost one consumer."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.commands.options import ABOVE_0, json_option, write_json
from kgs_core.cli.terminal import output_console, plain_table

if TYPE_CHECKING:
    from bench.many_topics import TopicsResult

_WIDTH_IN_LOG = 100
_NOT_MEASURED = "-"


@click.command("topics")
@click.option("--topics", type=click.IntRange(1, 5000), default=500, help="Of one partition each.")
@click.option("--seconds", type=ABOVE_0, default=120.0, help="For how long at most.")
@click.option("--rounds", type=click.IntRange(min=1), default=20, help="Rounds to measure.")
@click.option("--records-per-s", type=ABOVE_0, default=1.0, help="Written to each topic.")
@click.option(
    "--busy-mb-per-s",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Written to the first topic besides, so that batches are full before --wait-time.",
)
@click.option(
    "--lake-delay-ms",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Added to each call of a table, which is several requests to a store.",
)
@click.option("--hung", type=click.IntRange(min=0), default=0, help="Topics whose tables hang.")
@click.option("--wait-time", "wait_time_s", type=ABOVE_0, default=1.0, help="wait_time_s.")
@click.option("--batch-timeout", "batch_timeout_s", type=ABOVE_0, default=20.0, metavar="SECONDS")
@json_option
def bench_topics(*, lake_delay_ms: float, hung: int, json_file: Path | None, **rest: Any) -> None:
    """One consumer of many small topics, from its start: seconds to the first rows, to the last topic's, and per round.

    Starts a broker of its own. The longest step is what the watchdog goes by: a consumer whose round takes longer than
    --batch-timeout would be ended.
    """
    from bench.many_topics import TopicsPlan, run_topics_bench

    plan = TopicsPlan(lake_delay_s=lake_delay_ms / 1e3, hung=min(hung, rest["topics"]), **rest)
    with tempfile.TemporaryDirectory(prefix="kgs-bench-") as folder:
        result = run_topics_bench(plan, Path(folder), lambda line: click.echo(line, err=True))
    print_result(result)
    write_json(json_file, result.to_dict())


def print_result(result: "TopicsResult") -> None:
    """As a table."""
    from bench.many_topics import median

    plan = result.plan
    table = plain_table("what", "seconds", left=("what",))
    rows: Sequence[tuple[str, float | None]] = (
        ("first rows committed", result.first_rows_s),
        (f"all {plan.topics - plan.hung} topics open", result.all_open_s),
        ("rows of each committed", result.all_read_s),
        (f"longest step (ended at {plan.batch_timeout_s:g})", result.longest_step_s),
        (f"round, median of {len(result.rounds_s)}", median(result.rounds_s)),
        ("round, longest", max(result.rounds_s, default=None)),
        ("of it fetching, median", median(result.fetch_s)),
        ("of it writing files, median", median(result.write_s)),
        ("of it committing, median", median(result.commit_s)),
        ("CPU of a file, without its writing", result.cpu_s_per_file),
    )
    for what, seconds in rows:
        table.add_row(what, _NOT_MEASURED if seconds is None else f"{seconds:.3f}")
    files = _NOT_MEASURED if result.files_per_h is None else f"{result.files_per_h:,.0f}"
    output_console(_WIDTH_IN_LOG).print(table)
    click.echo(f"{files} files per hour, at most {result.most_files_per_h:,.0f} by these settings")
