"""Measures how long a reading of very many partitions takes the monitor, on a broker of its own."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.scale_load import PARTITIONS_OF_A_TOPIC, partitions_of, scale_settings
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import TransientError
from kgs_core.monitor.kafka.partition_sizes import PartitionSizes

_TOPICS_AT_ONCE = 50
_PATIENCE_S = 120.0
_POLL_S = 1.0
_CONSUMERS = 10  # nobody reads


@dataclass(frozen=True, slots=True)
class TimedReading:
    """One reading: what it took, and how many partitions it knows."""

    seconds: float
    cpu_s: float
    partitions: int
    unknown: int


def time_readings(directory: Path, partitions: int, readings: int, say: Callable[[str], None]) -> list[TimedReading]:
    """So many readings, a second apart, once one has known all; every tenth second one asks for ids and starts, too.

    Raises:
        PermanentError: no broker can be started.
        TransientError: the topics are not served in time, or it does not answer.
    """
    with EmbeddedKafka.start(directory) as kafka:
        _make_topics(kafka.bootstrap_servers, partitions)
        say(f"{partitions} partitions are there")
        sizes = PartitionSizes(scale_settings(kafka.bootstrap_servers))
        found = []
        try:
            _settle(sizes)
            for _ in range(readings):
                began, cpu_s = time.monotonic(), time.process_time()
                reading = sizes.read()
                took_s, used_s = time.monotonic() - began, time.process_time() - cpu_s
                found.append(TimedReading(took_s, used_s, len(reading.partitions), len(reading.unknown)))
                time.sleep(_POLL_S)
        finally:
            sizes.close()
    return found


def _make_topics(bootstrap_servers: str, partitions: int) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 2})
    names = sorted({tp.topic for tp in partitions_of(partitions)})
    for first in range(0, len(names), _TOPICS_AT_ONCE):
        some = [NewTopic(name, PARTITIONS_OF_A_TOPIC, 1) for name in names[first : first + _TOPICS_AT_ONCE]]
        for made in client.create_topics(some, request_timeout=_PATIENCE_S).values():
            made.result(_PATIENCE_S)
    deadline = time.monotonic() + _PATIENCE_S
    while not _is_served(client, names):
        if time.monotonic() > deadline:
            raise TransientError(f"bench readings: {partitions} partitions not served in {_PATIENCE_S:g} s")
        time.sleep(_POLL_S)


def _settle(sizes: PartitionSizes) -> None:
    """Readings until one knows all: a broker leads new partitions before it has their logs."""
    deadline = time.monotonic() + _PATIENCE_S
    while sizes.read().unknown:
        if time.monotonic() > deadline:
            raise TransientError(f"bench readings: no reading knew all partitions in {_PATIENCE_S:g} s")
        time.sleep(_POLL_S)


def _is_served(client: AdminClient, names: list[str]) -> bool:
    topics = client.list_topics(timeout=_PATIENCE_S).topics
    leaders = [p.leader for name in names if name in topics for p in topics[name].partitions.values()]
    return len(leaders) == len(names) * PARTITIONS_OF_A_TOPIC and min(leaders, default=-1) >= 0
