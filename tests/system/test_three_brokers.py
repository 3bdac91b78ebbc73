"""Three brokers in three zones: bytes that consumers read across zones are counted, and the monitor measures leaders.

Real brokers, since it is their answers that name a nearer replica, and must not count the copies that follow.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.segment_files import segment_bytes
from kgs_core.config import Settings
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.group.protocol import WorkDone
from kgs_core.ingest.driver.zone_bytes import ZoneBytes
from kgs_core.ingest.fetch.session import NativeFetchSession
from kgs_core.kafka.admin import KafkaAdmin, admin_of
from kgs_core.kafka.client_config import ZONE, fetching_client, zone_of
from kgs_core.model import TopicPartition
from kgs_core.monitor.kafka.monitor import Monitor
from kgs_core.monitor.kafka.partition_sizes import PartitionSizes
from tests.configuration import settings_of
from tests.system import monitoring
from tests.system.pipeline import json_values, produce
from tests.waiting import wait_until

pytestmark = pytest.mark.slow(40)
RECORDS, RECORD_BYTES = 3000, 1000
TP = TopicPartition("zoned", 0)
OTHERS_SHARE = 0.02
"""Of what comes over the wire: the first answers, and metadata, are any broker's."""
ZONES = {
    "broker.rack": "zone-{node}",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka.start(tmp_path_factory.mktemp("zones"), 3, settings=ZONES, log=print) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def settings(three: EmbeddedKafka) -> Settings:
    """A topic led by broker 1, with a replica at broker 2 and none at broker 3."""
    where = {"bootstrap.servers": three.bootstrap_servers}
    client = AdminClient(where)
    client.create_topics([NewTopic(TP.topic, 1, replica_assignment=[[1, 2]])])[TP.topic].result(30)
    producer = Producer({**where, "acks": "all"})
    for _ in range(RECORDS):
        producer.produce(TP.topic, os.urandom(RECORD_BYTES), partition=0)
    assert producer.flush(60) == 0
    return settings_of(kafka={"bootstrap_servers": three.bootstrap_servers}, topics=[{"topic": TP.topic}])


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


@pytest.mark.chaos
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # kafka-python: sockets never connected
def test_the_leaders_alone_are_measured_and_of_a_broker_that_is_gone_nothing_is_known(
    three: EmbeddedKafka, topic_prefix: str
) -> None:
    admin = KafkaAdmin({"bootstrap.servers": three.bootstrap_servers})
    topic = f"{topic_prefix}copies"
    admin.create_topic(topic, 6, 3)
    produce(three.bootstrap_servers, topic, json_values(0, 20_000), acks="all")
    with closing(PartitionSizes(monitoring.settings_of(three.bootstrap_servers, topic_prefix))) as sizes:
        read = sizes.read()
    assert read.unknown == {}
    folders = {node.node_id: node.data for node in three.nodes}
    for tp, log in read.partitions.items():
        copies = {number: segment_bytes(folder, tp) for number, folder in folders.items()}
        assert set(copies.values()) == {log.size_bytes}, "all copies are alike, and one of them is the size"
    assert sum(log.size_bytes or 0 for log in read.partitions.values()) > 100_000
    assert len({log.leader for log in read.partitions.values()}) == 3

    admin.create_topic(f"{topic_prefix}one.a", 6)
    with Monitor(monitoring.settings_of(three.bootstrap_servers, f"{topic_prefix}one."), publish=False) as monitor:
        before = monitoring.run_until(monitor, lambda m: len(m.known) == 6)[-1]
        led = {tp: log.leader for tp, log in before.reading.partitions.items()}
        gone = next(node for node in three.nodes if node.node_id == led[TopicPartition(f"{topic_prefix}one.a", 0)])
        hit = {tp for tp, leader in led.items() if leader == gone.node_id}
        gone.kill()
        after = monitoring.run_until(monitor, lambda m: len(m.known) == len(led) - len(hit))
        assert {tp for tp in after[-1].speeds if tp not in after[-1].known} == hit
        assert all(after[-1].reading.unknown[tp] for tp in hit)
        three.restart(gone)
        monitoring.run_until(monitor, lambda m: len(m.known) == 6)
    gc.collect()
