"""Consumers of one topic whose tables lie in a folder."""

import pytest

from tests.core.lake.newest import key, value
from tests.sink import FakeRecord, Sink


@pytest.fixture
def sink(storage):
    """With two partitions, of which nothing is read yet."""
    return Sink(storage).started(2)


@pytest.fixture
def keyed_records(monkeypatch):
    monkeypatch.setattr(FakeRecord, "key", key)
    monkeypatch.setattr(FakeRecord, "value", value)
