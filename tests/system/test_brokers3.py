"""The rig of the outages: what it says it does to a broker reaches that class of clients and no other."""

import socket
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from bench.three_brokers import OUTAGES, ThreeBrokers
from bench.toxiproxy import DarkAddress
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.model import TopicPartition
from kgs_core.system.tcp_ports import HOST
from tests.system.brokers3 import three_brokers

pytestmark = [pytest.mark.chaos, pytest.mark.soak, pytest.mark.slow]
VICTIM, HEIR = 1, 2
OF_THE_NETWORK = OUTAGES.keys() - {"killed", "frozen"}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeBrokers]:
    with three_brokers(tmp_path_factory.mktemp("brokers")) as brokers:
        KafkaAdmin({"bootstrap.servers": brokers.kafka.bootstrap_servers}).create_topic("t", 2, 3)
        yield brokers


def is_written(bootstrap: str, within_s: float) -> bool:
    """Whether all replicas in sync have a record in that time."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    producer.produce("t", b"x", partition=0)
    is_there = producer.flush(within_s) == 0
    producer.purge()
    producer.flush(1)
    return is_there


@pytest.mark.parametrize("outage", OUTAGES)
def test_an_outage_is_one_of_its_classes_and_ends(brokers: ThreeBrokers, outage: str) -> None:
    brokers.lead(VICTIM)
    brokers.inflict(outage, VICTIM, ["consumers"])
    try:
        assert not is_written(brokers.bootstrap("consumers"), 2)
        if outage in OF_THE_NETWORK:
            assert is_written(brokers.bootstrap("tools"), 5)
    finally:
        brokers.heal()
    assert is_written(brokers.bootstrap("consumers"), 30)


def test_leaders_are_where_they_shall_be(brokers: ThreeBrokers) -> None:
    brokers.lead(VICTIM)
    brokers.lead(HEIR, ["t"])
    found = brokers.leaders()
    assert (found[TopicPartition("t", 0)], found[TopicPartition("t", 1)]) == (HEIR, HEIR)


def test_nothing_answers_at_a_dark_address() -> None:
    with DarkAddress() as dark, pytest.raises(TimeoutError):
        socket.create_connection((HOST, dark.port), timeout=1)
