"""A format as those of a registry are: each value tells its own fields, all whole numbers; the registry tells `i`."""

import json

import pyarrow as pa

from kgs_core.config import TopicRule
from kgs_core.config.registry import RegistrySettings
from kgs_core.config.rule.value_formats import FORMATS, ValueFormat
from kgs_core.ingest.formats.parsed import Parsed, ValueBatch

NAME = "growing"
FORMAT = ValueFormat("tests.growing_values:parse", columns_of="tests.growing_values:columns_of")


def parse(batch: ValueBatch) -> Parsed:
    """One object of whole numbers a value."""
    rows, bad = {}, {}
    for i, value in enumerate(batch.values.to_pylist()):
        try:
            rows[i] = {str(name): int(number) for name, number in json.loads(value).items()}
        except (TypeError, ValueError, AttributeError):
            bad[i] = "no object of numbers"
    seen = dict.fromkeys(name for row in rows.values() for name in row)
    missing = pa.schema([(name, pa.int32()) for name in seen if name not in batch.columns.names])
    columns = [pa.array([row.get(f.name) for row in rows.values()], f.type) for f in batch.columns]
    return Parsed(pa.Table.from_arrays(columns, schema=batch.columns), list(rows), bad, missing=missing)


def columns_of(topic: str, rule: TopicRule, registry: RegistrySettings) -> pa.Schema:
    """The first version's."""
    del topic, rule, registry
    return pa.schema([("i", pa.int32())])


def register() -> None:
    """Have it among the formats of this process."""
    FORMATS[NAME] = FORMAT
