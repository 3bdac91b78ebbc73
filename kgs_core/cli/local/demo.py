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
    help="End so many seconds after the first row, audit, and report what was lost or doubled; fails without a row "
    "within 300 s. Default: run until interrupted.",
)
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="New or empty folder for everything; it is kept. Default: a temporary one, removed after success.",
)
@click.option(
    "--time-factor",
    type=_ABOVE_0,
    default=432.0,
    help="Simulated seconds per second. 432 lets a day pass in 200 s; 864 doubles the load.",
)
@click.option("--keep", is_flag=True, help="Keep the temporary directory.")
@click.option("--bare", is_flag=True, help="Without Dagster: `kgs control` runs the group.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Start only the load, for the group of this kgs.yaml, which Dagster or `kgs control` already runs, on its "
    "Kafka and lake, as in a cluster (k8s/README.md). Topics flights.* must be new or empty.",
)
def demo(**options: Any) -> None:
    """Replay flights through Kafka into Delta tables, exactly once.

    Starts a real Kafka broker, the load generator and Dagster, whose sensor starts as many PySpark consumers as the
    load needs: more towards noon, one at night. Prints the address of Dagster's UI, and shows consumers, partitions,
    MB/s, lag, the last change and its Rscore, and the rows of each table. Nothing is left running at the end. Kill a
    consumer with kill -9 from another terminal, or terminate its run in the UI: it is restarted, and nothing is lost or
    doubled.

    Ctrl-C ends it. With --seconds it ends by itself, with exit status 0 only if every record has arrived exactly once.
    If a process dies and cannot be restarted, the demo prints its last lines and ends with exit status 1.
    """
    from kgs_core.demo.display import open_console
    from kgs_core.demo.run import DemoOptions, run_demo

    logging.getLogger("kgs_core").setLevel(logging.WARNING)  # what goes well is told by the table
    for number in (signal.SIGTERM, signal.SIGINT):  # a service manager's stop is a Ctrl-C too; a shell's `&` ignores it
        signal.signal(number, signal.default_int_handler)
    sys.exit(run_demo(DemoOptions(**options), open_console()))
