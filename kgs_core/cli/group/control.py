"""`kgs control`: the controller of one group, with consumers on this machine or in a cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from kgs_core.api.configuration import settings_of
from kgs_core.cli.options import config_option
from kgs_core.config import Settings
from kgs_core.errors import ConfigError, TransientError
from kgs_core.fleet.fleets import FLEETS


@click.command()
@config_option
@click.option(
    "--log-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Folder for the consumers' logs, consumer-N.log; created if missing.  [default: logs beside the "
    "configuration]",
)
@click.option(
    "--fleet",
    metavar="NAME",
    help=f"Where consumers run: {', '.join(FLEETS)}.  [default: `fleet` of the configuration]",
)
@click.option(
    "--end-consumers",
    is_flag=True,
    help="On SIGTERM or Ctrl-C, also drain and end all consumers; a second signal kills them.",
)
@click.option(
    "--end-now",
    is_flag=True,
    help="Start no controller; only end the consumers, as --end-consumers does. A running controller would start them "
    "again, unless `kgs stop` came before.",
)
@click.option(
    "--end-with",
    type=click.IntRange(min=1),
    metavar="PID",
    help="End, with all consumers that this controller started, when process PID on this machine is gone.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Also serve the group's metrics, as `kgs metrics` does; 0: a free port.  [default: no]",
)
@click.option("--metrics-address", default="127.0.0.1", help="Address to listen on; 0.0.0.0: all.")
def control(  # noqa: PLR0913 - one per option
    *,
    config_file: Path,
    log_dir: Path | None,
    fleet: str | None,
    end_consumers: bool,
    end_now: bool,
    end_with: int | None,
    metrics_port: int | None,
    metrics_address: str,
) -> None:
    """Run the group's controller: measure the load, pack, start and end consumers, hand partitions over.

    Needs only Kafka: creates missing topics of the group, publishes measurements as `kgs monitor` does, and keeps no
    file. You may kill it at any moment: consumers keep reading, and the next controller finds them. `kgs status` shows
    the group; `kgs pause`, `resume`, `stop` and `replace` control it.

    If a group has several controllers, the newest one counts: an older one ends with exit status 3 and must not be
    restarted. SIGTERM and Ctrl-C end the controller alone; the consumers keep reading until `--end-now` ends them.
    """
    settings = settings_of(config_file)
    chosen = settings.fleet if fleet is None else fleet
    if chosen not in FLEETS:
        where = "--fleet" if fleet is not None else f"{config_file}: fleet"
        raise ConfigError([f"{where}: '{chosen}': write {', '.join(FLEETS)}"])
    from kgs_core.fleet.controller_fleet import FleetOptions
    from kgs_core.runtime.local_controller import look_after
    from kgs_core.system.process_identity import end_with_process
    from kgs_core.system.shutdown import stop_on_signals

    folder = config_file.resolve().parent / "logs" if log_dir is None else log_dir
    consumers = FLEETS[chosen](settings, FleetOptions(config_file, folder, end_with))
    if not end_now:
        with stop_on_signals() as stop, _metrics(settings, metrics_address, metrics_port):
            if end_with is not None:
                end_with_process(end_with, stop)
            look_after(settings, consumers, stop)
    if not (end_consumers or end_now):
        if left := [run.consumer for run in consumers.runs() if not run.is_over]:
            command = "kgs control" if fleet is None else f"kgs control --fleet {fleet}"
            who = ", ".join(map(str, left))
            click.echo(
                f"consumers {who} keep running for the next controller; to end them: {command} --end-now", err=True
            )
        return
    with stop_on_signals() as interrupt:
        killed = consumers.end_all(settings.consumer.batch_timeout_s, lambda: interrupt.is_set)
    if killed:
        raise TransientError(
            f"consumers {', '.join(map(str, killed))}: did not end in time and were killed: nothing is lost by it"
            + (f", see {folder}" if folder.is_dir() else "")
        )


@contextmanager
def _metrics(settings: Settings, address: str, port: int | None) -> Iterator[None]:
    if port is None:
        yield
        return
    from kgs_core.runtime.metrics_service import metrics_served

    with metrics_served(settings, address, port) as taken:
        click.echo(f"metrics of {settings.group}: http://{address}:{taken}/metrics", err=True)
        yield
