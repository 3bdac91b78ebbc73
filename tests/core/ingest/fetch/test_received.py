"""Bytes received from each broker: by librdkafka's statistics, and by whether they crossed a zone's border."""

import json

import pytest

from kgs_core.errors import TransientError
from kgs_core.group.protocol import WorkDone
from kgs_core.ingest.driver.zone_bytes import ZoneBytes
from kgs_core.ingest.fetch.received import ReceivedBytes
from kgs_core.ingest.fetch.session import NativeFetchSession
from kgs_core.kafka.client_config import fetching_client, reading_client, zone_of
from kgs_core.model import TopicPartition
from tests.configuration import settings_of
from tests.waiting import wait_until


class NoLibrary:
    def rd_kafka_conf_set_stats_cb(self, conf, call):
        pass


def statistics(**received):
    """As librdkafka writes them; a name begins with the broker's letter, its number is the node's id."""
    brokers = {name: {"nodeid": int(name[1:]) if name[1:] else -1, "rxbytes": n} for name, n in received.items()}
    return json.dumps({"name": "x", "brokers": brokers, "topics": {'"topics":': {}}}).encode()


def test_what_is_new_is_taken_once():
    received = ReceivedBytes(NoLibrary(), 0)
    received.add(statistics(b=700, b1=10, b2=20, g2=5))
    assert received.take() == {1: 10, 2: 25}
    assert received.take() == {}
    received.add(statistics(b=800, b1=11, b2=20, g2=5))
    received.add(statistics(b=800, b1=13, b2=20, g2=5, b3=1))
    assert received.take() == {1: 3, 2: 0, 3: 1}


def test_a_client_counts_only_where_it_is_asked_to(kafka):
    kafka.topic("t")
    kafka.produce("t", bytes(1000))
    kafka.flush()
    config = {**reading_client(kafka.settings()), "statistics.interval.ms": 20}
    found = []
    for each in (config, reading_client(kafka.settings())):
        session = NativeFetchSession(each)
        try:
            taken = []

            def has_received(session=session, taken=taken):
                session.gather({TopicPartition("t", 0): 0}, 10, 0.0, 0.1)
                taken.append(session.received())
                return taken[-1].get(1, 0) > 1000 or len(taken) > 5

            if each is config:
                wait_until(has_received, 20, "bytes of broker 1")
            else:
                has_received()
            found.append(taken[-1])
        finally:
            session.close()
    assert found[0][1] > 1000
    assert found[1] == {}


@pytest.mark.parametrize(
    ("given", "written", "zone"),
    [
        (None, None, None),
        ("", None, None),
        ("a", None, "a"),
        ("a", "b", "b"),
        (None, "b", "b"),
        ("x" * 101, None, "x" * 100),
    ],
)
def test_the_zone_of_a_process(given, written, zone, monkeypatch):
    monkeypatch.delenv("KGS_ZONE", raising=False)
    if given is not None:
        monkeypatch.setenv("KGS_ZONE", given)
    settings = settings_of(
        kafka={"bootstrap_servers": "x:1", **({"client": {"client.rack": written}} if written else {})}
    )
    assert zone_of(settings) == zone
    client = fetching_client(settings)
    assert (client.get("client.rack"), "statistics.interval.ms" in client) == (zone, zone is not None)


def test_bytes_by_zone():
    asked = []

    def racks():
        asked.append(1)
        if len(asked) == 1:
            raise TransientError("no answer")
        return {1: "a", 2: "b", 3: None}

    zones = ZoneBytes("a", racks)
    work = WorkDone(commits=1)
    zones.add({})
    assert (asked, zones.added_to(work)) == ([], work)
    zones.add({1: 10})
    zones.add({1: 5})  # not asked again at once
    assert (asked, zones.added_to(work)) == ([1], work)
    zones._due = 0.0
    zones.add({2: 7, 3: 100})
    assert zones.added_to(work) == WorkDone(commits=1, same_zone_bytes=15, cross_zone_bytes=7)
    zones.add({2: 1})
    assert zones.added_to(work).cross_zone_bytes == 8
