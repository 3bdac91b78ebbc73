"""Records of the benchmark in every format: each becomes the same row."""

import pytest
from confluent_kafka.cimpl import Message

from bench.format_records import records_in
from bench.records import FIELDS
from bench.registry_stub import running_registry
from kgs_core.config.registry import RegistrySettings
from kgs_core.config.rule.value_formats import FORMATS
from kgs_core.ingest.fetch.topic_records import records_of
from tests.processing import sorted_of
from tests.topic_jobs import topic_job

COUNT = 20


def rows_of(name):
    with running_registry() as registry:
        found = records_in(name, registry, COUNT)
        of = RegistrySettings(url=registry.url)
        job = topic_job(found.rule, registry=of)
        messages = [Message(topic="t", offset=n, value=value) for n, value in enumerate(found.values)]
        rows = sorted_of(job, records_of(messages))
        assert rows.dead_letters.num_rows == 0
        return rows.rows


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_the_same_rows(name):
    rows = rows_of(name)
    assert rows.num_rows == COUNT
    if "value" not in rows.column_names:
        assert rows.select(list(FIELDS)).equals(rows_of("json").select(list(FIELDS)))
