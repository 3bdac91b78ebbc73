"""`kgs consume`: one PySpark consumer."""

from pathlib import Path

import click

from kgs_core.api.configuration import settings_of
from kgs_core.cli.options import config_option
from kgs_core.group.membership.share import parse_share
from kgs_core.model import ConsumerId


@click.command()
@config_option
@click.option("--id", "consumer", type=click.IntRange(min=1), required=True, help="Number of this consumer, from 1.")
@click.option(
    "--share", help="Read without a controller: 1/2 for the first of two equal shares of every configured topic."
)
@click.option(
    "--status",
    "status_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="JSON file, replaced every second: partitions, bytes/s, stopped partitions with reasons.",
)
@click.option(
    "--end-with",
    type=click.IntRange(min=1),
    metavar="PID",
    help="End, as on SIGTERM, when process PID on this machine is gone.",
)
def consume(
    config_file: Path,
    consumer: int,
    share: str | None,
    status_file: Path | None,
    end_with: int | None,
) -> None:
    """Read partitions into the lake, exactly once, until interrupted: those the controller assigns, or a fixed share.

    Without --share the consumer joins the group: it owns the partitions that the controller assigns, hands over those
    that the controller revokes, and keeps reading while no controller runs.

    Positions come from the lake alone: you may kill the command at any moment and restart it, even twice at once, and
    nothing is committed a second time. SIGTERM and Ctrl-C end it after the batch in flight.
    """
    fixed = None if share is None else parse_share(share)
    settings = settings_of(config_file)
    from kgs_core.system.process_identity import end_with_process
    from kgs_core.system.shutdown import stop_on_signals
    from kgs_core.system.transform_folder import use_folder_of

    use_folder_of(config_file, settings)
    with stop_on_signals() as stop:
        if end_with is not None:
            end_with_process(end_with, stop)
        if fixed is None:
            from kgs_core.runtime.group_consumer import GroupConsumer

            GroupConsumer(settings, ConsumerId(consumer), status_file).run(stop)
        else:
            from kgs_core.runtime.static_consumer import StaticConsumer

            StaticConsumer(settings, ConsumerId(consumer), fixed, status_file).run(stop)
