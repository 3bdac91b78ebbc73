"""Zones on three brokers: a consumer reads from the replica in its zone, else across; both are counted."""

import os
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kgs_core.config import Settings
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.group.protocol import WorkDone
from kgs_core.ingest.driver.zone_bytes import ZoneBytes
from kgs_core.ingest.fetch.session import NativeFetchSession
from kgs_core.kafka.admin import admin_of
from kgs_core.kafka.client_config import ZONE, fetching_client, zone_of
from kgs_core.model import TopicPartition
from kgs_core.monitor.kafka.partition_sizes import PartitionSizes
from tests.configuration import settings_of
from tests.waiting import wait_until

pytestmark = pytest.mark.slow(30)
RECORDS, RECORD_BYTES = 3000, 1000
TP = TopicPartition("zoned", 0)
OTHERS_SHARE = 0.02
"""Of what comes over the wire: the first answers, and metadata, are any broker's."""
ZONES = {
    "broker.rack": "zone-{node}",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A topic led by broker 1, with a replica at broker 2 and none at broker 3."""
    with EmbeddedKafka.start(tmp_path_factory.mktemp("zones"), 3, settings=ZONES) as kafka:
        where = {"bootstrap.servers": kafka.bootstrap_servers}
        client = AdminClient(where)
        client.create_topics([NewTopic(TP.topic, 1, replica_assignment=[[1, 2]])])[TP.topic].result(30)
        producer = Producer({**where, "acks": "all"})
        for _ in range(RECORDS):
            producer.produce(TP.topic, os.urandom(RECORD_BYTES), partition=0)
        assert producer.flush(60) == 0
        yield settings_of(kafka={"bootstrap_servers": kafka.bootstrap_servers}, topics=[{"topic": TP.topic}])


@pytest.mark.parametrize(("zone", "across"), [("zone-1", False), ("zone-2", False), ("zone-3", True)])
def test_bytes_across_zones(settings: Settings, zone: str, across: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ZONE, zone)
    zones = ZoneBytes(zone_of(settings), admin_of(settings).racks)
    session = NativeFetchSession({**fetching_client(settings), "statistics.interval.ms": 100})
    position, least = 0, RECORDS * RECORD_BYTES

    def is_read() -> bool:
        nonlocal position
        fetched = session.gather({TP: position}, 200_000, 0.1, 0.5)
        assert not fetched.troubles
        position = fetched.ranges[TP].end if fetched.ranges else position
        zones.add(session.received())
        work = zones.added_to(WorkDone())
        return position == RECORDS and (work.same_zone_bytes or 0) + (work.cross_zone_bytes or 0) >= least

    try:
        wait_until(is_read, 60, "all records, and the statistics of them")
    finally:
        session.close()
    work = zones.added_to(WorkDone())
    same, crossed = work.same_zone_bytes or 0, work.cross_zone_bytes or 0
    assert (same if across else crossed) <= OTHERS_SHARE * (same + crossed)


def test_the_monitor_knows_where_a_partition_is_led(settings: Settings) -> None:
    sizes = PartitionSizes(settings)
    try:
        assert sizes.read().partitions[TP].zone == "zone-1"
    finally:
        sizes.close()
