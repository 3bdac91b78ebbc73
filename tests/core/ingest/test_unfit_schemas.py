"""A registry's newest schema that makes no columns: a table that is there goes on with its own."""

from types import SimpleNamespace

import pyarrow as pa
import pytest

from kgs_core.config import TableSpec
from kgs_core.errors import ConfigError
from kgs_core.ingest.formats import by_schema
from kgs_core.ingest.formats.avro import avro
from kgs_core.ingest.formats.json import json_schema
from kgs_core.ingest.formats.parsed import NoColumnsError
from kgs_core.ingest.opening import topic_opener
from kgs_core.ingest.opening.topic_opener import TopicOpener, columns_of
from kgs_core.lake.files.row_schema import ORIGIN_FIELDS
from kgs_core.lake.topics.factory import open_lake
from kgs_core.model import TopicId
from kgs_core.ports.registry import RegisteredSchema, SchemaKind
from tests.core.ingest.test_first_offsets import FakeAdmin
from tests.group_offsets import MemoryOffsets
from tests.kgs_yaml import kgs_yaml

COLUMNS = pa.schema([("temp", pa.float64()), ("place", pa.string()), ("at", pa.timestamp("us", "UTC"))])


def unfit(*_):
    raise NoColumnsError(["topic t: two fields differ only in case"])


class Consumer:
    """What opens topic `t`; `newest` are the columns of the registry's newest schema."""

    def __init__(self, folder, monkeypatch, layout):
        self.settings = kgs_yaml(folder, {"format": "avro", **layout}, registry={"url": "http://r:1"})
        self.lake = open_lake(self.settings.lake)
        self.spec = TableSpec("t", "t", "t_dead_letters", self.settings.topics[0], self.settings.registry)
        self.newest = lambda *_: COLUMNS
        monkeypatch.setattr(topic_opener, "load_hook", lambda _: self.newest)

    def open(self):
        opener = TopicOpener(self.settings, self.lake, FakeAdmin(), MemoryOffsets(), lambda *_: None)
        return opener.open(self.spec, TopicId("id1"), 1)


@pytest.fixture(
    params=[
        {},
        {"evolve": "add_columns"},
        {"evolve": "widen", "partition_by": ["place"]},
        {"partition_by": ["day(at)"], "sort_by": ["temp"]},
    ]
)
def consumer(request, tmp_path, monkeypatch):
    return Consumer(tmp_path, monkeypatch, request.param)


def test_a_topic_with_a_table_is_opened_with_its_columns(consumer, caplog):
    first = consumer.open()
    consumer.newest = unfit
    again = consumer.open()
    assert (again.columns, again.schema) == (first.columns, first.schema) == (COLUMNS, first.schema)
    assert "table=t keeps its columns: topic t: two fields differ only in case" in caplog.text
    assert columns_of(consumer.spec, consumer.lake) == COLUMNS, "as kgs redrive asks"


def unknown(*_):
    """It may be another registry, or the rule's format may be wrong: every record would be a dead letter."""
    raise ConfigError(["topic t: subject t-value: none"])


@pytest.mark.parametrize(
    ("is_there", "newest", "words"), [(False, unfit, "two fields differ"), (True, unknown, "none")]
)
def test_a_topic_without_a_table_or_that_the_registry_knows_nothing_of_is_refused(consumer, is_there, newest, words):
    if is_there:
        consumer.open()
    consumer.newest = newest
    with pytest.raises(ConfigError, match=words):
        consumer.open()


def test_a_transform_is_given_no_columns_that_nobody_has_named(tmp_path, monkeypatch):
    consumer = Consumer(tmp_path, monkeypatch, {"transform_arrow": "some:transform"})
    consumer.lake.columns("t", pa.schema(ORIGIN_FIELDS))
    consumer.newest = unfit
    with pytest.raises(ConfigError, match="two fields differ only in case"):
        columns_of(consumer.spec, consumer.lake)


TWINS = '{"type": "record", "name": "r", "fields": [{"name": "temp", "type": "int"}, {"name": "Temp", "type": "int"}]}'
OBJECT = '{"type": "object", "properties": {"temp": {"type": "integer"}, "Temp": {"type": "integer"}}}'


@pytest.mark.parametrize(
    ("find", "kind", "text", "error"),
    [
        (avro.avro_columns_of, SchemaKind.AVRO, TWINS, NoColumnsError),
        (avro.avro_columns_of, SchemaKind.JSON, OBJECT, ConfigError),
        (json_schema.columns_of, SchemaKind.JSON, OBJECT, NoColumnsError),
        (json_schema.columns_of, SchemaKind.AVRO, TWINS, ConfigError),
    ],
)
def test_a_schema_of_another_kind_is_no_schema_without_columns(consumer, monkeypatch, find, kind, text, error):
    registry = SimpleNamespace(latest=lambda _: RegisteredSchema(1, kind, text))
    monkeypatch.setattr(by_schema, "registry_of", lambda _: registry)
    with pytest.raises(ConfigError) as refused:
        find("t", consumer.spec.rule, consumer.settings.registry)
    assert type(refused.value) is error
