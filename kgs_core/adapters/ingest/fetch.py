"""Reading Kafka with a Python object for each record: batches where the native way does not fit, and exact ranges."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import cast

import numpy as np
from confluent_kafka import Consumer

from kgs_core.adapters.ingest.fetch_client import POLL_MESSAGES, POLL_S, FetchClient, Fetched, trouble_of
from kgs_core.adapters.ingest.small_topics import Longs
from kgs_core.adapters.ingest.topic_records import records_of
from kgs_core.adapters.kafka.clients import python_settings
from kgs_core.adapters.kafka.records import PARTITION_END, Record, arrived, record_bytes
from kgs_core.consumer.round.stops import StopCause
from kgs_core.model import OffsetRange, TopicPartition


class UnreadableError(Exception):
    """A partition of an exact range is in trouble."""

    def __init__(self, tp: TopicPartition, trouble: StopCause, words: str) -> None:
        super().__init__(f"{tp}: {words}")
        self.tp = tp
        self.trouble = trouble
        self.words = words


class SilentError(Exception):
    """Partitions of an exact range give nothing: neither records nor an error."""

    def __init__(self, tps: Collection[TopicPartition], words: str) -> None:
        super().__init__(words)
        self.tps = tuple(tps)


class FetchSession(FetchClient):
    """A client whose records are Python objects."""

    def __init__(self, config: Mapping[str, str | int | bool]) -> None:
        self._consumer = Consumer(python_settings(config))
        super().__init__(self._consumer)
        self._held: list[Record] = []
        self._sizes: list[int] = []

    def read_exact(
        self, ranges: Mapping[TopicPartition, OffsetRange], timeout_s: float, chunk_bytes: int = 8_000_000
    ) -> Iterator[list[Record]]:
        """Every record of exactly these ranges, in chunks. Called again with the same ranges it gives the same rows.

        Raises:
            UnreadableError: a partition cannot be read on.
            SilentError: nothing has come for `timeout_s`.
        """
        self._position({tp: r.start for tp, r in ranges.items()})
        ends = {tp: r.end for tp, r in ranges.items()}
        deadline = time.monotonic() + timeout_s
        chunk: list[Record] = []
        events = self._held
        self._drop_held()
        while True:
            for message in events:
                self._sort_in(message, ends, chunk)
            missing = {tp: f"{self._next[tp]} to {end - 1}" for tp, end in ends.items() if self._next[tp] < end}
            if not missing:
                break
            if time.monotonic() > deadline:
                offsets = ", ".join(f"{tp}: {wanted}" for tp, wanted in missing.items())
                raise SilentError(missing, f"nothing came for {timeout_s:g} s, still to read: {offsets}")
            if sum(map(record_bytes, chunk)) >= chunk_bytes:
                yield chunk
                chunk = []
            # Exactly as many as are missing, so that the call returns with the last of them.
            count = sum(max(0, end - self._next[tp]) for tp, end in ends.items())
            events = self._events(min(count, POLL_MESSAGES), POLL_S, at_once=False)
            if events:
                deadline = time.monotonic() + timeout_s
        if chunk:
            yield chunk

    def _sort_in(self, message: Record, ends: Mapping[TopicPartition, int], chunk: list[Record]) -> None:
        """Put one event into the chunk, or keep it for the next batch if it lies at or past its partition's end."""
        tp, error = TopicPartition(message.topic(), message.partition()), message.error()
        if error is not None and tp in ends and (trouble := trouble_of(error)) is not None:
            words = f"offset {self._next[tp]}: {error.str()}"
            self._begin_anew()
            raise UnreadableError(tp, trouble, words)
        if tp not in ends or (error is not None and error.code() != PARTITION_END):
            return
        if error is None and message.offset() < self._next[tp]:
            return  # as in `_take`
        if message.offset() < ends[tp]:
            self._next[tp] = self._after(message, tp)
            if error is None:
                chunk.append(message)
            return
        # Events come in order, so whatever lies past the end says that all before it has been delivered.
        self._next[tp] = ends[tp]
        if error is None or message.offset() > ends[tp]:
            self._hold([message])

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

    def _expect(self, tps: Sequence[TopicPartition], kept: Collection[tuple[str, int]]) -> None:  # noqa: ARG002
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
