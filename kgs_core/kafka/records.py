"""Records of Kafka as its adapters see them: what has come to a client, and what one holds."""

import gc
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from operator import methodcaller
from typing import Protocol, cast

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPosition

from kgs_core.errors import TransientError
from kgs_core.kafka.errors import port_error
from kgs_core.model import OffsetRange, TopicPartition

PARTITION_END = KafkaError._PARTITION_EOF  # noqa: SLF001 - a public constant
"""Code of the event that a partition is read to its end."""
RANGE_ERRORS = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}  # noqa: SLF001 - public constants
"""Codes of the events that the log does not have the next offset."""
_POLL_S = 0.2
_AT_ONCE = 500

Headers = list[tuple[str, bytes | str | None]]
UNREADABLE: Headers = []
"""Headers with a key that is not UTF-8; known by identity."""
_headers = methodcaller("headers")


class Record(Protocol):
    """A record, or an event of a partition, as librdkafka hands it out (whose own type leaves everything optional)."""

    def __len__(self) -> int: ...
    def topic(self) -> str: ...  # noqa: D102
    def partition(self) -> int: ...  # noqa: D102
    def offset(self) -> int: ...  # noqa: D102
    def timestamp(self) -> tuple[int, int]: ...  # noqa: D102
    def key(self) -> bytes | None: ...  # noqa: D102
    def value(self) -> bytes | None: ...  # noqa: D102
    def headers(self) -> Headers | None: ...  # noqa: D102
    def set_headers(self, headers: Headers) -> None: ...  # noqa: D102
    def leader_epoch(self) -> int | None: ...  # noqa: D102
    def error(self) -> KafkaError | None: ...  # noqa: D102


def arrived(consumer: Consumer, most: int, timeout_s: float) -> list[Record]:
    """At most `most` records and events: those that have come when the first one has, for which it waits `timeout_s`.

    One `consume` would wait for a full list instead.
    """
    first = consumer.consume(1, timeout_s)
    return cast("list[Record]", first + consumer.consume(most - 1, 0) if first and most > 1 else first)


def read_until(
    consumer: Consumer, tp: TopicPartition, span: OffsetRange, patience_s: float, *, where: str, at_once: int = _AT_ONCE
) -> Iterator[Record]:
    """Records of one partition with offsets in `span`, in order, as far as the log goes.

    Args:
        consumer: is assigned to the partition, and goes on from the last record that it has taken.
        patience_s: how long nothing may come.
        at_once: how many are taken from the client in one call: with 1, nothing behind `span` is lost for who reads on.

    Raises:
        TransientError: nothing came.
    """
    what = f"read topic '{tp.topic}'"
    consumer.assign([KafkaPosition(tp.topic, tp.partition, span.start)])
    heard, position = time.monotonic(), span.start
    while position < span.end:
        if time.monotonic() > heard + patience_s:
            raise TransientError(f"Kafka {where}: {what}: nothing came for {patience_s:g} s")
        try:
            records = arrived(consumer, at_once, _POLL_S)
        except KafkaException as e:
            raise port_error(where, what, e.args[0]) from e
        for record in records:
            error = record.error()
            if error is not None and error.code() != PARTITION_END:
                raise port_error(where, what, error)
            heard, position = time.monotonic(), record.offset() + 1
            if error is not None or position > span.end:
                return
            yield record


def headers_of(record: Record) -> Headers | None:
    """A record's headers; None without any, UNREADABLE where they cannot be had.

    The only safe way to ask. At a key that is not UTF-8 the client returns a list with a hole in it *and* sets an
    exception. Python raises that (as SystemError) only where it calls from C; its own fast way for loops takes the list
    and the process dies of the hole. Asked again, the client returns the same list without any exception.
    """
    try:
        found: Headers | None = _headers(record)
    except (SystemError, UnicodeDecodeError):
        record.set_headers(UNREADABLE)
        return UNREADABLE
    return found


def record_bytes(record: Record) -> int:
    """Key, value and headers of a record, uncompressed."""
    size = len(record) + len(record.key() or b"")
    headers = headers_of(record)
    return size if not headers else size + sum(len(name.encode()) + len(value or b"") for name, value in headers)


def payload_bytes(records: Iterable[Record]) -> int:
    """Keys, values and headers, uncompressed; events count nothing."""
    return sum(record_bytes(r) for r in records if r.error() is None)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep Python's cycle collector from running while a batch is in hand: records form no cycles."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
