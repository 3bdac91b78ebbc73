"""Kafka from memory, and the registry's answers: all that is not real in a case."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal

from confluent_kafka import KafkaError
from confluent_kafka.schema_registry import Schema
from confluent_kafka.schema_registry.error import SchemaRegistryError

from kgs_core.kafka.topic_description import TopicDescription
from kgs_core.model import OffsetRange, TopicId, TopicPartition
from tests.combinations.case import NEW, OLD, PARTITIONS, Record, Rule
from tests.combinations.values import AVRO, JSON_SCHEMA, PROTOBUF, Message, partition_of
from tests.protobuf_values import file_of, registered_text


@dataclass
class MemoryKafka:
    """Topics, each of which may have had several lives: topic id -> partition -> its log."""

    rule: Rule
    lives: dict[str, dict[str, list[list[Message]]]] = field(default_factory=dict)
    sent: int = 0

    def __post_init__(self) -> None:
        for topic in self.rule.topics:
            self.lives[topic] = {}
            self.make(topic)

    def make(self, topic: str) -> None:
        self.lives[topic][f"{topic}-id{len(self.lives[topic]) + 1}"] = [[] for _ in range(PARTITIONS)]

    def send(self, record: Record) -> None:
        partition, self.sent = partition_of(record), self.sent + 1
        log = self.log(record.topic)[partition]
        where = record.topic, self.id_of(record.topic), partition, len(log)
        log.append(Message(*where, self.sent, record, self.rule))

    def id_of(self, topic: str) -> TopicId:
        return TopicId(list(self.lives[topic])[-1])

    def log(self, topic: str) -> list[list[Message]]:
        return self.lives[topic][self.id_of(topic)]

    @property
    def has_made_again(self) -> bool:
        return any(len(lives) > 1 for lives in self.lives.values())

    # What is asked of `KafkaAdmin`

    def list_topics(self) -> list[str]:
        return list(self.lives)

    def describe(self, topics: Collection[str]) -> dict[str, TopicDescription]:
        return {t: TopicDescription(self.id_of(t), PARTITIONS) for t in topics if t in self.lives}

    def each_topic_id(self, topics: Collection[str]) -> dict[str, TopicId]:
        return {topic: self.id_of(topic) for topic in topics}

    def offsets(
        self, tps: Collection[TopicPartition], which: Literal["earliest", "latest"], *, committed_reads: bool = False
    ) -> dict[TopicPartition, int]:
        return {tp: 0 if which == "earliest" else len(self.log(tp.topic)[tp.partition]) for tp in tps}

    each_offset = offsets

    def load(self, _: object, __: object, topic: str, spans: Mapping[int, OffsetRange], ___: object, take: Any) -> None:
        """What is done in place of `load_log`."""
        for partition, span in spans.items():
            take([Delivered(topic, partition, each) for each in self.log(topic)[partition][span.start : span.end]])


class Delivered:
    """A record as librdkafka hands it out; without a message the event that a position is out of range."""

    def __init__(self, topic: str, partition: int, message: Message | None) -> None:
        self._place, self._message = (topic, partition), message

    def topic(self) -> str:
        return self._place[0]

    def partition(self) -> int:
        return self._place[1]

    def error(self) -> KafkaError | None:
        return None if self._message else KafkaError(KafkaError.OFFSET_OUT_OF_RANGE)

    def offset(self) -> int:
        return self._message.offset if self._message else -1

    def timestamp(self) -> tuple[int, int]:
        return 1, self._message.timestamp

    def key(self) -> bytes | None:
        return self._message.key

    def value(self) -> bytes | None:
        return self._message.value

    def __len__(self) -> int:
        return len(self.value() or b"")

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        if self._message.has_bad_header:
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
        return self._message.headers

    def set_headers(self, headers: object) -> None:
        """So that nobody asks again."""

    def leader_epoch(self) -> int | None:
        return 0


class LogClient:
    """What a consumer's client of librdkafka does: it delivers each assigned partition from its position."""

    def __init__(self, kafka: MemoryKafka) -> None:
        self._kafka = kafka
        self._next: dict[tuple[str, int], int] = {}

    def assign(self, partitions: Collection[Any]) -> None:
        self._next = {}
        self.incremental_assign(partitions)

    def incremental_assign(self, partitions: Collection[Any]) -> None:
        self._next |= {(p.topic, p.partition): p.offset for p in partitions}

    def incremental_unassign(self, partitions: Collection[Any]) -> None:
        for p in partitions:
            self._next.pop((p.topic, p.partition), None)

    def seek(self, partition: Any) -> None:
        self._next[(partition.topic, partition.partition)] = partition.offset

    def list_topics(self, topic: str | None = None, timeout: float = 0) -> None:
        """Nothing to learn."""

    def close(self) -> None:
        """Nothing is open."""

    def consume(self, most: int, timeout_s: float) -> list[Delivered]:
        found: list[Delivered] = []
        for (topic, partition), position in sorted(self._next.items()):
            log = self._kafka.log(topic)[partition]
            if position > len(log):
                found.append(Delivered(topic, partition, None))
                del self._next[(topic, partition)]
                continue
            new = log[position : position + most - len(found)]
            found += [Delivered(topic, partition, message) for message in new]
            self._next[(topic, partition)] = position + len(new)
        return found


@dataclass
class RegistryAnswers:
    """What the registry has, and how it answers now."""

    format: str
    known: set[int] = field(default_factory=lambda: {OLD})
    how: str = "answers"

    def schema(self, number: int) -> Schema:
        """The answer about an id.

        Raises:
            SchemaRegistryError: it has none, or does not answer.
        """
        if self.how == "away":
            raise SchemaRegistryError(503, 50301, "away")
        if number not in self.known or self.how == f"forgets {number}":
            raise SchemaRegistryError(404, 40403, "Schema not found")
        return _schema(self.format, number)


def _schema(form: str, number: int) -> Schema:
    if form == "avro":
        return Schema(AVRO[number], "AVRO")
    if form == "json_schema":
        return Schema(JSON_SCHEMA[number], "JSON")
    return Schema(registered_text(file_of(PROTOBUF[number], name=f"r{number}.proto")), "PROTOBUF")


class RegistryConnection:
    """What confluent-kafka's client of a registry would answer."""

    def __init__(self, answers: RegistryAnswers) -> None:
        self._answers = answers

    def get_schema(self, number: int, **_: object) -> Schema:
        return self._answers.schema(number)

    def get_latest_version(self, subject: str) -> SimpleNamespace:
        newest = NEW if NEW in self._answers.known else OLD
        return SimpleNamespace(schema=self._answers.schema(newest), schema_id=newest)

    def clear_latest_caches(self) -> None:
        """Nothing is kept."""

    clear_caches = close = clear_latest_caches
