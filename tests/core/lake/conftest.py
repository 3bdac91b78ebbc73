"""Consumers of one topic whose tables lie in a folder."""

import pytest

from tests.core.lake.changing_hands import MemoryKafka, put_kafka
from tests.core.lake.newest import key, value
from tests.one_column import table_at
from tests.sink import FakeRecord, Sink


@pytest.fixture
def sink(storage):
    """With two partitions, of which nothing is read yet."""
    return Sink(storage).started(2)


@pytest.fixture
def memory_kafka(monkeypatch):
    kafka = MemoryKafka()
    put_kafka(monkeypatch, kafka)
    return kafka


@pytest.fixture
def table(storage):
    return table_at(storage)


@pytest.fixture
def keyed_records(monkeypatch):
    monkeypatch.setattr(FakeRecord, "key", key)
    monkeypatch.setattr(FakeRecord, "value", value)
