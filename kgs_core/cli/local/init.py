"""`kgs init`: a small kgs.yaml from what topics hold."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import click

from kgs_core.api.broker_settings import broker_settings
from kgs_core.cli.options import new_config_option
from kgs_core.config import Settings, parse_settings
from kgs_core.errors import ConfigError, PermanentError

LEAST_FITTING = 0.5
"""Share of a topic's newest records that must be JSON objects, for it to be read as such."""
_RECORDS, _SECONDS = 1000, 10.0
_REGISTRY_BYTE = b"\x00"
_NEXT = """Check it, then run

    kgs plan                     # how many consumers the load needs; changes nothing
    kgs control                  # measures, packs, starts consumers
    kgs status --watch           # who reads what, in another terminal
    kgs audit                    # lost, doubled: per table and partition
"""


@click.command()
@click.argument("topics", nargs=-1, metavar="[TOPIC]...")
@click.option("--bootstrap-servers", required=True, metavar="HOST:PORT,...", help="Brokers.")
@click.option("--group", default="kgs", help="Name of the group of consumers.")
@click.option(
    "--lake", default="lake", help="Where the tables will be: a path, s3://..., gs://..., az://... or abfss://..."
)
@new_config_option
def init(*, topics: tuple[str, ...], bootstrap_servers: str, group: str, lake: str, config_file: Path) -> None:
    """Write a small kgs.yaml for these topics (default: all), from what their newest records hold.

    A topic of JSON objects gets the columns that `kgs schema topic` proposes, a topic of texts the format string, any
    other topic raw. It never overwrites a file, and changes nothing else.
    """
    if config_file.exists():
        raise ConfigError([f"{config_file}: exists already: move it, or name another file with --config"])
    settings = broker_settings(config_file, bootstrap_servers)
    lines = [
        "# `kgs example --all` prints every setting, explained.",
        f"group: {json.dumps(group)}",
        f"kafka: {{bootstrap_servers: {json.dumps(bootstrap_servers)}}}",
        f"lake: {{root: {json.dumps(lake)}}}",
        "topics:",
    ]
    for topic in topics or _topics(settings):
        lines += _rule(settings, topic)
    text = "\n".join([*lines, ""])
    parse_settings(text.encode(), str(config_file), os.environ)
    try:
        with config_file.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as e:
        raise PermanentError(f"{config_file}: {e.strerror}: name another file by --config") from e
    click.echo(f"{config_file}: written. {_NEXT}", nl=False)


def _topics(settings: Settings) -> list[str]:
    from kgs_core.kafka.admin import admin_of

    found = sorted(t for t in admin_of(settings).list_topics() if not t.startswith(("__", "kgs.")))
    if not found:
        raise ConfigError([f"{settings.kafka.bootstrap_servers}: no topics yet: create them first"])
    return found


def _rule(settings: Settings, topic: str) -> Iterator[str]:
    from kgs_core.cli.lake.schema import columns_as_yaml, plain_format
    from kgs_core.ingest.fetch.topic_sample import sample_topic
    from kgs_core.ingest.formats.json.json_inference import propose_schema

    sample = sample_topic(settings, topic, _RECORDS, _SECONDS)
    found = propose_schema(sample.values)
    click.echo(f"{topic}: {len(sample.values)} records of {sample.partitions} partitions read", err=True)
    yield f"  - topic: {json.dumps(topic)}"
    if found.columns and found.fitting >= LEAST_FITTING * found.looked_at:
        yield f"    # {found.fitting} of {found.looked_at} records would be rows; `kgs schema topic {topic}` says why"
        yield "    format: json"
        yield from (f"    {line}" for line in columns_as_yaml(found.absent, found.columns))
        yield from (f"    # {path}: {why}" for path, why in found.without_type.items())
        return
    values = [value for value in sample.values if value is not None]
    if not values:
        yield "    # no records yet: before any is read, choose the format that they will have"
    elif all(value.startswith(_REGISTRY_BYTE) for value in values):
        yield "    # these look like a registry's: format avro, protobuf or json_schema, and a section registry"
    yield f"    format: {plain_format(values)}"
