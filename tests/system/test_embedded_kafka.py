"""The embedded broker is a real one: it keeps what it acknowledged, and it never outlives its owner."""

import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ClientTopicPartition

from kgs_core.embedded_kafka.cluster import EmbeddedKafka, prepare_kafka
from kgs_core.errors import PermanentError, TransientError
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.topic_description import TopicDescription
from kgs_core.model import TopicPartition
from kgs_core.system.tcp_ports import HOST, PortReservation
from tests.topics import create_partitions, delete_records, delete_topic
from tests.waiting import wait_until

_QUIET = {"log_level": 0}  # brokers that go away are the subject of these tests


def admin_of(kafka: EmbeddedKafka) -> KafkaAdmin:
    return KafkaAdmin({"bootstrap.servers": kafka.bootstrap_servers})


def produce(kafka: EmbeddedKafka, topic: str, values: range, **settings: object) -> None:
    """Sends the numbers, in order, to partition 0; every one of them is acknowledged."""
    failed = []
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, **_QUIET, **settings})
    for value in values:
        producer.produce(topic, str(value).encode(), partition=0, on_delivery=lambda e, _: e and failed.append(e))
    assert producer.flush(60) == 0
    assert failed == []


def read(kafka: EmbeddedKafka, topic: str) -> list[int]:
    """Every number in partition 0."""
    [end] = admin_of(kafka).offsets([TopicPartition(topic, 0)], "latest").values()
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "unused", "enable.auto.commit": False, **_QUIET}
    )
    found: list[int] = []
    try:
        consumer.assign([ClientTopicPartition(topic, 0, 0)])

        def complete() -> bool:
            found.extend(int(message.value()) for message in consumer.consume(1000, 0.2) if message.error() is None)
            return len(found) >= end

        wait_until(complete, 60, f"{end} records of {topic}")
    finally:
        consumer.close()
    return found


def is_alive(pid: int) -> bool:
    """A zombie has ended; nobody may be there to collect it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def living_in(directory: Path) -> list[int]:
    """Processes that name the directory in their command line."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        named = any(str(directory) in argument for argument in process.info["cmdline"] or ())
        if named and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


def answers(admin):
    """Whether it tells of the 1000 records that are there."""
    tp = TopicPartition("t", 0)
    try:
        return admin.offsets([tp], "latest") == {tp: 1000}
    except TransientError:
        return False


def kill_and_restart(kafka, admins):
    """Clients that ask while it is away and as soon as it is back remember a leader's epoch that is over."""
    [node] = kafka.nodes
    with ThreadPoolExecutor(len(admins)) as pool:
        assert all(pool.map(answers, admins))
        node.kill()
        assert node.pid is None
        assert not any(list(pool.map(answers, admins)))
        kafka.restart(node)
        for each in admins:
            wait_until(lambda one=each: answers(one), 10, "offsets")


@pytest.mark.chaos
@pytest.mark.slow(30)
def test_killed_or_closed_it_keeps_what_it_acknowledged_serves_its_clients_again_and_leaves_no_process(tmp_path):
    """After `kgs prepare` it maps the archive of its classes."""
    archive = prepare_kafka(print)
    with EmbeddedKafka.start(tmp_path) as kafka:
        [node] = kafka.nodes
        before, killed = kafka.bootstrap_servers, node.pid
        assert str(archive) in {each.path for each in psutil.Process(killed).memory_maps()}
        assert len(living_in(tmp_path)) == 2  # the broker and its guard
        admin = admin_of(kafka)
        assert admin.create_topic("t", 2)
        produce(kafka, "t", range(1000), acks="all")
        topic_id = admin.topic_ids(["t"])
        with pytest.raises(PermanentError, match="another Kafka runs in it"):
            EmbeddedKafka.start(tmp_path)
        kill_and_restart(kafka, [KafkaAdmin({"bootstrap.servers": before}, timeout_s=2) for _ in range(4)])
        assert node.pid != killed
        assert not is_alive(killed)
        produce(kafka, "t", range(1000, 1500), acks="all")
        assert read(kafka, "t") == list(range(1500))
        assert wait_until(lambda: admin.topic_ids(["t"]), 10, "an answer") == topic_id
    wait_until(lambda: not living_in(tmp_path), 5, "nothing left")
    kafka.close()
    with pytest.raises(PermanentError, match="1 nodes, not 3"):
        EmbeddedKafka.start(tmp_path, 3)
    with EmbeddedKafka.start(tmp_path) as kafka:
        assert kafka.bootstrap_servers == before
        assert read(kafka, "t") == list(range(1500))


_OWNER = """
import sys, threading, time
from pathlib import Path
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
started = []
starter = threading.Thread(target=lambda: started.append(EmbeddedKafka.start(Path(sys.argv[1]))))
starter.start()
starter.join()
print(started[0].nodes[0].pid, flush=True)
time.sleep(600)
"""


