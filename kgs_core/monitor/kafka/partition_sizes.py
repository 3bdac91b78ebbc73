"""Reads all partitions of a cluster: sizes of the leaders' logs, or offsets and a sample of batches."""

import logging
import time
from collections import defaultdict, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kgs_core.config import Settings
from kgs_core.errors import KgsError, one_line
from kgs_core.kafka.admin import admin_of
from kgs_core.kafka.kafka_python import open_kafka_python
from kgs_core.model import TopicId, TopicPartition, grouped
from kgs_core.monitor.kafka.broker_requests import Batches, BrokerRequests, LogSizes
from kgs_core.monitor.kafka.clock import clock
from kgs_core.monitor.kafka.cluster_offsets import ClusterOffsets
from kgs_core.monitor.speeds import Measure, PartitionReading, Reading
from kgs_core.system.secret_files import SecretFiles

TIMEOUT_S = 4.0
"""Of each of the requests that a reading is made of: the brokers side by side, for 5,000 partitions at most."""
SELDOM_S = 10.0
"""Topics' ids and logs' starts are asked so often, and at once where a log has become shorter or is new."""
SAMPLE_EVERY_S = 5.0
SAMPLE_BYTES = 65_536
SAMPLES_KEPT = 6
SAMPLED_AT_ONCE = 256
FIRST_SAMPLE_RECORDS = 100
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Partitions:
    """The partitions that are to be read."""

    ids: dict[str, TopicId] = field(default_factory=dict)
    leaders: dict[TopicPartition, int] = field(default_factory=dict)
    unknown: dict[TopicPartition, str] = field(default_factory=dict)

    def by_leader(self) -> dict[int, list[TopicPartition]]:
        return grouped((broker, tp) for tp, broker in self.leaders.items())

    def drop(self, tp: TopicPartition, reason: str) -> None:
        self.leaders.pop(tp, None)
        self.unknown[tp] = reason


class PartitionSizes:
    """Takes readings of the topics that the settings name; `close` ends its connections."""

    def __init__(self, settings: Settings) -> None:
        """Connects. Raises `PortError` or `ConfigError`: no answer, a wrong password, settings that cannot be used."""
        self._settings = settings
        self._admin = admin_of(settings, TIMEOUT_S)
        self._admin.list_topics()  # says better than the other client what is wrong with address or password
        self._connect()
        self.measure = Measure.LOG_DIRS
        self._samples = _Samples(self._requests)
        self._offsets = ClusterOffsets(settings, TIMEOUT_S)
        self._ids: dict[str, TopicId] = {}
        self._zones: dict[str, Mapping[int, str]] = {}
        self._starts: dict[TopicPartition, int] = {}
        self._last_sizes: dict[TopicPartition, int] = {}
        self._last_ends: Mapping[TopicPartition, int] = {}
        self._ids_due_s = self._starts_due_s = float("-inf")

    def _connect(self) -> None:
        files = SecretFiles(self._settings.kafka.client)
        self._requests = BrokerRequests(open_kafka_python(self._settings, TIMEOUT_S), TIMEOUT_S)
        self._files = files

    def _connect_anew(self) -> None:
        former = self._requests
        try:
            self._connect()
        except KgsError as e:  # a key without its certificate, say: they come one by one
            _log.warning("secrets of the client have changed, and do not fit yet: %s", one_line(e))
            return
        self._samples.requests = self._requests
        former.close()

    def read(self) -> Reading:
        """One reading. Partitions whose leader does not answer are in `unknown`; the others are not held up by it.

        Raises:
            TransientError: Kafka does not answer at all.
            PermanentError: Kafka refuses it.
        """
        if self._files.have_changed():
            self._connect_anew()
        time_s, wall_ms = time.monotonic(), round(time.time() * 1000)
        partitions = self._find()
        # In this order (sizes, starts, ends): what a reading promises
        sizes = self._sizes(partitions) if self.measure is Measure.LOG_DIRS else {}
        self._read_starts(partitions, sizes)
        asked_s = time.monotonic()
        ends = self._offsets.offsets(partitions.by_leader(), "latest")
        offsets_s = (asked_s + time.monotonic()) / 2
        self._look_again(partitions, sizes, ends)
        starts = self._starts
        for tp in [tp for tp in partitions.leaders if tp not in starts or tp not in ends]:
            partitions.drop(tp, f"broker {partitions.leaders[tp]} does not tell the offsets")
        if self.measure is Measure.OFFSETS:
            self._samples.refresh(partitions, starts, ends)
        logs = {
            tp: PartitionReading(
                sizes[tp].time_s if tp in sizes else offsets_s,
                offsets_s,
                partitions.ids[tp.topic],
                leader,
                starts[tp],
                ends[tp],
                sizes[tp].sizes[tp] if tp in sizes else None,
                None if tp in sizes else self._samples.bytes_per_record(partitions.ids[tp.topic], tp),
                self._zones.get(tp.topic, {}).get(tp.partition),
            )
            for tp, leader in sorted(partitions.leaders.items())
        }
        return Reading(time_s, wall_ms, clock(), self.measure, logs, partitions.unknown)

    def close(self) -> None:
        """End the connections."""
        self._requests.close()
        self._offsets.close()

    def _find(self) -> _Partitions:
        layout = self._offsets.layout(lambda topic: self._settings.rule_of(topic) is not None)
        self._ids = {topic: each for topic, each in self._ids.items() if topic in layout}
        if time.monotonic() >= self._ids_due_s:
            self._ask_ids(layout)
            self._ids_due_s = time.monotonic() + SELDOM_S
        else:
            self._ask_ids(layout.keys() - self._ids.keys())
        found = _Partitions(dict(self._ids))
        for topic in layout.keys() & self._ids.keys():
            for number, leader in layout[topic].items():
                if leader >= 0:
                    found.leaders[TopicPartition(topic, number)] = leader
                else:
                    found.unknown[TopicPartition(topic, number)] = "no broker leads this partition"
        return found

    def _ask_ids(self, topics: Collection[str]) -> None:
        """A topic that was made again has new starts, too."""
        for topic, described in self._admin.describe(topics).items():
            self._zones[topic] = described.zones
            if self._ids.get(topic) != described.topic_id:
                self._ids[topic] = described.topic_id
                self._starts = {tp: start for tp, start in self._starts.items() if tp.topic != topic}

    def _read_starts(self, partitions: _Partitions, sizes: Mapping[TopicPartition, LogSizes]) -> None:
        """Starts move seldom and only forward. Where a log was cut, its size says so, or the next look at all."""
        if time.monotonic() >= self._starts_due_s:
            self._starts = {}
            self._starts_due_s = time.monotonic() + SELDOM_S
        for tp, answer in sizes.items():
            if answer.sizes[tp] < self._last_sizes.get(tp, 0):
                self._starts.pop(tp, None)
        self._ask_starts(partitions)

    def _ask_starts(self, partitions: _Partitions) -> None:
        missing = _Partitions(leaders={tp: b for tp, b in partitions.leaders.items() if tp not in self._starts})
        self._starts |= self._offsets.offsets(missing.by_leader(), "earliest")

    def _look_again(
        self, partitions: _Partitions, sizes: Mapping[TopicPartition, LogSizes], ends: Mapping[TopicPartition, int]
    ) -> None:
        """Where a log has become shorter, see whether its topic was made again, before anybody says it was cut."""
        shorter = {tp.topic for tp, end in ends.items() if end < self._last_ends.get(tp, 0)}
        shorter |= {tp.topic for tp, answer in sizes.items() if answer.sizes[tp] < self._last_sizes.get(tp, 0)}
        self._last_ends, self._last_sizes = ends, {tp: answer.sizes[tp] for tp, answer in sizes.items()}
        if not shorter:
            return
        self._ask_ids(shorter)
        partitions.ids |= self._ids
        self._ask_starts(partitions)

    def _sizes(self, partitions: _Partitions) -> dict[TopicPartition, LogSizes]:
        """The answers that tell sizes; the others are dropped, unless all partitions can be measured by offsets."""
        answers = self._requests.log_sizes(partitions.by_leader())
        answered = [answer for each in answers.values() for answer in each if isinstance(answer, LogSizes)]
        if answered and all(answer.refused for answer in answered):
            self._fall_back()
            return {}
        sizes = {tp: each for each in answered for tp in each.sizes}
        failed = {b: last for b, each in answers.items() for last in each[-1:] if isinstance(last, str)}
        for tp in partitions.leaders.keys() - sizes.keys():
            broker = partitions.leaders[tp]
            partitions.drop(tp, failed.get(broker, f"broker {broker} tells no size of it"))
        return {tp: sizes[tp] for tp in partitions.leaders}

    def _fall_back(self) -> None:
        _log.warning(
            "Kafka %s: DescribeLogDirs was answered with nothing: grant this user the right Describe on the Cluster; "
            "measuring by offsets and a sample of record batches until then",
            self._settings.kafka.bootstrap_servers,
        )
        self.measure = Measure.OFFSETS


