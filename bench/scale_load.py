"""Load of a simulated cluster: sizes of logs that grow by arithmetic, read as the monitor reads a real one's."""

import threading
import time
from collections.abc import Sequence
from random import Random

from kgs_core.config import Settings, TopicRule
from kgs_core.config.monitor import MonitorSettings
from kgs_core.config.settings import KafkaSettings, LakeSettings
from kgs_core.model import TopicId, TopicPartition
from kgs_core.monitor.kafka.clock import clock
from kgs_core.monitor.speeds import Measure, PartitionReading, Reading

PARTITIONS_OF_A_TOPIC = 10
RECORD_BYTES = 500
WINDOW_S = 10.0
_FILLED = 0.7
_STEP_TIMES = 4.0
_STEP_SHARE = 0.1
_LOG_S = 100_000.0
_GROUP = "scale"


def scale_settings(bootstrap_servers: str) -> Settings:
    """Settings of the simulated group: kgs' own, but for a short window and queues for all consumers.

    Args:
        bootstrap_servers: of the broker.
        consumers: how many there may be.
    """
    return Settings(
        group=_GROUP,
        kafka=KafkaSettings(bootstrap_servers=bootstrap_servers),
        lake=LakeSettings(root="none"),
        topics=(TopicRule(pattern=".*", table="{topic}"),),
        monitor=MonitorSettings(window_s=WINDOW_S),
    )


def partitions_of(count: int) -> list[TopicPartition]:
    """So many partitions, in topics of ten."""
    return [
        TopicPartition(f"events.of.service-{n // PARTITIONS_OF_A_TOPIC:05d}", n % PARTITIONS_OF_A_TOPIC)
        for n in range(count)
    ]


def drawn_speeds(count: int, total_bytes_per_s: float, seed: int) -> list[float]:
    """`count` speeds, bytes/s, log-normal, that make up `total_bytes_per_s`."""
    random = Random(seed)  # noqa: S311 - a load, not a secret
    drawn = [random.lognormvariate(0.0, 0.5) for _ in range(count)]
    return [total_bytes_per_s * each / sum(drawn) for each in drawn]


class GrowingLogs:
    """Port of the monitor: every partition's log grows at its speed; `step` makes a tenth of them four times as fast.

    The load fills seven tenths of the group's packing capacity before the step, and nine tenths after it.
    """

    def __init__(self, settings: Settings, partitions: int, consumers: int, seed: int = 1) -> None:
        self._partitions = partitions_of(partitions)
        capacity = settings.packing.packing_capacity
        self._speeds = drawn_speeds(partitions, _FILLED * capacity * consumers, seed)
        self._since_s = time.monotonic()
        self._sizes: Sequence[float] = [speed * _LOG_S for speed in self._speeds]
        self._seed = seed
        self._lock = threading.Lock()

    def step(self) -> float:
        """Change the load now; returns the moment, `time.monotonic`."""
        random = Random(self._seed + 1)  # noqa: S311 - a load, not a secret
        with self._lock:
            now = time.monotonic()
            self._sizes = self._grown(now)
            self._since_s = now
            for number in random.sample(range(len(self._speeds)), round(_STEP_SHARE * len(self._speeds))):
                self._speeds[number] *= _STEP_TIMES
        return now

    def read(self) -> Reading:
        """All partitions as they are now."""
        with self._lock:
            now = time.monotonic()
            sizes = self._grown(now)
        logs = {
            tp: PartitionReading(
                now, now, TopicId(f"id-of-{tp.topic}"), 1, 0, int(size) // RECORD_BYTES, size_bytes=int(size)
            )
            for tp, size in zip(self._partitions, sizes, strict=True)
        }
        return Reading(now, round(time.time() * 1000), clock(), Measure.LOG_DIRS, logs)

    def close(self) -> None:
        """Nothing is held."""

    def _grown(self, now: float) -> Sequence[float]:
        since = now - self._since_s
        return [size + speed * since for size, speed in zip(self._sizes, self._speeds, strict=True)]
