"""Produce -> committed with nothing else to do: one record at a time, seen in the table's log from outside."""

import random
import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import KafkaException, Producer

from kgs_core.errors import TransientError
from kgs_core.kafka.errors import port_error

_POLL_S = 0.001
_TIMEOUT_S = 60.0
_PAUSE_S = (0.1, 0.5)  # drawn anew each time, so that producing does not fall into step with the consumer's rounds


class LogWatch:
    """Waits for commits with rows in one table's log, by the next version's file: commits appear whole, by a link."""

    def __init__(self, table: Path) -> None:
        self._log = table / "_delta_log"
        versions = [int(file.stem) for file in self._log.glob("*.json") if file.stem.isdigit()]
        self._version = max(versions, default=-1)

    def has_new_rows(self) -> bool:
        """Whether rows have been committed since the last call that said so; one look at the file system."""
        while (file := self._log / f"{self._version + 1:020}.json").exists():
            self._version += 1
            if b'{"add":' in file.read_bytes():
                return True
        return False


def measure_latency(
    servers: str,
    tables: Sequence[tuple[str, Path]],
    partitions: int,
    values: Sequence[bytes],
    records: int,
    settle: int,
) -> list[float]:
    """Seconds from producing (acks=all) to the commit, of each of so many records.

    Args:
        tables: topics to produce to in turn, each with the table that its rows come to.
        settle: records before these, not measured: a client's first fetch of a topic takes up to a second.

    Raises:
        TransientError: a record was not committed within a minute, or not taken by the broker.
    """
    source = random.Random()  # noqa: S311 - pauses
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": 0, "log_level": 2})
    found = []
    for number in range(settle + records):
        topic, table = tables[number % len(tables)]
        time.sleep(source.uniform(*_PAUSE_S))
        took = _one(servers, producer, topic, source.randrange(partitions), values[number % len(values)], table)
        if number >= settle:
            found.append(took)
    return found


def _one(servers: str, producer: Producer, topic: str, partition: int, value: bytes, table: Path) -> float:
    watch = LogWatch(table)
    began = time.perf_counter()
    try:
        producer.produce(topic, value, partition=partition)
        while not watch.has_new_rows():
            producer.poll(0)
            if time.perf_counter() - began > _TIMEOUT_S:
                raise TransientError(f"bench: a record of {topic} was not committed in {_TIMEOUT_S:g} s")
            time.sleep(_POLL_S)
    except KafkaException as e:
        raise port_error(servers, "produce", e.args[0]) from e
    took = time.perf_counter() - began
    producer.flush(_TIMEOUT_S)
    return took