class _Samples:
    """Stored bytes per offset of recent record batches, of partitions that are written.

    The batches are fetched as they are stored, and counted by their headers: exact for what was sampled, which is the
    newest 64 KB of a partition every few seconds. So the error is that of the sample: none where records are alike.
    """

    def __init__(self, requests: BrokerRequests) -> None:
        self.requests = requests
        self._found: dict[tuple[TopicId, int], deque[Batches]] = {}
        self._ends: dict[tuple[TopicId, int], tuple[float, int]] = {}
        self._due_s = float("-inf")

    def bytes_per_record(self, topic_id: TopicId, tp: TopicPartition) -> float | None:
        """None: no sample yet."""
        found = self._found.get((topic_id, tp.partition), ())
        offsets = sum(batches.offsets for batches in found)
        return sum(batches.stored_bytes for batches in found) / offsets if offsets else None

    def refresh(
        self, partitions: _Partitions, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> None:
        """Sample the partitions that have grown, those sampled longest ago first; not more often than is useful."""
        now = time.monotonic()
        if now < self._due_s:
            return
        keys = {tp: (partitions.ids[tp.topic], tp.partition) for tp in partitions.leaders}
        present = set(keys.values())
        self._found = {key: found for key, found in self._found.items() if key in present}
        self._ends = {key: end for key, end in self._ends.items() if key in present}
        never = (float("-inf"), -1)
        grown = [tp for tp in keys if ends[tp] > max(starts[tp], self._ends.get(keys[tp], never)[1])]
        chosen = sorted(grown, key=lambda tp: (self._ends.get(keys[tp], never)[0], tp))[:SAMPLED_AT_ONCE]
        self._due_s = now + (SAMPLE_EVERY_S if len(chosen) == len(grown) else 0.0)
        wanted: dict[int, dict[TopicPartition, int]] = defaultdict(dict)
        for tp in chosen:
            each = self.bytes_per_record(keys[tp][0], tp)
            back = max(1, round(SAMPLE_BYTES / each)) if each else FIRST_SAMPLE_RECORDS
            wanted[partitions.leaders[tp]][tp] = max(starts[tp], ends[tp] - back)
            self._ends[keys[tp]] = (now, ends[tp])
        for found in self.requests.batches(wanted).values():
            for tp, batches in found.items():
                self._found.setdefault(keys[tp], deque(maxlen=SAMPLES_KEPT)).append(batches)
