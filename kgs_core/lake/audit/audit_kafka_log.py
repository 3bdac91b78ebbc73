"""Which offsets of a topic hold a record: the log read as a reader of committed records sees it, values thrown away."""

import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPosition

from kgs_core.config import Settings
from kgs_core.errors import PermanentError, TransientError
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.clients import consumer_of
from kgs_core.kafka.errors import port_error
from kgs_core.kafka.records import PARTITION_END, RANGE_ERRORS, Record, arrived
from kgs_core.lake.rule import LogPart, Offsets
from kgs_core.model import OffsetRange, TopicPartition

POLL_MESSAGES = 10_000
POLL_S = 0.1
STALLED_S = 30.0
Advance = Callable[[int, int], None]
"""Is told offsets read and offsets to read."""
Taken = Callable[[Sequence[Record]], None]
"""Is given the records, some at a time."""


def load_log(
    settings: Settings,
    admin: KafkaAdmin,
    topic: str,
    wanted: Mapping[int, OffsetRange],
    advance: Advance,
    taken: Taken = lambda _: None,
) -> dict[int, LogPart]:
    """What the log has of the wanted offsets of each partition. Takes 8 bytes of memory per record.

    Raises:
        PortError: Kafka did not answer, or refused.
    """
    tps = {TopicPartition(topic, partition): span for partition, span in wanted.items()}
    first = admin.offsets(tps, "earliest")
    end = admin.offsets(tps, "latest", committed_reads=True)
    spans = {tp.partition: OffsetRange(max(span.start, first[tp]), min(span.end, end[tp])) for tp, span in tps.items()}
    reading = LogReading(settings, admin, topic, {p: span for p, span in spans.items() if span.end > span.start}, taken)
    found = reading.run(advance)
    return {tp.partition: replace(LogPart(*found.get(tp.partition, ())), start=first[tp], end=end[tp]) for tp in tps}


class LogReading:
    """One pass over ranges of one topic, each of which must have been written; used once."""

    def __init__(
        self, settings: Settings, admin: KafkaAdmin, topic: str, spans: Mapping[int, OffsetRange], taken: Taken
    ) -> None:
        self._settings, self._admin, self._topic, self._taken = settings, admin, topic, taken
        self._spans = dict(spans)
        self._total = sum(span.end - span.start for span in spans.values())
        self._next = {partition: span.start for partition, span in spans.items()}
        self._open = set(spans)
        self._found = {partition: array("q") for partition in spans}

    def run(self, advance: Advance) -> dict[int, tuple[OffsetRange, Offsets]]:
        """Per partition the range that was read, and its offsets with a record, ascending.

        The range is shorter than the one asked for where the log was deleted in the meantime.

        Raises:
            PortError: Kafka refused, or sent nothing for half a minute.
        """
        if self._open:
            with consumer_of(self._settings) as consumer:
                self._read(consumer, advance)
        return {p: (span, np.array(self._found[p], np.int64)) for p, span in self._spans.items()}

    def _read(self, consumer: Consumer, advance: Advance) -> None:
        self._assign(consumer)
        progress_at, problem = time.monotonic(), None
        while self._open:
            before = dict(self._next), len(self._open)
            messages = arrived(consumer, POLL_MESSAGES, POLL_S)
            if records := [m for m in messages if m.error() is None]:
                self._taken(records)
            for message in messages:
                if message.error() is None:
                    self._take(message.partition(), message.offset())
                else:
                    problem = self._take_event(consumer, message) or problem
            if before != (self._next, len(self._open)):
                progress_at = time.monotonic()
                advance(self._total - sum(self._spans[p].end - self._next[p] for p in self._open), self._total)
            elif time.monotonic() - progress_at > STALLED_S:
                raise TransientError(f"topic {self._topic}: no records for {STALLED_S:.0f} s: {problem or 'no answer'}")

    def _assign(self, consumer: Consumer) -> None:
        consumer.assign([KafkaPosition(self._topic, p, self._next[p]) for p in sorted(self._open)])

    def _take(self, partition: int, offset: int) -> None:
        if partition not in self._open or offset < self._next[partition]:  # sent twice, before and after an `assign`
            return
        end = self._spans[partition].end
        if offset < end:
            self._found[partition].append(offset)
        self._reached(partition, offset + 1)

    def _reached(self, partition: int, offset: int) -> None:
        self._next[partition] = max(self._next[partition], min(offset, self._spans[partition].end))
        if offset >= self._spans[partition].end:
            self._open.discard(partition)

    def _take_event(self, consumer: Consumer, message: Record) -> str | None:
        """What does not pass by itself is raised; the words of what may."""
        error, partition = message.error(), message.partition()
        if error is None or (error.code() == PARTITION_END and partition not in self._open):
            return None
        if error.code() == PARTITION_END:
            self._reached(partition, message.offset())  # past markers of transactions
            return None
        if error.code() in RANGE_ERRORS and partition in self._open:
            self._skip_deleted(consumer, partition)
            return None
        failure = port_error(self._settings.kafka.bootstrap_servers, f"read topic '{self._topic}'", error)
        if isinstance(failure, PermanentError):
            raise failure
        return str(failure)

    def _skip_deleted(self, consumer: Consumer, partition: int) -> None:
        """Go on where the log begins now."""
        tp = TopicPartition(self._topic, partition)
        first, end = self._admin.offsets([tp], "earliest")[tp], self._spans[partition].end
        if first <= self._next[partition]:
            raise TransientError(f"{tp}: offset {self._next[partition]} cannot be read: audit again")
        self._found[partition] = array("q", [o for o in self._found[partition] if o >= first])
        self._spans[partition] = OffsetRange(min(first, end), end)
        self._reached(partition, first)
        self._assign(consumer)
