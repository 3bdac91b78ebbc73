"""`kgs schema`: columns for a topic's rule, from its records or from the registry."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from kgs_core.api.broker_settings import broker_settings
from kgs_core.cli.options import bootstrap_option, config_option
from kgs_core.config import Settings, TopicRule
from kgs_core.config.rule.value_formats import FORMATS, require_packages
from kgs_core.errors import ConfigError

if TYPE_CHECKING:
    from kgs_core.ingest.fetch.topic_sample import TopicSample
    from kgs_core.ingest.formats.json.json_inference import SchemaProposal

_MAX_REASONS = 5
_KEY_PREFIX = str(TopicRule.model_fields["key_prefix"].default)


@click.group("schema")
def schema_group() -> None:
    """Propose columns for a topic's rule."""


@schema_group.command("topic")
@click.argument("topic")
@config_option
@bootstrap_option
@click.option("--records", type=click.IntRange(1, 1_000_000), default=1000, help="Read at most so many records.")
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=10.0, help="Read for at most this time.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of YAML.")
def schema_topic(
    topic: str, *, config_file: Path, bootstrap_servers: str | None, records: int, seconds: float, as_json: bool
) -> None:
    """Propose `schema` for TOPIC from its newest records, which are JSON objects. Paste it into the rule and check it.

    If all keys are also JSON objects, it proposes `key_schema` too; take it if you want these columns. For changes of a
    database's table by Debezium, it also proposes `newest_rows`. If the topic's rule has a format with a registry, it
    prints the columns of the registry's schema instead.

    A whole number becomes long, one with a fraction double; texts that are all dates or times become date or timestamp;
    an object whose fields always differ becomes a map. A field that was always null, or of several types, gets no type;
    a line below says what to do. The last lines say how many records would become rows with these columns, and why the
    others would be bad.

    It reads without a group and changes nothing. Rules of the configuration may be incomplete.
    """
    settings = broker_settings(config_file, bootstrap_servers)
    found = _of_registry(settings, topic)
    if found is not None:
        shown = {"topic": topic, "schema": found}
        click.echo(json.dumps(shown, indent=2) if as_json else "\n".join(columns_as_yaml({}, found)))
        return
    from kgs_core.ingest.fetch.topic_sample import sample_topic
    from kgs_core.ingest.formats.json.change_events import propose_changes
    from kgs_core.ingest.formats.json.json_inference import propose_schema

    sample = sample_topic(settings, topic, records, seconds)
    if not sample.values:
        more = "" if sample.is_whole else f" that came within {seconds:g} s: give --seconds"
        raise ConfigError([f"topic {topic}: no records{more}"])
    changes = propose_changes(sample.values, sample.keys)
    proposal = propose_schema(sample.values) if changes is None else changes.values
    keys = sample.keys if changes is None else changes.keys
    of_keys = propose_schema([key for key in keys if key is not None], are_keys=True)
    has_keys = any(key is not None for key in sample.keys)
    newest = {"newest_rows": _newest_rows(topic, changes.newest_rows, of_keys)} if changes and has_keys else {}
    if as_json:
        click.echo(json.dumps({**_tree(topic, sample, proposal, of_keys), **newest}, indent=2))
    else:
        for line in (*_lines(topic, sample, proposal), *_key_lines(proposal, of_keys), *_newest_lines(newest)):
            click.echo(line)
        if changes and not has_keys:
            click.echo("# These are changes of a database's table without a primary key: no second table can follow it")
            click.echo("# unless Debezium's message.key.columns names a key (docs/follow-a-database.md).")


def _of_registry(settings: Settings, topic: str) -> dict[str, str] | None:
    """The columns by the registry; None where the topic's rule does not ask one."""
    rule = settings.rule_of(topic)
    columns_of = FORMATS[rule.format].columns_of if rule is not None else None
    if rule is None or columns_of is None or settings.registry is None:
        return None
    require_packages(rule.format, topic)
    from kgs_core.ingest.worker.topic_job import load_hook
    from kgs_core.lake.files.row_schema import column_types

    return column_types(load_hook(columns_of)(topic, rule, settings.registry))


def _tree(topic: str, sample: "TopicSample", found: "SchemaProposal", of_keys: "SchemaProposal") -> dict[str, Any]:
    return {
        "topic": topic,
        "partitions": sample.partitions,
        "records": found.looked_at,
        "read_in_time": sample.is_whole,
        "format": "json",
        "schema": found.columns,
        "absent": found.absent,
        "without_type": found.without_type,
        "fitting": found.fitting,
        "bad": found.bad,
        "keys": of_keys.looked_at,
        "keys_fitting": of_keys.fitting,
        "keys_without_type": of_keys.without_type,
        **_key_rule(found, of_keys),
    }


