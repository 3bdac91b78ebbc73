"""Sessions of either kind at the mock cluster, and topics of their own."""

import itertools

import pytest

from kgs_core.ingest.fetch.session import NativeFetchSession
from kgs_core.kafka.client_config import reading_client

NUMBER = itertools.count()


@pytest.fixture
def opened(kafka):
    """Opens sessions of either kind; they are closed at the end."""
    sessions = []

    def build(kind=NativeFetchSession, **changes):
        sessions.append(kind({**reading_client(kafka.settings()), **changes}))
        return sessions[-1]

    yield build
    for session in sessions:
        session.close()


@pytest.fixture
def topic(kafka):
    def build(partitions=1):
        name = f"native-{next(NUMBER)}"
        kafka.topic(name, partitions)
        return name

    return build
