"""Brokers that die, freeze, or end in order; leaders that move; an election that costs acknowledged records; quotas."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # declares no re-exports
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from kafka import TopicPartition as KafkaPythonPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from tests.system.chaos.nemesis import Fault, Heal, Nemesis
from tests.system.chaos.quota import set_quota
from tests.system.chaos.stage import Stage

ASKED_S = 8.0
SEEN_S = 30.0
APART_S = 3.0
QUOTA_SHARE = 0.5
PREFERRED, UNCLEAN = 0, 1
UNCLEAN_SETTING = "unclean.leader.election.enable"


def _chosen(nemesis: Nemesis) -> int:
    node = nemesis.random.choice(nemesis.stage.brokers.nodes)
    nemesis.journal.tell(f"chosen: broker {node}")
    return node


def kill_broker(nemesis: Nemesis) -> Heal:
    return nemesis.stage.brokers.kill(_chosen(nemesis))


def end_broker(nemesis: Nemesis) -> Heal:
    kafka = nemesis.stage.kafka
    node = kafka.nodes[_chosen(nemesis) - 1]
    node.end(20.0)
    return lambda: kafka.restart(node)


def freeze_broker(nemesis: Nemesis) -> Heal:
    """As a machine without power: nobody is told, and no connection is reset."""
    return nemesis.stage.brokers.freeze(_chosen(nemesis))


def kill_two_brokers(nemesis: Nemesis) -> Heal:
    """Nobody can write, and nobody leads the cluster."""
    kafka = nemesis.stage.kafka
    two = nemesis.random.sample(kafka.nodes, 2)
    for node in two:
        node.kill()

    def back() -> None:
        for node in two:
            node.begin()  # neither serves without the other
        for node in two:
            node.wait_ready()

    return back


def restart_brokers_in_turn(nemesis: Nemesis) -> None:
    """As an upgrade does it."""
    kafka = nemesis.stage.kafka
    for node in nemesis.random.sample(kafka.nodes, len(kafka.nodes)):
        node.end(20.0)
        kafka.restart(node)
        _wait(lambda: not _behind(nemesis.stage), "every replica is in sync")
        nemesis.stage.control.keep()


def move_leaders(nemesis: Nemesis) -> None:
    """Every partition, of Kafka's own topics too, gets its replicas in another order, and the first one leads."""
    stage = nemesis.stage
    turned, topics = {}, {}
    for topic, found in stage.admin.list_topics(timeout=ASKED_S).topics.items():
        topics[topic] = list(found.partitions)
        for number, partition in found.partitions.items():
            turn = nemesis.random.randrange(len(partition.replicas))
            turned[KafkaPythonPartition(topic, number)] = [*partition.replicas[turn:], *partition.replicas[:turn]]
    with _kafka_python(stage) as client:
        client.alter_partition_reassignments(turned)
        client.elect_leaders(PREFERRED, topics, raise_errors=False)


@contextmanager
def _kafka_python(stage: Stage) -> Iterator[KafkaAdminClient]:
    """Elections and reassignments: confluent-kafka knows none that work."""
    servers = stage.kafka.bootstrap_servers.split(",")
    try:
        client = KafkaAdminClient(bootstrap_servers=servers, request_timeout_ms=int(ASKED_S * 1000))
        try:
            yield client
        finally:
            client.close()
    except KafkaError as e:
        raise LookupError(repr(e)) from e


def throttle_readers(nemesis: Nemesis) -> Heal:
    """No client may read as fast as is written."""
    bootstrap = nemesis.stage.kafka.bootstrap_servers
    set_quota(bootstrap, nemesis.stage.options.bytes_per_s * QUOTA_SHARE / len(nemesis.stage.kafka.nodes))
    return lambda: set_quota(bootstrap, None)


def unclean_election(nemesis: Nemesis) -> None:
    """A replica that has missed acknowledged records comes to lead: Kafka loses them, and gives their offsets again."""
    stage, kafka = nemesis.stage, nemesis.stage.kafka
    topic, number = stage.unclean_topic, nemesis.random.randrange(stage.partitions[stage.unclean_topic])
    nodes = {node.node_id: node for node in kafka.nodes}
    partition = _partition(stage, topic, number)
    leader, (other, *_) = partition.leader, [id_ for id_ in partition.replicas if id_ != partition.leader]
    nodes[other].kill()
    _wait(lambda: list(_partition(stage, topic, number).isrs) == [leader], f"{leader} alone is in sync")
    time.sleep(nemesis.random.uniform(APART_S, 2 * APART_S))  # records that only the leader has
    nodes[leader].kill()
    try:
        kafka.restart(nodes[other])
        _allow_unclean(stage, topic, "true")

        def elected() -> bool:
            with _kafka_python(stage) as client:
                client.elect_leaders(UNCLEAN, {topic: [number]}, raise_errors=False)
            return bool(_partition(stage, topic, number).leader == other)

        _wait(elected, f"{other} leads")
        stage.truncated.append((topic, number))
        nemesis.journal.tell("unclean election", partition=f"{topic}:{number}", lost_by=leader, leader=other)
        time.sleep(nemesis.random.uniform(0, APART_S))  # offsets are given again
    finally:
        for node in (nodes[other], nodes[leader]):
            kafka.restart(node)
    _wait(lambda: not _behind(stage), "every replica is in sync")
    _allow_unclean(stage, topic, "false")


def _allow_unclean(stage: Stage, topic: str, value: str) -> None:
    entry = ConfigEntry(UNCLEAN_SETTING, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for future in stage.admin.incremental_alter_configs([resource], request_timeout=ASKED_S).values():
        future.result()


def _partition(stage: Stage, topic: str, number: int) -> Any:
    return stage.admin.list_topics(topic, timeout=ASKED_S).topics[topic].partitions[number]


def _behind(stage: Stage) -> list[str]:
    """Partitions with a replica that is not in sync."""
    topics = stage.admin.list_topics(timeout=ASKED_S).topics
    return [
        f"{t}:{n}" for t, each in topics.items() for n, p in each.partitions.items() if len(p.isrs) < len(p.replicas)
    ]


def _wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SEEN_S
    while True:
        try:
            if condition():
                return
        except (KafkaException, LookupError):  # no leader yet, no answer
            pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {SEEN_S} s: {what}")
        time.sleep(0.3)


def _is_alone(stage: Stage) -> bool:
    return len(stage.kafka.nodes) == 1


def _are_three(stage: Stage) -> bool:
    return len(stage.kafka.nodes) > 1


_ONE = (kill_broker, end_broker, freeze_broker)
FAULTS = (
    *(Fault(strike, "brokers", fits=_is_alone, alone="brokers", excused_s=20.0) for strike in _ONE),
    *(Fault(strike, "brokers", (3.0, 25.0), fits=_are_three, alone="brokers") for strike in _ONE),
    Fault(kill_two_brokers, "brokers", fits=_are_three, alone="brokers", excused_s=20.0),
    Fault(restart_brokers_in_turn, "brokers", fits=_are_three, alone="brokers"),
    Fault(move_leaders, "brokers", fits=_are_three, alone="brokers"),
    Fault(throttle_readers, "brokers", alone="quota", excused_s=20.0),
    Fault(unclean_election, "truncation", fits=_are_three, alone="brokers", excused_s=20.0),
)
