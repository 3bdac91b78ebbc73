"""Records of one topic in the columns of its table: of value, key, headers and topic, masked."""

import contextlib
from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from kgs_core.accel.compiled import machine_code
from kgs_core.config.rule.value_formats import FORMATS
from kgs_core.errors import PortError
from kgs_core.ingest.fetch.topic_records import TopicRecords
from kgs_core.ingest.formats import raw, texts  # noqa: F401 - not in the first batch
from kgs_core.ingest.formats.json import json_objects  # noqa: F401 - not in the first batch
from kgs_core.ingest.formats.parsed import Parsed, Parser, ValueBatch
from kgs_core.ingest.formats.record_columns import (
    header_columns,
    parse_changes,
    parse_keys,
    side_by_side,
    with_rescued,
    with_topic,
)
from kgs_core.ingest.worker.masks import UNTOLD
from kgs_core.ingest.worker.topic_job import TopicPlan, load_hook
from kgs_core.lake.files.layout import unfit


def parse_records(plan: TopicPlan, records: TopicRecords) -> Parsed:
    """What becomes of values, keys, headers and the topic's name, side by side; what the table cannot take is bad.

    All that it gives, words included, is masked.

    Raises:
        PortError: the registry did not answer.
    """
    masks = plan.masks
    try:
        parsed = _parsed(plan, records)
        parsed = _without_unfit(plan, replace(parsed, table=masks.masked(parsed.table)))
    except Exception as e:
        if isinstance(e, PortError) or not masks.fields:
            raise
        raise RuntimeError(f"{type(e).__name__}, {UNTOLD}") from None  # whatever it is, its words may quote a value
    return replace(parsed, bad=masks.reasons(parsed.bad, parsed.table.column_names))


def load_parsers(formats: Iterable[str]) -> None:
    """Load what these need, which may take seconds, before the records wait for it."""
    for name in formats:
        with contextlib.suppress(Exception):  # the topic's own affair, once there are records
            _parser(name)
            if FORMATS[name].loops:
                machine_code(FORMATS[name].loops)


def _parsed(plan: TopicPlan, records: TopicRecords) -> Parsed:
    spec, headers = plan.spec, records.origin["_headers"].combine_chunks()
    rule = spec.rule
    rescue = rule.unknown_fields == "rescue"
    values = ValueBatch(records.values, plan.values, headers, spec.registry, rule.avro_schema, rescue=rescue)
    parse = _parser(rule.format)
    parsed = parse_changes(parse, values) if rule.has_changes else parse(values)
    parts = [with_rescued(parsed, wanted=rescue)]
    if rule.key_columns:
        keys = records.origin["_key"].combine_chunks()
        batch = ValueBatch(keys, plan.keys, headers, spec.registry, is_key=True)
        parts.append(parse_keys(_parser(rule.key_format), batch, list(rule.key_columns)))
    if rule.headers:
        parts.append(header_columns(headers, rule.headers))
    return with_topic(side_by_side(parts), spec.topic, rule.topic_columns)


def _parser(name: str) -> Parser:
    parser: Parser = load_hook(FORMATS[name].parser)
    return parser


def _without_unfit(plan: TopicPlan, parsed: Parsed) -> Parsed:
    """Values that no partition can have are bad, where they are the record's own and not a transform's."""
    if plan.spec.rule.has_transform or not (bad := unfit(plan.spec.rule, parsed.table)):
        return parsed
    keep = [n for n in range(len(parsed.good)) if n not in bad]
    good = [parsed.good[n] for n in keep]
    reasons = {**parsed.bad, **{parsed.good[n]: reason for n, reason in bad.items()}}
    return replace(parsed, table=parsed.table.take(pa.array(keep, pa.int64())), good=good, bad=reasons)