def test_broker_dies_with_its_owner_but_not_with_the_thread_that_started_it(tmp_path):
    command = [sys.executable, "-c", _OWNER, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as owner:
        try:
            broker = int(owner.stdout.readline())
            with EmbeddedKafka.start(tmp_path / "other"):  # gives a broker that dies with a thread time to
                assert is_alive(broker)
        finally:
            owner.send_signal(signal.SIGKILL)
    wait_until(lambda: not is_alive(broker) and not living_in(tmp_path), 5, "neither broker nor guard")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num.io.threads": "none"}, r"cannot be formatted: .*num\.io\.threads"),
        ({"authorizer.class.name": "no.such.Class"}, r"has ended: .*no\.such\.Class"),
    ],
)
def test_broker_that_does_not_start_shows_its_log(tmp_path, settings, message):
    with pytest.raises(PermanentError, match=f"(?s)Kafka node 1: {message}"):
        EmbeddedKafka.start(tmp_path, settings=settings)
    wait_until(lambda: not living_in(tmp_path), 5, "no guard of a broker that has ended")  # it kills itself


def test_port_in_use_is_refused_at_once(tmp_path):
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PermanentError, match=f"{port}: in use"):
            EmbeddedKafka.start(tmp_path, port=port)


def test_two_reservations_never_hold_the_same_port():
    first, second = PortReservation(), PortReservation()
    try:
        port = first.reserve()
        assert second.reserve(port) != port
        with pytest.raises(PermanentError, match="in use"):
            second.reserve_exactly(port)
        first.release()
        assert second.reserve(port) == port
    finally:
        first.release()
        second.release()


def test_topic_made_again_has_another_id(admin, topic_prefix):
    name = f"{topic_prefix}a"
    assert admin.topic_ids([name]) == {name: None}
    assert admin.create_topic(name, 2)
    assert not admin.create_topic(name, 2)
    before = admin.topic_ids([name])[name]
    assert before is not None
    assert admin.describe([name]) == {name: TopicDescription(before, 2)}
    assert name in admin.list_topics()
    create_partitions(admin, name, 3)
    assert admin.describe([name]) == {name: TopicDescription(before, 3)}
    assert delete_topic(admin, name)
    assert not delete_topic(admin, name)
    assert admin.describe([name]) == {}
    assert admin.create_topic(name, 2)
    assert admin.topic_ids([name])[name] not in (None, before)


def test_offsets_follow_records_deletions_times_and_transactions(kafka, admin, topic_prefix):
    name = f"{topic_prefix}a"
    tp = TopicPartition(name, 0)
    admin.create_topic(name, 1)
    produce(kafka, name, range(10))
    assert delete_records(admin, {tp: 4}) == {tp: 4}
    assert admin.offsets([tp], "earliest") == {tp: 4}
    assert admin.offsets([tp], "latest") == {tp: 10}
    assert admin.offsets_at([tp], 0) == {tp: 4}
    assert admin.offsets_at([tp], 2**42) == {tp: 10}
    servers = {"bootstrap.servers": kafka.bootstrap_servers}
    producer = Producer({**servers, "transactional.id": name, **_QUIET})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"11", partition=0)
    producer.flush()
    assert admin.offsets([tp], "latest") == {tp: 11}
    assert admin.offsets([tp], "latest", committed_reads=True) == {tp: 10}
    producer.commit_transaction()
    # The marker, which takes an offset, is written after the commit has returned.
    wait_until(lambda: admin.offsets([tp], "latest", committed_reads=True) == {tp: 12}, 10, "the commit's marker")


@pytest.mark.parametrize(
    ("error", "message", "action"),
    [
        (
            TransientError,
            "does_not_exist:0: .*check that topic and partition exist|does_not_exist:0: .*check the topic's name",
            lambda a, _: a.offsets([TopicPartition("does_not_exist", 0)], "latest"),
        ),
        (
            TransientError,
            ":99: .*Unknown partition",
            lambda a, name: a.offsets([TopicPartition(name, n) for n in (0, 99)], "latest"),
        ),
        (PermanentError, "at most as many replicas", lambda a, name: a.create_topic(f"{name}b", 1, 2)),
        (PermanentError, "Topic name is invalid", lambda a, _: a.create_topic("a b", 1)),
        (PermanentError, "Unknown topic config", lambda a, name: a.create_topic(f"{name}b", 1, 1, {"x": "1"})),
        (PermanentError, "to 1 partitions: .*1 partition", lambda a, name: create_partitions(a, name, 1)),
    ],
)
def test_refusals_say_what_and_why(admin, topic_prefix, error, message, action):
    name = f"{topic_prefix}a"
    admin.create_topic(name, 1)
    with pytest.raises(error, match=message):
        action(admin, name)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"bootstrap.servers": "127.0.0.1:19"}, TransientError, "Connection refused: check that the brokers are up"),
        ({"bootstrap.servers": "no.such.host.invalid:1"}, TransientError, "Failed to resolve .* check the host"),
        (
            {"security.protocol": "SSL"},
            TransientError,
            "SSL .* check that the brokers are up, the address and security.protocol",
        ),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "a",
                "sasl.password": "b",
            },
            PermanentError,
            "check sasl.mechanism, user and password",
        ),
        ({"no.such.setting": "1"}, PermanentError, "No such configuration property"),
    ],
)
def test_connection_errors_say_what_to_mend(kafka, settings, error, message):
    with pytest.raises(error, match=message):
        KafkaAdmin({"bootstrap.servers": kafka.bootstrap_servers, **settings}, timeout_s=2).topic_ids(["t"])
