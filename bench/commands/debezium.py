"""`bench debezium`: tables that follow a PostgreSQL, beside the database itself."""

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.commands.options import json_option, names, write_json
from kgs_core.errors import PermanentError

if TYPE_CHECKING:
    from bench.debezium.run import Settled

_FAULTS = "none,consumer,debezium,postgres,broker,control,column,snapshot,truncate"


@click.command("debezium", short_help="Lag and equality of tables of newest rows that follow a PostgreSQL by Debezium.")
@click.option("--faults", default=_FAULTS, metavar="NAME,NAME", help="One round each, in this order.")
@click.option("--seconds", type=click.FloatRange(2, 3600), default=20.0, help="Of work in a round.")
@click.option("--rate", type=click.FloatRange(1, 5000), default=200.0, help="Changes per second, at most.")
@click.option("--rows", type=click.IntRange(10, 10_000_000), default=1000, help="Customers at the start.")
@click.option("--seed", type=int, default=1, help="Of the workload.")
@json_option
def bench_debezium(*, faults: str, seconds: float, rate: float, rows: int, seed: int, json_file: Path | None) -> None:
    """Run PostgreSQL, Debezium in Kafka Connect, a broker and a group on this machine, and compare tables.

    Each round: random transactions (long ones, rolled back ones, changed keys, deletes, values stored out of line), in
    the middle something is killed and started again, or a column is added, all is sent anew, a table is emptied. Then
    the workload rests, until `SELECT * FROM t` and the derived table are equal. Exit status 1: they never were.
    """
    from bench.debezium.follower import Follower
    from bench.debezium.run import FAULTS, run_rounds

    wanted = names("--faults", faults, tuple(FAULTS))
    with tempfile.TemporaryDirectory() as folder, Follower(Path(folder), seed=seed, rows=rows, per_s=rate) as follower:
        found = run_rounds(follower, wanted, seconds, 300.0, _show)
    write_json(json_file, [asdict(each) for each in found])
    if found[-1].settle_s is None:
        raise PermanentError("bench debezium: not equal: " + "; ".join(found[-1].differences))


def _show(found: "Settled") -> None:
    lag = "lag ?" if found.lag_s is None else f"lag {found.lag_s[1]:.1f} s, at most {found.lag_s[0]:.1f}"
    outcome = "NOT EQUAL" if found.settle_s is None else f"equal after {found.settle_s:.1f} s"
    click.echo(
        f"{found.fault:9} {found.changes:7,} changes, {found.per_s:6.1f}/s, {found.rows:,} rows, {lag}: {outcome}"
    )
