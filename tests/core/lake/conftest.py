"""Consumers of one topic whose tables lie in a folder."""

import pytest

from kgs_core.lake.delta import pace
from tests.core.lake.changing_hands import MemoryKafka, put_kafka
from tests.core.lake.newest import key, value
from tests.one_column import table_at
from tests.sink import FakeRecord, Sink


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    """Nothing of what a test has broken becomes better while it waits."""
    monkeypatch.setattr(pace, "pause_after_error", lambda _: 0.0)


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
