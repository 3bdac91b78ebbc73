"""Reading Kafka with a Python object for each record: slow and plain, what the native fetch is held against."""

from collections.abc import Collection, Mapping, Sequence
from typing import cast

import numpy as np
from confluent_kafka import Consumer

from kgs_core.ingest.fetch.fetch_client import FetchClient, Fetched
from kgs_core.ingest.fetch.small_topics import Longs
from kgs_core.ingest.fetch.topic_records import records_of
from kgs_core.kafka.clients import python_settings
from kgs_core.kafka.records import PARTITION_END, Record, arrived, record_bytes
from kgs_core.model import TopicPartition


class ObjectFetchSession(FetchClient):
    """A client whose records are Python objects."""

    def __init__(self, config: Mapping[str, str | int | bool]) -> None:
        self._consumer = Consumer(python_settings(config))
        super().__init__(self._consumer)
        self._held: list[Record] = []
        self._sizes: list[int] = []

    def _after(self, message: Record, tp: tuple[str, int]) -> int:
        """The next offset after an event: a record, or the end of the partition (past markers of transactions)."""
        offset: int = message.offset()
        return offset + 1 if message.error() is None else max(self._next[tp], offset)

    def _events(self, count: int, timeout_s: float, *, at_once: bool) -> list[Record]:
        if not at_once:
            return cast("list[Record]", self._consumer.consume(count, timeout_s))
        return arrived(self._consumer, count, timeout_s)

    def _poll(self, count: int, timeout_s: float, *, at_once: bool) -> int:
        new = self._events(count, timeout_s, at_once=at_once)
        self._hold(new)
        return len(new)

    def _hold(self, events: list[Record]) -> None:
        sizes = [record_bytes(event) if event.error() is None else 0 for event in events]
        self._held += events
        self._sizes += sizes
        self._waiting_bytes += sum(sizes)

    def _has_held(self) -> bool:
        return bool(self._held)

    def _drop_held(self) -> None:
        self._held, self._sizes, self._waiting_bytes = [], [], 0

    def _expect(self, tps: Sequence[TopicPartition], kept: Collection[tuple[str, int]]) -> None:
        """Nothing to prepare: a record names its topic."""
        held = self._held
        self._drop_held()
        self._hold([message for message in held if (message.topic(), message.partition()) in kept])

    def _held_events(self) -> tuple[Longs, Longs]:
        numbers: dict[str, int] = {}
        topics = [numbers.setdefault(message.topic(), len(numbers)) for message in self._held]
        return np.array(topics, np.int64), np.array(self._sizes, np.int64)

    def _reorder(self, order: Longs) -> None:
        self._held, self._sizes = [self._held[i] for i in order], [self._sizes[i] for i in order]

    def _take(self, fetched: Fetched, batch_bytes: int, most: int) -> None:
        held, sizes = self._held, self._sizes
        messages: dict[str, list[Record]] = {}
        following, end = self._next, most
        for i, message in enumerate(held[:most]):
            tp, error = (message.topic(), message.partition()), message.error()  # a plain tuple: this loop is hot
            if tp not in following or tp in fetched.troubles or (error is not None and error.code() != PARTITION_END):
                self._note_error(fetched, TopicPartition(*tp), error)
                continue
            if error is None:
                if message.offset() < following[tp]:
                    continue  # taken already: librdkafka gives no offset twice, and a row must not hang on that
                if fetched.records and fetched.consumed_bytes + sizes[i] > batch_bytes:
                    end = i
                    break
                messages.setdefault(tp[0], []).append(message)
                fetched.consumed_bytes += sizes[i]
                fetched.records += 1
            following[tp] = self._after(message, tp)
        self._held, self._sizes = held[end:], sizes[end:]
        self._waiting_bytes = sum(self._sizes)
        fetched.topics = {topic: records_of(found) for topic, found in messages.items()}
