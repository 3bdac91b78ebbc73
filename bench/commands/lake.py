"""`bench lake`: how many commits one table takes, and what each costs."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.commands.options import json_option, names, numbers, write_json
from kgs_core.cli.terminal import output_console, plain_table

if TYPE_CHECKING:
    from bench.lake_commits import LakeRow
    from kgs_core.lake.delta.pace import CommitWay

_WIDTH_IN_LOG = 180
_UNKNOWN = "-"
_STORES = ("disk", "fsync", "s3", "azure", "gcs")
_COMMITS: "tuple[CommitWay, ...]" = ("direct", "combined", "auto")
_MOST_WRITERS = 1000


@click.command("lake")
@click.option("--writers", default="1,16,64", metavar="N,N", help="Writers on one table.")
@click.option("--partitions", type=click.IntRange(1, 10_000), default=1, help="Of each writer.")
@click.option(
    "--store", default="disk,s3", help="Of disk, fsync (a disk with lake.fsync); s3, azure, gcs: servers of them here."
)
@click.option("--delay-ms", type=click.FloatRange(0, 10_000), default=30.0, help="Added to each request to a server.")
@click.option("--seconds", type=click.FloatRange(1, 3600), default=30.0, help="Of each run.")
@click.option("--commit", default="direct,combined", help="How: direct, combined, auto (as consumers do).")
@json_option
def bench_lake(  # noqa: PLR0913 - one per option
    *, writers: str, partitions: int, store: str, delay_ms: float, seconds: float, commit: str, json_file: Path | None
) -> None:
    """Let writers commit to one table, back to back, each to partitions of its own, and check every row afterwards.

    Tables lie in a new folder of the system's temporary directory, and on servers of the bench's own (versitygw,
    Azurite, fake-gcs-server) behind a proxy that holds each request back. Lost and doubled rows are told from the
    table's log and files. Also shows what a position (group, topic, partition) takes in the log, and the largest log
    entry and checkpoint.
    """
    from bench.lake_commits import LakePlan, run_lake_bench

    plan = LakePlan(
        stores=names("--store", store, _STORES),
        writers=tuple(dict.fromkeys(numbers("--writers", writers, _MOST_WRITERS))),
        partitions=partitions,
        delay_s=delay_ms / 1000,
        seconds=seconds,
        commits=names("--commit", commit, _COMMITS),
    )
    rows = run_lake_bench(plan, lambda text: click.echo(text, err=True))
    _print(rows)
    write_json(json_file, {"delay_ms": delay_ms, "seconds": seconds, "rows": [asdict(row) for row in rows]})


def _print(rows: "list[LakeRow]") -> None:
    columns = ("writers", "partitions", "commits/s", "p50 s", "p99 s", "least", "most", "requests", "lost", "doubled")
    sizes = ("B a position", "kB an entry", "kB a checkpoint")
    table = plain_table("store", "commit", *columns, *sizes, left=("store", "commit"), no_wrap=True)
    for row in rows:
        table.add_row(
            row.store,
            row.commit,
            str(row.writers),
            str(row.partitions),
            f"{row.commits_per_s:.1f}",
            *(_UNKNOWN if s is None else f"{s:.3f}" for s in (row.p50_s, row.p99_s)),
            str(row.least),
            str(row.most),
            _UNKNOWN if row.requests_per_commit is None else f"{row.requests_per_commit:.1f}",
            str(row.lost),
            str(row.doubled),
            f"{row.position_bytes:.0f}",
            f"{row.entry_bytes / 1000:.1f}",
            _UNKNOWN if row.checkpoint_bytes is None else f"{row.checkpoint_bytes / 1000:.1f}",
        )
    output_console(_WIDTH_IN_LOG).print(table)
