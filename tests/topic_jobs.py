"""A topic's job, and values that are parsed by a rule."""

import pyarrow as pa

from kgs_core.config import TableSpec, TopicRule
from kgs_core.ingest.formats.json import json_objects
from kgs_core.ingest.formats.parsed import ValueBatch
from kgs_core.ingest.worker.topic_job import TopicJob, TopicPlan
from kgs_core.lake.files.row_schema import parsed_schema
from kgs_core.model import TopicId


def topic_job(rule, columns=None, *, registry=None, topic_id="id"):
    """Of topic `t`, where the rule names no other, with nothing of it in the lake."""
    found = rule if isinstance(rule, TopicRule) else TopicRule.model_validate({"topic": "t", **rule})
    spec = TableSpec(found.topic, found.topic, f"{found.topic}_dl", found, registry)
    return TopicJob(TopicPlan.of(spec, TopicId(topic_id), parsed_schema(found, columns), columns), {})


def values_of(values, columns, **more):
    """Values to be parsed."""
    return ValueBatch(pa.array(values, pa.binary()), columns, **more)


def parse_json(values, columns, **more):
    return json_objects.parse_json(values_of(values, columns, **more))
