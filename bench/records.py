"""The records of the benchmarks, of several kinds, and the backlogs made of them. JSON of 1 KB is two fifths random."""

import itertools
import json
import random
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException, Producer

from kgs_core.config.registry import RegistrySettings
from kgs_core.errors import ConfigError, TransientError
from kgs_core.kafka.errors import port_error

RECORD_BYTES = 978
FIELDS: Mapping[str, str] = {
    "id": "long",
    "device": "string",
    "at": "timestamp",
    "reading": "double",
    "count": "int",
    "ok": "boolean",
    "note": "string",
    "payload": "string",
}
SMALL_BYTES = 100
SMALL_FIELDS: Mapping[str, str] = {name: FIELDS[name] for name in ("id", "device", "reading", "count", "ok")}
_RANDOM_BYTES = 294  # 392 characters of base64: 40 % of a record
DIFFERENT = 20_000
"""Records that a backlog repeats."""
_RUN = 500  # records of one partition in a row
_FLUSH_S = 60.0
_WORDS = "the quick brown fox jumps over the lazy dog while seven wizards box "
_PRODUCER: Mapping[str, str | int] = {
    "acks": "all",
    "linger.ms": 20,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 262_144,
    "log_level": 2,
}

KINDS = ("json-1000", "raw-1000", "json-100")
"""Names of kinds of records; the number is about that of their bytes."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Kind of records, and how they are read.

    Attributes:
        source: name of the topics that have them; kinds of one source share these.
        rule: what a topic's rule has besides the topic.
        values: different records; a backlog repeats them.
        registry: where schemas are.
    """

    name: str
    source: str
    rule: Mapping[str, Any]
    values: Sequence[bytes]
    registry: RegistrySettings | None = None


def kind_of_records(name: str) -> Kind:
    """JSON of two sizes, the larger also unparsed.

    Raises:
        ConfigError: there is none of this name.
    """
    match name:
        case "json-1000":
            return Kind(name, "1000", {"format": "json", "schema": dict(FIELDS)}, record_values(DIFFERENT))
        case "raw-1000":
            return Kind(name, "1000", {"format": "raw"}, record_values(DIFFERENT))
        case "json-100":
            rule = {"format": "json", "schema": dict(SMALL_FIELDS)}
            return Kind(name, "100", rule, record_values(DIFFERENT, size=SMALL_BYTES))
        case _:
            raise ConfigError([f"--records: '{name}': write {', '.join(KINDS[:-1])} or {KINDS[-1]}"])


def record_values(count: int, seed: int = 1, size: int = RECORD_BYTES) -> list[bytes]:
    """Different records, each of exactly `size` bytes: `RECORD_BYTES`, or `SMALL_BYTES` with `SMALL_FIELDS`."""
    source = random.Random(seed)  # noqa: S311 - test data
    make = _value if size == RECORD_BYTES else _small_value
    return [make(number, source) for number in range(count)]


def _small_value(number: int, source: random.Random) -> bytes:
    record = {
        "id": number,
        "device": f"device-{source.randrange(1000):04d}",
        "reading": round(source.uniform(-50, 150), 3),
        "count": source.randrange(1_000_000),
        "ok": number % 3 == 0,
    }
    missing = SMALL_BYTES - len(json.dumps(record))
    record["device"] = f"{record['device']}{'.' * missing}"
    return json.dumps(record).encode()


def _value(number: int, source: random.Random) -> bytes:
    record = {
        "id": number,
        "device": f"device-{source.randrange(1000):04d}",
        "at": f"2026-01-{1 + number % 28:02d}T{number % 24:02d}:{number % 60:02d}:00Z",
        "reading": round(source.uniform(-50, 150), 3),
        "count": source.randrange(1_000_000),
        "ok": number % 3 == 0,
        "note": "",
        "payload": b64encode(source.randbytes(_RANDOM_BYTES)).decode(),
    }
    missing = RECORD_BYTES - len(json.dumps(record))
    record["note"] = (_WORDS * (missing // len(_WORDS) + 1))[:missing]
    return json.dumps(record).encode()


def produce_backlog(
    servers: str,
    topics: Sequence[str],
    partitions: int,
    topic_bytes: int,
    values: Sequence[bytes],
    *,
    compression: str = "none",
) -> int:
    """Fill each topic with `topic_bytes`, spread over its partitions; returns the number of records.

    Args:
        values: of the records, in turn.

    Raises:
        PortError: the broker did not take them all.
    """
    failed: list[object] = []

    def delivered(error: object, _: object) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer(
        {**_PRODUCER, "compression.type": compression, "bootstrap.servers": servers, "on_delivery": delivered}
    )
    per_partition = -(-topic_bytes * len(values) // (sum(map(len, values)) * partitions))
    try:
        for start in range(0, per_partition, _RUN):
            run = [values[number % len(values)] for number in range(start, min(start + _RUN, per_partition))]
            for partition, topic in itertools.product(range(partitions), topics):
                _produce(producer, topic, partition, run)
        left = producer.flush(_FLUSH_S)
    except KafkaException as e:
        raise port_error(servers, "produce", e.args[0]) from e
    if left or failed:
        raise TransientError(f"Kafka {servers}: {left + len(failed)} records of the backlog were not delivered")
    return per_partition * partitions * len(topics)


def _produce(producer: Producer, topic: str, partition: int, values: Sequence[bytes]) -> None:
    for value in values:
        while True:
            try:
                producer.produce(topic, value, partition=partition)
            except BufferError:  # the queue is full: wait for answers
                producer.poll(0.05)
            else:
                break
