"""The capacity test: one consumer flat out against the backlog, in a group and a folder of its own.

Departs from Landau 2022, section VI, Table VI: rates are in stored bytes/s, as write speeds are, since packing needs
speeds and capacities of one kind.
"""

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kgs_core.config import Settings, TableSpec, resolve_tables
from kgs_core.errors import PermanentError, PortError
from kgs_core.ingest.driver.round_report import RoundReport
from kgs_core.ingest.driver.rounds import Ingest
from kgs_core.ingest.driver.spark_batch_runner import SparkBatchRunner
from kgs_core.ingest.opening.topic_opener import TopicOpener
from kgs_core.ingest.opening.topic_state import TopicState
from kgs_core.ingest.round.progress import SHARE_RECORDS
from kgs_core.ingest.worker.arrow_task import TaskContext
from kgs_core.kafka.admin import KafkaAdmin, admin_of
from kgs_core.kafka.client_config import reading_client
from kgs_core.kafka.committed_offsets import GroupOffsets
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.topics.factory import open_lake
from kgs_core.model import TopicPartition
from kgs_core.monitor.kafka.load import bytes_per_record
from kgs_core.monitor.kafka.partition_sizes import PartitionSizes
from kgs_core.monitor.speeds import Reading
from kgs_core.reporting.bad_shares import share_text
from kgs_core.runtime.throughput_log import BadTopics
from kgs_core.spark.session import start_spark, stop_spark
from kgs_core.system.closing import Closing
from kgs_core.system.shutdown import StopFlag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = "_kgs_capacity_"
WARM_UP_CYCLES = 2
"""Of every pass: a client's first fetch of a partition takes about a second, the first task starts a worker."""
_FULL_SHARE = 0.5
_log = logging.getLogger(__name__)

Progress = Callable[[float, float], None]
"""Called with seconds done and seconds in all."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """One round of the consumer that committed something.

    Attributes:
        is_full: it read more than `_FULL_SHARE` of a batch, after the first `WARM_UP_CYCLES` of its pass.
    """

    seconds: float
    records: int
    stored_bytes: float
    consumed_bytes: int
    is_full: bool

    @property
    def stored_bytes_per_s(self) -> float:
        """The cycle's rate."""
        return self.stored_bytes / self.seconds


@dataclass(frozen=True, slots=True)
class CapacityResult:
    """Result of one consumer.

    Attributes:
        backlog_bytes: stored bytes of all partitions to be read.
        passes: how often all of it was read, into new tables each time.
    """

    cycles: tuple[Cycle, ...]
    backlog_bytes: float
    partitions: int
    tables: int
    passes: int

    @property
    def rates(self) -> list[float]:
        """Stored bytes/s of the full cycles; of all where none was full."""
        return [c.stored_bytes_per_s for c in self.cycles if c.is_full] or [c.stored_bytes_per_s for c in self.cycles]

    @property
    def is_saturated(self) -> bool:
        """Whether there were full cycles; else the rates are those of a consumer that had too little to do."""
        return any(cycle.is_full for cycle in self.cycles)


@dataclass(frozen=True, slots=True)
class _Backlog:
    """Backlog of the topics.

    Attributes:
        bytes_per_record: stored, by partition.
        ends: offsets at which a pass is over.
    """

    specs: Mapping[str, TableSpec]
    reading: Reading
    bytes_per_record: Mapping[TopicPartition, float]
    ends: Mapping[TopicPartition, int]

    @property
    def stored_bytes(self) -> float:
        logs = self.reading.partitions
        return sum((logs[tp].end_offset - logs[tp].log_start) * each for tp, each in self.bytes_per_record.items())


def run_capacity_test(settings: Settings, seconds: float, progress: Progress, stop: StopFlag) -> CapacityResult:
    """Read the backlog of all topics again and again for `seconds`, as one consumer with these settings would.

    Everything it writes is under a folder of its own in the lake's root and a group of its own, both removed at the
    end: positions, tables and offsets of `settings.group` stay as they are.

    Raises:
        PermanentError: no backlog, or one of which too many records are bad. Else what a consumer raises.
    """
    admin = admin_of(settings)
    backlog = _find_backlog(settings, admin)
    name = f"{FOLDER}{uuid.uuid4().hex[:8]}"
    open_lake(settings.lake).probe()
    with _cleaned_up(settings, name), _spark(settings) as spark:
        cycles: list[Cycle] = []
        passes, began = 0, time.monotonic()
        while not stop.is_set and time.monotonic() < began + seconds:
            trial = _trial_settings(settings, name, passes)
            with _group_removed(trial, admin), _Pass(trial, backlog, admin, spark) as one:
                for cycle in one.cycles():
                    cycles.append(cycle)
                    progress(min(time.monotonic() - began, seconds), seconds)
                    if stop.is_set or time.monotonic() > began + seconds:
                        break
                one.refuse_bad()
            passes += 1
    return CapacityResult(tuple(cycles), backlog.stored_bytes, len(backlog.ends), len(backlog.specs), passes)


