"""The real things that tests of this folder share."""

import itertools
import os
from collections.abc import Iterator

import pytest

from kgs_core.adapters.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.adapters.kafka.admin import KafkaAdmin

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """One broker for all tests of this process; whoever stops or kills a broker starts one of their own."""
    with EmbeddedKafka.start(tmp_path_factory.mktemp("kafka"), log=print) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def admin(kafka: EmbeddedKafka) -> KafkaAdmin:
    """Administration of the shared broker."""
    return KafkaAdmin({"bootstrap.servers": kafka.bootstrap_servers})


@pytest.fixture
def topic_prefix() -> str:
    """What the names of a test's topics begin with, so that tests do not meet on the shared broker."""
    return f"test{os.getpid()}-{next(_numbers)}."
