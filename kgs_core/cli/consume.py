"""`kgs consume`: one PySpark consumer."""

import os
from pathlib import Path

import click

from kgs_core.cli.options import config_option
from kgs_core.config.file import load_settings
from kgs_core.consumer.share import parse_partitions, parse_share
from kgs_core.errors import ConfigError
from kgs_core.model import ConsumerId


@click.command()
@config_option
@click.option("--id", "consumer", type=click.IntRange(min=1), required=True, help="Number of this consumer, from 1.")
@click.option("--partitions", help="What to read: topic:0-3,other:5,third:* (all, also those that appear later).")
@click.option("--share", help="Or: 1/2 for the first of two equal shares of every topic that the configuration names.")
@click.option(
    "--status",
    "status_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="JSON file, replaced every second: partitions, bytes/s, what stands still and why.",
)
def consume(
    config_file: Path, consumer: int, partitions: str | None, share: str | None, status_file: Path | None
) -> None:
    """Read a fixed share of partitions into the lake, exactly once, until interrupted.

    Positions come from the lake alone, so the command can be killed at any moment and started again, also twice at
    once: what another consumer has committed is never committed again. SIGTERM and Ctrl-C end it after the batch in
    hand.
    """
    if (partitions is None) == (share is None):
        raise ConfigError(["kgs consume: give either --partitions or --share"])
    chosen = parse_partitions(partitions) if partitions is not None else parse_share(str(share))
    settings = load_settings(config_file, os.environ)
    from kgs_core.adapters.consumer_process import StaticConsumer
    from kgs_core.adapters.stop_flag import stop_on_signals

    with stop_on_signals() as stop:
        StaticConsumer(settings, ConsumerId(consumer), chosen, status_file).run(stop)
