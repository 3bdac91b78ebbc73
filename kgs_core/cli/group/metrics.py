"""`kgs metrics`: the group's figures for Prometheus. Reads only."""

from pathlib import Path

import click

from kgs_core.api.configuration import settings_of
from kgs_core.cli.options import config_option


@click.command()
@config_option
@click.option("--once", is_flag=True, help="Print all metrics once; exit status 1 if nothing could be read.")
@click.option("--address", default="127.0.0.1", help="Address to listen on; 0.0.0.0: all.")
@click.option("--port", type=click.IntRange(0, 65535), default=9464, help="Port to listen on; 0: a free port.")
@click.option("--every", type=click.FloatRange(1, 3600), default=10.0, help="Seconds between readings.")
@click.option("--per-partition/--no-per-partition", default=True, help="Also up to nine series for each partition.")
@click.option(
    "--lag-seconds/--no-lag-seconds",
    default=True,
    help="Read the record at each position, which needs the right to read the topics.",
)
@click.option(
    "--audit-every",
    type=click.FloatRange(min=0, min_open=True),
    metavar="HOURS",
    help="Also audit the lake as `kgs audit` does, which reads the positions of every row.  [default: never]",
)
def metrics(  # noqa: PLR0913 - one per option
    *,
    config_file: Path,
    once: bool,
    address: str,
    port: int,
    every: float,
    per_partition: bool,
    lag_seconds: bool,
    audit_every: float | None,
) -> None:
    """Serve the group's metrics at /metrics, as OpenMetrics text.

    Run one process per group. It reads the group's topics, the monitor's and the tables' logs with a viewer's rights,
    changes nothing, and needs no Dagster. If Kafka is unavailable it stays and counts errors. Unknown figures have no
    sample, so a missing series is not a zero.

    docs/metrics.md has the table of all metrics.
    """
    settings = settings_of(config_file)
    from kgs_core.prometheus.exposition import MetricsServer, text_of
    from kgs_core.runtime.metrics_reader import MetricsReader
    from kgs_core.system.patience import LogOnChange
    from kgs_core.system.shutdown import stop_on_signals

    shown = {"per_partition": per_partition, "lag_seconds": lag_seconds}
    if once:
        with MetricsReader(settings, **shown) as reader:
            problems = reader.look()
            click.echo(text_of(reader.page()), nl=False)
            for problem in problems:
                click.echo(problem, err=True)
            if not reader.has_looked:
                raise click.exceptions.Exit(1)
        return
    say = LogOnChange(lambda text: click.echo(text, err=True))
    with (
        stop_on_signals() as stop,
        MetricsReader(settings, **shown, audit_every_h=audit_every) as reader,
        MetricsServer(reader.page, address, port) as server,
    ):
        click.echo(f"metrics of {settings.group}: http://{address}:{server.port}/metrics", err=True)
        while not stop.is_set:
            say("; ".join(reader.look()))
            stop.wait(every)
