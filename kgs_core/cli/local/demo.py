"""`kgs demo`: everything on one machine, from nothing to a proof."""

import logging
import signal
import sys
from pathlib import Path
from typing import Any

import click

_ABOVE_0 = click.FloatRange(min=0, min_open=True)


@click.command()
@click.option(
    "--seconds",
    type=_ABOVE_0,
    help="Stop so many seconds after the first row has arrived, audit, and say what was lost or doubled; without a row "
    "within 300 s it fails. Default: when interrupted.",
)
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where everything is kept; new or empty; stays. Default: a temporary one, removed after a success.",
)
@click.option(
    "--time-factor",
    type=_ABOVE_0,
    default=432.0,
    help="Simulated seconds per second. 432 lets a day pass in 200 s; 864 doubles the load.",
)
@click.option("--keep", is_flag=True, help="Keep the temporary directory.")
@click.option("--bare", is_flag=True, help="Without Dagster: one `kgs control` looks after the group.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Start only the load: for the group of this kgs.yaml, which Dagster or `kgs control` looks after already, on "
    "its Kafka and its lake, as in a cluster (k8s/README.md). Topics flights.* must be new or empty.",
)
def demo(**options: Any) -> None:
    """Replay a year of flights through Kafka into Delta tables, exactly once.

    Starts a real Kafka broker, the load generator and Dagster, whose sensor starts as many PySpark consumers as the
    load needs: more towards noon, one at night. Says where Dagster's UI is, and shows what happens: consumers,
    partitions, MB/s, lag, the last change and its Rscore, rows in each table. Nothing needs to run before, nothing is
    left running. Kill a consumer with kill -9 from another terminal, or terminate its run in the UI, and watch: it
    comes again, and nothing is lost or doubled.

    Ctrl-C ends it. With --seconds it ends by itself; its exit status is then 0 only if every record has arrived exactly
    once. A process that dies and cannot be started again also ends it, with its last words and exit status 1.
    """
    from kgs_core.demo.display import open_console
    from kgs_core.demo.run import DemoOptions, run_demo

    logging.getLogger("kgs_core").setLevel(logging.WARNING)  # what goes well is told by the table
    for number in (signal.SIGTERM, signal.SIGINT):  # a service manager's stop is a Ctrl-C too; a shell's `&` ignores it
        signal.signal(number, signal.default_int_handler)
    sys.exit(run_demo(DemoOptions(**options), open_console()))
