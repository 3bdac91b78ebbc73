"""What was produced, noted by who produced it, and a reader of tables of its own: a checker that shares nothing with
the product, neither its audit nor the libraries that it writes with.

A table is read from its log's JSON entries and the Parquet files that these name.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq
from confluent_kafka import KafkaException, Message, Producer

Row = tuple[int, int, bytes]
"""Partition, offset, value."""


class Ledger(threading.Thread):
    """Produces numbered records of 200 bytes, and notes each that the broker has acknowledged.

    Attributes:
        bytes_per_s: how fast; may be changed at any time.
        acknowledged: what the broker has.
        sent: how many.
        refused: why some were not taken, which never happens.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: Callable[[], int], bytes_per_s: float) -> None:
        super().__init__(name="ledger", daemon=True)
        self.acknowledged: set[Row] = set()
        self.sent = 0
        self.refused: list[str] = []
        self._topic = topic
        self._partitions = partitions
        self.bytes_per_s = bytes_per_s
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "delivery.timeout.ms": 600_000,
                "topic.metadata.refresh.interval.ms": 1000,
                "linger.ms": 5,
            }
        )
        self._stop_asked = threading.Event()

    def run(self) -> None:
        while not self._stop_asked.is_set():
            for _ in range(20):
                value = b"%012d " % self.sent + b"x" * 187
                try:
                    self._producer.produce(self._topic, value, partition=self._partition(), on_delivery=self._note)
                except KafkaException:  # the producer does not know a partition that was added a moment ago
                    self._producer.poll(0.1)
                else:
                    self.sent += 1
            self._producer.poll(0)
            time.sleep(20 * 200 / self.bytes_per_s)

    def _partition(self) -> int:
        return self.sent % self._partitions()

    def _note(self, error: object, message: Message) -> None:
        if error is not None:
            self.refused.append(str(error))
        else:
            self.acknowledged.add((message.partition(), message.offset(), message.value()))

    def close(self) -> None:
        """No more records; every one of them is acknowledged."""
        self._stop_asked.set()
        self.join()
        assert self._producer.flush(120) == 0
        assert not self.refused, self.refused[:3]
        assert len(self.acknowledged) == self.sent


def files_of(table: Path) -> set[str]:
    """The data files that are part of a table now."""
    files: set[str] = set()
    for entry in sorted((table / "_delta_log").glob("*.json")):
        for line in entry.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                files.add(unquote(action["add"]["path"]))
            elif "remove" in action:
                files.discard(unquote(action["remove"]["path"]))
    return files


def rows_of(table: Path) -> Counter[Row]:
    """Every row of a raw table, counted."""
    found: Counter[Row] = Counter()
    for file in files_of(table):
        columns = pq.read_table(table / file, columns=["_partition", "_offset", "value"], partitioning=None).to_pydict()
        found.update(zip(columns["_partition"], columns["_offset"], columns["value"], strict=True))
    return found


def lost_and_doubled(acknowledged: set[Row], rows: Counter[Row]) -> tuple[list[Row], list[Row], list[Row]]:
    """Acknowledged records that are no row, rows that stand more than once, and rows of nothing that was sent."""
    lost = sorted(acknowledged - rows.keys())
    doubled = sorted(row for row, count in rows.items() if count > 1)
    foreign = sorted(rows.keys() - acknowledged)
    return lost, doubled, foreign
