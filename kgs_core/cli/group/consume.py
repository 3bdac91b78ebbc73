"""`kgs consume`: one PySpark consumer."""

import logging
from pathlib import Path

import click

from kgs_core.api.configuration import settings_of
from kgs_core.cli.options import config_option
from kgs_core.config import Settings
from kgs_core.errors import ConfigError, PortError
from kgs_core.group.membership.share import NamedPartitions, Share, parse_partitions, parse_share
from kgs_core.model import ConsumerId

_log = logging.getLogger(__name__)


@click.command()
@config_option
@click.option("--id", "consumer", type=click.IntRange(min=1), required=True, help="Number of this consumer, from 1.")
@click.option("--partitions", help="What to read: topic:0-3,other:5,third:* (all, also those that appear later).")
@click.option("--share", help="Or: 1/2 for the first of two equal shares of every topic that the configuration names.")
@click.option(
    "--status",
    "status_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="JSON file, replaced every second: partitions, bytes/s, what is stopped and why.",
)
@click.option(
    "--end-with",
    type=click.IntRange(min=1),
    metavar="PID",
    help="End as on SIGTERM when the process PID of this machine is gone.",
)
def consume(
    config_file: Path,
    consumer: int,
    partitions: str | None,
    share: str | None,
    status_file: Path | None,
    end_with: int | None,
) -> None:
    """Read partitions into the lake, exactly once, until interrupted: the controller's choice, or a fixed share.

    Without --partitions and --share it joins the group: it owns what the controller gives it, hands over what the
    controller takes away, and reads on while no controller runs.

    Positions come from the lake alone, so the command may be killed at any moment and started again, even twice at
    once: nothing is committed a second time. SIGTERM and Ctrl-C end it after the batch in flight.
    """
    if partitions is not None and share is not None:
        raise ConfigError(["kgs consume: give either --partitions or --share, or neither to join the group"])
    fixed: Share | None = None if share is None else parse_share(share)
    if partitions is not None:
        fixed = parse_partitions(partitions)
    settings = settings_of(config_file)
    from kgs_core.system.process_identity import end_with_process
    from kgs_core.system.shutdown import stop_on_signals
    from kgs_core.system.transform_folder import use_folder_of

    use_folder_of(config_file, settings)
    if isinstance(fixed, NamedPartitions):
        _warn_of_missing(settings, fixed)
    with stop_on_signals() as stop:
        if end_with is not None:
            end_with_process(end_with, stop)
        if fixed is None:
            from kgs_core.runtime.group_consumer import GroupConsumer

            GroupConsumer(settings, ConsumerId(consumer), status_file).run(stop)
        else:
            from kgs_core.runtime.static_consumer import StaticConsumer

            StaticConsumer(settings, ConsumerId(consumer), fixed, status_file).run(stop)


def _warn_of_missing(settings: Settings, named: NamedPartitions) -> None:
    """It is no mistake: they may be created later, and are read then."""
    from kgs_core.kafka.admin import admin_of

    try:
        found = admin_of(settings).describe({topic for topic, _, _ in named.ranges})
    except PortError:
        return  # the consumer itself asks again, and says why it gets no answer
    for line in named.missing({topic: description.partitions for topic, description in found.items()}):
        _log.warning("--partitions: %s; read once it is", line)
