"""Producers of checksummed records, in a process of their own, with a log of what was acknowledged to each.

`python -m tests.system.chaos.producers FOLDER`: FOLDER/load.json says what, FOLDER/shape.json the partitions of each
topic, which may grow; FOLDER/stop ends it. FOLDER/acknowledged-NAME.log has a line for each record of known fate:
outcome, topic, partition, offset, digest, ms since 1970.
"""

import hashlib
import json
import random
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Message, Producer

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
OK, ABORTED, UNKNOWN = "ok", "aborted", "unknown"
UNTOLD = -1
"""Offset of a record whose first acknowledgement was lost: the broker only says that it has it."""
BAD_SHARE = 0.01
ABORTED_SHARE = 0.3
LOOK_S = 1.0
OPEN_S = 120.0
FLUSH_S = 180.0
PERIOD_S = 60.0
_COMMON: Mapping[str, Any] = {
    "delivery.timeout.ms": 2_000_000_000,
    "topic.metadata.refresh.interval.ms": 2000,
    "linger.ms": 20,
    "log_level": 3,
}


def digest(value: bytes) -> str:
    """What values are compared by."""
    return hashlib.sha256(value).hexdigest()[:20]


def json_value(seq: int, crc: int, pad: str) -> bytes:
    """As it is produced, and as it is made again of a row."""
    return json.dumps({"seq": seq, "crc": crc, "pad": pad}).encode()


class Source(threading.Thread):
    """One producer with a codec, or several in turn.

    Attributes:
        counts: records by what became of them.
    """

    def __init__(self, name: str, folder: Path, load: Mapping[str, Any], bytes_per_s: float, **config: Any) -> None:
        super().__init__(name=name)
        self.counts: Counter[str] = Counter()
        self._folder = folder
        self._topics = tuple(load["topics"])
        self._bytes_per_s = bytes_per_s
        self._random = random.Random(f"{load['seed']} {name}")
        self._config = {**_COMMON, "bootstrap.servers": load["bootstrap"], **config}
        self._log = (folder / f"acknowledged-{name}.log").open("w", buffering=1 << 14)
        self._seq = 0
        self._looked_s, self._shape = 0.0, dict.fromkeys(self._topics, 1)

    def run(self) -> None:
        producer = Producer(self._config)
        began, sent = time.monotonic(), 0.0
        while not (self._folder / "stop").exists():
            now = time.monotonic()
            due = self._due(now - began)
            while sent < due:
                topic, partition, value = self._record()
                try:
                    producer.produce(topic, value, partition=partition, on_delivery=self._note(digest(value)))
                except (KafkaException, BufferError):  # a partition that is not known yet; a full queue
                    self.counts["not sent"] += 1
                    producer.poll(0.2)
                    began, sent = time.monotonic(), 0.0
                    break
                sent += len(value)
            producer.poll(0.05)
        self.counts["left"] = producer.flush(FLUSH_S)
        self._log.close()

    def _due(self, seconds: float) -> float:
        """Bytes after so long: a wave of one and a half times the mean, then of half of it."""
        periods, rest = divmod(seconds, PERIOD_S)
        high = min(rest, PERIOD_S / 2)
        return self._bytes_per_s * (periods * PERIOD_S + 1.5 * high + 0.5 * (rest - high))

    def _record(self) -> tuple[str, int, bytes]:
        if time.monotonic() > self._looked_s + LOOK_S:
            self._looked_s, self._shape = time.monotonic(), json.loads((self._folder / "shape.json").read_text())
        topic = self._random.choice(self._topics)
        self._seq += 1
        pad = self._random.randbytes(self._random.randint(60, 200)).hex()
        crc = zlib.crc32(pad.encode())
        value = json_value(self._seq, crc, pad)
        if self._random.random() < BAD_SHARE:
            value = b"{not json " + value
        return topic, self._random.randrange(self._shape[topic]), value

    def _note(self, of: str) -> Any:
        def delivered(error: object, message: Message) -> None:
            if error is not None:
                self.counts["refused"] += 1
                print(self.name, "refused:", error, file=sys.stderr, flush=True)
            else:
                self._write(OK, message.topic(), message.partition(), message.offset(), of)

        return delivered

    def _write(self, outcome: str, *record: Any) -> None:
        self.counts[outcome] += 1
        record = tuple(UNTOLD if each is None else each for each in record)
        self._log.write(" ".join(map(str, (outcome, *record, round(time.time() * 1000)))) + "\n")  # noqa: TID251


