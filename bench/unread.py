"""For how long acknowledged records stay unread: a load that notes acknowledgements, and the commits of a table."""

import json
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from confluent_kafka import KafkaException, Message, Producer

from kgs_core.errors import TransientError

RECORD_BYTES = 500
_PAUSE_S = 0.02
_FLUSH_S = 120.0


class Acknowledged(NamedTuple):
    """A record that all replicas in sync have, and when its producer knew."""

    offset: int
    at_s: float
    value: bytes


class Advance(NamedTuple):
    """From a moment on, all records below `position` have been read."""

    at_s: float
    position: int


class Gap(NamedTuple):
    """A time in which a partition had unread records and nobody read any.

    Attributes:
        until_s: seconds since 1970; the end of the observation where nobody had read by then.
    """

    seconds: float
    until_s: float


class AcknowledgedLoad:
    """Writes numbered records to the partitions of a topic in turn, `acks=all`; a context manager.

    Attributes:
        bytes_per_s: may be changed at any time.
        acknowledged: partition -> records in the order of their offsets, once the block has ended.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int, bytes_per_s: float) -> None:
        self.bytes_per_s = bytes_per_s
        self.acknowledged: dict[int, list[Acknowledged]] = {p: [] for p in range(partitions)}
        self.sent = 0
        self._topic = topic
        self._refused: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "delivery.timeout.ms": 600_000,
                "linger.ms": 5,
                # What a vanished broker holds goes to the next leader soon: nothing is unread before it is written
                "request.timeout.ms": 3000,
                "socket.timeout.ms": 3000,
                "topic.metadata.refresh.interval.ms": 1000,
                "reconnect.backoff.max.ms": 1000,
                "log_level": 0,
            }
        )
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="acknowledged-load", daemon=True)

    def _run(self) -> None:
        owed, then = 0.0, time.monotonic()
        while not self._is_over.is_set():
            now = time.monotonic()
            owed, then = owed + (now - then) * self.bytes_per_s, now
            while owed >= RECORD_BYTES:
                owed -= RECORD_BYTES
                value = b"%012d " % self.sent + b"x" * (RECORD_BYTES - 13)
                with suppress(KafkaException, BufferError):
                    partition = self.sent % len(self.acknowledged)
                    self._producer.produce(self._topic, value, partition=partition, on_delivery=self._note)
                    self.sent += 1
            self._producer.poll(_PAUSE_S)

    def _note(self, error: object, message: Message) -> None:
        if error is not None:
            self._refused.append(str(error))
            return
        record = Acknowledged(int(message.offset() or 0), time.time(), bytes(message.value() or b""))
        self.acknowledged[int(message.partition() or 0)].append(record)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        left = self._producer.flush(_FLUSH_S)
        if left or self._refused:
            raise TransientError(f"{self._topic}: {left} records are not acknowledged: {self._refused[:3]}")


def longest_gaps(
    acknowledged: Mapping[int, Sequence[Acknowledged]],
    advances: Mapping[int, Sequence[Advance]],
    from_s: float,
    until_s: float,
) -> dict[int, Gap]:
    """The longest time of each partition in which it had unread records and nobody read any.

    Only what was open after `from_s` counts, whole; what is open at `until_s` counts up to then.
    """
    return {
        partition: max(_gaps(records, advances.get(partition, ()), from_s, until_s), default=Gap(0.0, from_s))
        for partition, records in acknowledged.items()
    }


def _gaps(records: Sequence[Acknowledged], advances: Iterable[Advance], from_s: float, until_s: float) -> Iterable[Gap]:
    """Each begins with the first unread record's acknowledgement or with the advance before, whatever is later."""
    offsets = [record.offset for record in records]
    position, since = 0, 0.0
    for advance in (*sorted(advances), Advance(until_s, max(offsets, default=0) + 1)):
        if advance.position <= position:
            continue
        at_s = min(advance.at_s, until_s)
        first = bisect_left(offsets, position)
        if first < len(records) and at_s >= from_s:
            begin = max(records[first].at_s, since)
            if begin < at_s:
                yield Gap(at_s - begin, at_s)
        position, since = advance.position, advance.at_s
        if since >= until_s:
            return


def commits_of(table: Path) -> dict[int, list[Advance]]:
    """Partition -> positions that a table's commits have brought, by the table's log."""
    found: dict[int, list[Advance]] = {}
    for entry in sorted((table / "_delta_log").glob("[0-9]*.json")):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        times = [action["commitInfo"]["timestamp"] for action in actions if "commitInfo" in action]
        for action in actions:
            partition = action["txn"]["appId"].rsplit("/", 1)[-1] if "txn" in action else ""
            if partition.isdigit() and times:
                found.setdefault(int(partition), []).append(Advance(times[0] / 1000, action["txn"]["version"]))
    return found
