"""A Kafka record as its adapters see it."""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from confluent_kafka import KafkaError


class Record(Protocol):
    """A record, or an event of a partition, as librdkafka hands it out (whose own type leaves everything optional)."""

    def __len__(self) -> int: ...
    def topic(self) -> str: ...  # noqa: D102
    def partition(self) -> int: ...  # noqa: D102
    def offset(self) -> int: ...  # noqa: D102
    def timestamp(self) -> tuple[int, int]: ...  # noqa: D102
    def key(self) -> bytes | None: ...  # noqa: D102
    def value(self) -> bytes | None: ...  # noqa: D102
    def headers(self) -> list[tuple[str, bytes | str | None]] | None: ...  # noqa: D102
    def error(self) -> KafkaError | None: ...  # noqa: D102


def payload_bytes(records: Iterable[Record]) -> int:
    """Keys and values, uncompressed; events count nothing."""
    return sum(len(r) + len(r.key() or b"") for r in records if r.error() is None)


def oldest_ms(records: Iterable[Record]) -> int | None:
    """The earliest Kafka timestamp, ms since 1970; None without any."""
    return min((ms for r in records if (ms := r.timestamp()[1]) > 0), default=None)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep Python's cycle collector from running while a batch is in hand: records form no cycles."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