class TransactionalSource(Source):
    """Some records in each transaction, over all topics; one in three is aborted; another codec now and then."""

    def run(self) -> None:
        producer = self._open()
        began, sent = time.monotonic(), 0.0
        while not (self._folder / "stop").exists():
            if sent >= self._due(time.monotonic() - began):
                time.sleep(0.05)
                continue
            rows: list[tuple[Any, ...]] = []
            outcome, size = self._transaction(producer, rows)
            sent += size
            for row in rows:
                self._write(outcome, *row)
            if outcome == UNKNOWN or self._random.random() < 0.02:
                producer = self._open()
        self._log.close()

    def _open(self) -> Producer:
        codec = self._random.choice(CODECS)
        while True:
            name = f"chaos-{self._folder.parent.name}"
            producer = Producer({**self._config, "compression.type": codec, "transactional.id": name})
            try:
                producer.init_transactions(OPEN_S)
            except KafkaException as e:
                print(self.name, "not opened:", e, file=sys.stderr, flush=True)
                time.sleep(1)
            else:
                return producer

    def _transaction(self, producer: Producer, rows: list[tuple[Any, ...]]) -> tuple[str, int]:
        """What became of it, and its bytes."""
        values = [self._record() for _ in range(self._random.randint(1, 40))]
        size = sum(len(value) for _, _, value in values)
        try:
            producer.begin_transaction()
            for topic, partition, value in values:
                producer.produce(topic, value, partition=partition, on_delivery=_noting(rows, digest(value)))
            if self._random.random() < ABORTED_SHARE:
                producer.flush(10)
                _again(producer.abort_transaction)
                return ABORTED, size
            _again(producer.commit_transaction)
        except (KafkaException, BufferError) as e:
            print(self.name, "transaction:", e, file=sys.stderr, flush=True)
            return _given_up(producer, e), size
        return OK, size


def _noting(rows: list[tuple[Any, ...]], of: str) -> Any:
    def delivered(error: object, message: Message) -> None:
        if error is None:
            rows.append((message.topic(), message.partition(), message.offset(), of))

    return delivered


def _given_up(producer: Producer, error: Exception) -> str:
    """What became of a transaction that failed: aborted, or nobody knows."""
    try:
        if isinstance(error, KafkaException) and error.args[0].txn_requires_abort():
            _again(producer.abort_transaction)
            return ABORTED
    except KafkaException:
        pass
    return UNKNOWN


def _again(end: Any) -> None:
    """Until it is known how it ended."""
    while True:
        try:
            end(OPEN_S)
        except KafkaException as e:
            if not e.args[0].retriable():
                raise
        else:
            return


def main(folder: Path) -> None:
    load = json.loads((folder / "load.json").read_text())
    each = load["bytes_per_s"] / (len(CODECS) + 2)
    sources: list[Source] = [
        Source(codec, folder, load, each, **{"compression.type": codec, "enable.idempotence": True}) for codec in CODECS
    ]
    bounded = {"delivery.timeout.ms": 50_000, "transaction.timeout.ms": 60_000}
    sources.append(TransactionalSource(TRANSACTIONAL, folder, load, 2 * each, **bounded))
    if load["unclean"]:  # by itself: its broker forgets what it has acknowledged
        sources.append(Source(UNCLEAN, folder, {**load, "topics": load["unclean"]}, each / 2, acks="all"))
    for source in sources:
        source.start()
    for source in sources:
        source.join()
    print(json.dumps({source.name: source.counts for source in sources}), flush=True)


UNCLEAN, TRANSACTIONAL = "unclean", "transactional"
if __name__ == "__main__":
    main(Path(sys.argv[1]))
