"""`bench memory`: memory of one consumer at work, by process, over a time; does it grow?"""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from confluent_kafka import Producer

from bench.family import family_rss_bytes
from bench.figures import MB, ROLES
from bench.records import KINDS, kind_of_records
from bench.variants import Processor, Source
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import PermanentError
from kgs_core.kafka.admin import KafkaAdmin

_PREFIX = "bench.memory."
_SAMPLE_S = 1.0
_SLICE_S = 20.0
_TICK_S = 0.05
_BLOCKS = 12
_T_95 = 2.228
"""Of Student's t, two-sided 95 %, for a line through `_BLOCKS` points."""
_KEPT_BYTES = 200_000_000  # of each partition in Kafka: the consumer keeps up, and the disk must not fill
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Plan of what to measure.

    Attributes:
        warm_up_s: read before the time counts: JVM and allocators take what they need then.
        limit_mb_per_h: a process that grows by less counts as flat.
    """

    minutes: float = 10.0
    topics: int = 4
    partitions: int = 4
    mb_per_s: float = 5.0
    batch_mb: float = 5.0
    warm_up_s: float = 120.0
    limit_mb_per_h: float = 100.0


@dataclass(frozen=True, slots=True)
class MemoryTrend:
    """Trend of one process's resident memory.

    Attributes:
        first_mb: median of the first twelfth of the time; last_mb: of the last one; highest_mb: of all.
        mb_per_h: slope of a line through the medians of twelve equal parts of the time.
        error_mb_per_h: half the width of its 95 % interval.
        verdict: `flat`, `grows`, or `open`: the interval holds the limit, so measure for longer.
    """

    first_mb: float
    last_mb: float
    highest_mb: float
    mb_per_h: float
    error_mb_per_h: float
    verdict: str


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """Result of one run: by role (`ROLES`), and what was read meanwhile."""

    plan: MemoryPlan
    trends: Mapping[str, MemoryTrend]
    seconds: float
    records: int
    batches: int
    consumed_mb: float

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return asdict(self)


def trend(times_s: Sequence[float], mb: Sequence[float], limit_mb_per_h: float) -> MemoryTrend:
    """Trend of samples that are in the order of their times.

    Raises:
        PermanentError: fewer than two samples for each part of the time.
    """
    if len(times_s) < 2 * _BLOCKS:
        raise PermanentError(f"bench memory: {len(times_s)} samples are too few: measure for longer")
    hours = np.array([np.median(part) for part in np.array_split(np.asarray(times_s), _BLOCKS)]) / 3600
    medians = np.array([np.median(part) for part in np.array_split(np.asarray(mb), _BLOCKS)])
    spread = hours - hours.mean()
    slope = float((spread * medians).sum() / (spread**2).sum())
    left = medians - medians.mean() - slope * spread
    error = _T_95 * float(np.sqrt((left**2).sum() / (_BLOCKS - 2) / (spread**2).sum()))
    highest, least = slope + error, slope - error
    verdict = "flat" if highest <= limit_mb_per_h else "grows" if least > limit_mb_per_h else "open"
    return MemoryTrend(float(medians[0]), float(medians[-1]), float(max(mb)), slope, error, verdict)


def run_memory_bench(plan: MemoryPlan, say: Say) -> MemoryResult:
    """Write and read for so long, on a broker of its own.

    Raises:
        PermanentError: no broker can be started, or the consumer's process ended or read nothing.
    """
    with tempfile.TemporaryDirectory(prefix="kgs-bench-", ignore_cleanup_errors=True) as folder:
        directory = Path(folder)
        with EmbeddedKafka.start(directory / "kafka", log=say) as kafka:
            names = [f"{_PREFIX}{number:02}" for number in range(plan.topics)]
            admin = KafkaAdmin({"bootstrap.servers": kafka.bootstrap_servers})
            for name in names:
                admin.create_topic(
                    name,
                    plan.partitions,
                    1,
                    {"retention.bytes": str(_KEPT_BYTES), "segment.bytes": str(_KEPT_BYTES // 4)},
                )
            records = kind_of_records(KINDS[0])
            consumer = Processor("arrow", directory, records)
            with consumer.process, _written(names, kafka.bootstrap_servers, records.values, plan):
                say("starting the consumer")
                consumer.process.start()
                consumer.open(Source(kafka.bootstrap_servers, _PREFIX, names, 1.0), int(plan.batch_mb * MB))
                return _MemoryRun(plan, consumer, say).run()


class _MemoryRun:
    """One consumer's rounds, and samples of its memory beside them."""

    def __init__(self, plan: MemoryPlan, consumer: Processor, say: Say) -> None:
        self._plan = plan
        self._consumer = consumer
        self._say = say
        self._samples: list[tuple[float, dict[str, int]]] = []

    def run(self) -> MemoryResult:
        plan = self._plan
        self._say(f"reading for {plan.warm_up_s:g} s, then {plan.minutes:g} minutes that count")
        self._read_for(plan.warm_up_s)
        with self._sampled():
            began = time.monotonic()
            records, batches, consumed = self._read_for(60 * plan.minutes)
            seconds = time.monotonic() - began
        self._consumer.close()
        times = [at for at, _ in self._samples]
        trends = {
            role: trend(times, [found[role] / MB for _, found in self._samples], plan.limit_mb_per_h) for role in ROLES
        }
        return MemoryResult(plan, trends, seconds, records, batches, consumed / MB)

    def _read_for(self, seconds: float) -> tuple[int, int, int]:
        """Records, batches and consumed bytes of rounds for so long.

        Raises:
            PermanentError: nothing was read.
        """
        records = batches = consumed = 0
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0:
            found = self._consumer.process.request(
                "measure", until_bytes=10**15, min_rounds=1, max_s=min(_SLICE_S, left_s)
            )
            if not found["records"]:
                raise PermanentError("bench memory: the consumer read nothing: its memory says nothing, either")
            records += found["records"]
            batches += len(found["batch_s"])
            consumed += found["consumed_bytes"]
        return records, batches, consumed

    @contextmanager
    def _sampled(self) -> Iterator[None]:
        over = threading.Event()
        session = self._consumer.process.session

        def sample() -> None:
            while not over.wait(_SAMPLE_S):
                found = family_rss_bytes(session)
                if all(found.values()):  # one that cannot be seen for a moment has not let go of its memory
                    self._samples.append((time.monotonic(), found))

        thread = threading.Thread(target=sample, name="memory", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@contextmanager
def _written(names: Sequence[str], servers: str, values: Sequence[bytes], plan: MemoryPlan) -> Iterator[None]:
    """So much is written to the topics in turn, until the end of the block."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "log_level": 2})
    over = threading.Event()

    def load() -> None:
        began, sent = time.monotonic(), 0
        while not over.wait(_TICK_S):
            wanted = int((time.monotonic() - began) * plan.mb_per_s * MB / len(values[0]))
            while sent < wanted and not over.is_set():
                try:
                    producer.produce(names[sent % len(names)], values[sent % len(values)])
                except BufferError:  # the broker is slower than that
                    producer.poll(_TICK_S)
                else:
                    sent += 1
            producer.poll(0)

    thread = threading.Thread(target=load, name="load", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        producer.flush(10)
