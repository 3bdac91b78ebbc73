"""A topic's job, and values that are parsed by a rule."""

import pyarrow as pa

from kgs_core.config import TopicRule
from kgs_core.ingest.formats.json import json_objects
from kgs_core.ingest.formats.parsed import ValueBatch
from kgs_core.ingest.worker.topic_job import TopicJob
from kgs_core.lake.files.row_schema import parsed_schema
from kgs_core.model import TopicId


def topic_job(rule, columns=None, **more):
    """Of topic `t`, where the rule names no other."""
    found = TopicRule.model_validate({"topic": "t", **rule})
    topic, schema = found.topic, parsed_schema(found, columns)
    return TopicJob(topic, TopicId("id"), found, topic, f"{topic}_dl", schema, {}, columns=columns, **more)


def values_of(values, columns, **more):
    """Values to be parsed, by a rule that says nothing."""
    return ValueBatch(pa.array(values, pa.binary()), columns, "t", TopicRule(topic="t"), **more)


def parse_json(values, columns, **more):
    return json_objects.parse_json(values_of(values, columns, **more))