def _lines(topic: str, sample: "TopicSample", found: "SchemaProposal") -> Iterator[str]:
    cut = "" if sample.is_whole else "; time was over before all were read"
    yield f"# topic {topic}: {found.looked_at} records of {sample.partitions} partitions, each one's newest{cut}"
    if found.columns:
        yield "format: json"
        yield from columns_as_yaml(found.absent, found.columns)
    else:
        yield "# No columns: none of them is a JSON object with a field that has a type."
        yield f"format: {plain_format(sample.values)}"
    if found.without_type:
        yield "# Without a type, and left out:"
        yield from (f"#   {path}: {why}" for path, why in found.without_type.items())
    yield f"# With these columns {found.fitting} of {found.looked_at} records are rows."
    for reason, n in list(found.bad.items())[:_MAX_REASONS]:
        yield f"#   {n} bad: {reason}"
    if len(found.bad) > _MAX_REASONS:
        yield f"#   {sum(list(found.bad.values())[_MAX_REASONS:])} bad for other reasons"


def _key_rule(found: "SchemaProposal", of_keys: "SchemaProposal") -> dict[str, Any]:
    """What of a rule is proposed for keys; empty where one does not fit, since its record would be a dead letter."""
    if not of_keys.columns or of_keys.fitting < of_keys.looked_at:
        return {}
    taken, prefix = {name.lower() for name in found.columns}, _KEY_PREFIX
    while any(f"{prefix}{name}".lower() in taken for name in of_keys.columns):
        prefix = f"record_{prefix}"
    return {
        "key_format": "json",
        **({} if prefix == _KEY_PREFIX else {"key_prefix": prefix}),
        "key_schema": of_keys.columns,
    }


def _key_lines(found: "SchemaProposal", of_keys: "SchemaProposal") -> Iterator[str]:
    if not of_keys.columns:
        return
    rule = _key_rule(found, of_keys)
    if not rule:
        bad = of_keys.looked_at - of_keys.fitting
        yield f"# No columns of keys: some are JSON objects, but {bad} of {of_keys.looked_at} would be bad:"
        yield from (f"#   {n} bad: {reason}" for reason, n in list(of_keys.bad.items())[:_MAX_REASONS])
        return
    yield f"# All {of_keys.looked_at} keys are JSON objects, and fit these columns:"
    yield from (f"{name}: {value}" for name, value in rule.items() if name != "key_schema")
    yield from columns_as_yaml(of_keys.absent, of_keys.columns, "key_schema")
    if of_keys.without_type:
        yield "# Of keys without a type, and left out:"
        yield from (f"#   {path}: {why}" for path, why in of_keys.without_type.items())


def _newest_rows(topic: str, found: dict[str, Any], of_keys: "SchemaProposal") -> dict[str, Any]:
    """Section of a rule for a topic of changes; without columns of keys its key is the whole key."""
    has_key = bool(of_keys.columns) and of_keys.fitting == of_keys.looked_at
    return {"table": f"gold/{topic.rpartition('.')[2]}", **({} if has_key else {"key": ["_key"]}), **found}


def _newest_lines(newest: dict[str, Any]) -> Iterator[str]:
    if newest:
        yield "# These are changes of a database's table. A second table follows it (docs/follow-a-database.md):"
        yield yaml.safe_dump(newest, width=10**6, sort_keys=False, allow_unicode=True).rstrip()


def plain_format(values: Sequence[bytes | None]) -> str:
    """The format of values without columns: string where there are any and all are texts, else raw."""
    present = [value for value in values if value is not None]
    return "string" if present and all(map(_is_text, present)) else "raw"


def _is_text(value: bytes) -> bool:
    try:
        return "\x00" not in value.decode()
    except UnicodeDecodeError:
        return False


def columns_as_yaml(absent: dict[str, int], columns: dict[str, str], setting: str = "schema") -> Iterator[str]:
    """Lines of a rule's `schema`, or another setting of columns: each with its type, and in how many it is missing."""
    yield f"{setting}:"
    for name, kind in columns.items():
        line = yaml.safe_dump({name: kind}, width=10**6, allow_unicode=True).rstrip()
        yield f"  {line}" + (f"  # missing or null in {absent[name]}" if name in absent else "")