class _Pass(Closing):
    """Reads everything once, into new tables; a context manager."""

    def __init__(self, trial: Settings, backlog: _Backlog, admin: KafkaAdmin, spark: "SparkSession") -> None:
        client = reading_client(trial)
        storage = Storage.of(trial.lake)
        self._backlog = backlog
        self._batch_bytes = trial.consumer.batch_bytes
        self._offsets = GroupOffsets(client, trial.group)
        runner = SparkBatchRunner(spark, TaskContext(client, storage, None, formats=trial.formats), trial.consumer)
        opener = TopicOpener(trial, open_lake(trial.lake), admin, self._offsets, runner.transform_schema)
        self._topics: dict[str, TopicState] = {}
        self._bad = BadTopics()
        for topic, spec in backlog.specs.items():
            partitions = [tp.partition for tp in backlog.ends if tp.topic == topic]
            topic_id = backlog.reading.partitions[TopicPartition(topic, partitions[0])].topic_id
            state = TopicState(opener.open(spec, topic_id, max(partitions) + 1))
            state.own(frozenset(partitions))
            self._topics[topic] = state
        self._ingest = Ingest(self._topics, trial.consumer, runner, admin, self._offsets)

    def close(self) -> None:
        """End the clients."""
        self._ingest.close()
        self._offsets.close()

    def cycles(self) -> Iterator[Cycle]:
        """A cycle for every round with records, until the initial backlog is read; refuses topics that are bad."""
        number = 0
        while not self._is_done():
            before = self._positions()
            began = time.monotonic()
            report = self._ingest.round()
            seconds = time.monotonic() - began
            self.refuse_bad(SHARE_RECORDS)
            if report.records:
                number += 1
                yield self._cycle(before, report, seconds, number)

    def refuse_bad(self, least: int = 0) -> None:
        """Refuse topics with too many bad records after `least` records: dead letters take other time than rows."""
        self._bad.look(self._topics.values())
        for topic, share in self._bad.shares.items():
            if self._topics[topic].progress.recent_records >= least:
                raise PermanentError(
                    f"capacity: topic {topic}: {share_text(share)} of its records cannot be parsed, and how fast dead "
                    "letters are says nothing of rows: fix its rule, or leave the topic out for this test"
                )

    def _cycle(self, before: Mapping[TopicPartition, int], report: RoundReport, seconds: float, number: int) -> Cycle:
        stored = sum(
            (position - before[tp]) * self._backlog.bytes_per_record.get(tp, 0.0)
            for tp, position in self._positions().items()
        )
        is_full = number > WARM_UP_CYCLES and report.consumed_bytes > _FULL_SHARE * self._batch_bytes
        return Cycle(seconds, report.records, stored, report.consumed_bytes, is_full)

    def _positions(self) -> dict[TopicPartition, int]:
        return {
            TopicPartition(t, p): offset for t, s in self._topics.items() for p, offset in s.progress.positions.items()
        }

    def _is_done(self) -> bool:
        for topic, state in self._topics.items():
            for partition, stop in state.progress.reported_stops.items():
                raise PermanentError(f"capacity: {topic}:{partition}: {stop.reason}")
        positions = self._positions()
        return all(positions[tp] >= end for tp, end in self._backlog.ends.items())


def _find_backlog(settings: Settings, admin: KafkaAdmin) -> _Backlog:
    with closing(PartitionSizes(settings)) as sizes:
        reading = sizes.read()
    each = {
        tp: size
        for tp, log in reading.partitions.items()
        if log.end_offset > log.log_start and (size := bytes_per_record(log)) is not None
    }
    specs = {
        topic: replace(spec, rule=spec.rule.model_copy(update={"start": "earliest"}))
        for topic, spec in resolve_tables(settings, {tp.topic for tp in each}).items()
    }
    if not each:
        raise PermanentError(
            "capacity: no backlog: the topics of the configuration hold no records that can be read: produce some first"
        )
    return _Backlog(specs, reading, each, admin.offsets(list(each), "latest", committed_reads=True))


def _trial_settings(settings: Settings, name: str, number: int) -> Settings:
    root = f"{settings.lake.root.rstrip('/')}/{name}/{number}"
    return settings.model_copy(
        update={
            "group": f"{settings.group[:60]}{name.replace('_', '-')}-{number}",
            "lake": settings.lake.model_copy(update={"root": root}),
        }
    )


@contextmanager
def _spark(settings: Settings) -> Iterator["SparkSession"]:
    spark = start_spark(settings.spark, f"kgs-{settings.group}-capacity")
    try:
        yield spark
    finally:
        stop_spark(spark)


@contextmanager
def _group_removed(trial: Settings, admin: KafkaAdmin) -> Iterator[None]:
    """Delete the group of the committed offsets at the end; if that is not allowed, they expire."""
    try:
        yield
    finally:
        try:
            admin.delete_group(trial.group)
        except PortError as e:
            _log.warning("group %s is left over: %s", trial.group, e)


@contextmanager
def _cleaned_up(settings: Settings, name: str) -> Iterator[None]:
    storage = Storage.of(settings.lake)
    try:
        yield
    finally:
        try:
            storage.filesystem().delete_dir(storage.path(name))
        except FileNotFoundError:  # nothing was written
            pass
        except OSError as e:
            _log.warning("lake %s: folder %s is left over: %s: remove it", storage.root, name, e)
