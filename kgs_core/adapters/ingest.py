"""The rounds of one consumer: gather, transform and write, check the topic's id, commit. Owned partitions come in."""

import logging
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kgs_core.adapters.arrow_task import ArrowRequest, TaskContext, run_arrow_task
from kgs_core.adapters.delta_table import Outcome
from kgs_core.adapters.finish import ReadResult, TopicJob
from kgs_core.adapters.group_offsets import GroupOffsets
from kgs_core.adapters.kafka_admin import KafkaAdmin
from kgs_core.adapters.topic_opening import recreated
from kgs_core.adapters.topic_state import TopicState
from kgs_core.config import Settings
from kgs_core.consumer.batch_plan import PlannedRead, Waiting, choose
from kgs_core.errors import PortError, TransientError, UnsafeError
from kgs_core.model import TopicBatch, TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kgs_core.adapters.dataframe_task import DataFrameFinish

SLICE_S = 1.0
MIXED_SLICES_S = (0.01, 0.1)
READ_TIMEOUT_S = 10.0
COMMIT_THREADS = 8
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class RoundReport:
    """What one round did; for logs and metrics.

    Attributes:
        refused: batches that another writer was ahead of.
        latency_s: from the timestamp of the oldest record to its commit; None without records.
    """

    batches: int = 0
    records: int = 0
    consumed_bytes: int = 0
    refused: int = 0
    fetch_s: float = 0.0
    write_s: float = 0.0
    commit_s: float = 0.0
    latency_s: float | None = None
    problems: set[str] = field(default_factory=set)


class Ingest:
    """Runs rounds over the topics in `topics`, which the owner of this object keeps up to date between rounds."""

    def __init__(
        self,
        topics: Mapping[str, TopicState],
        settings: Settings,
        spark: "SparkSession",
        context: TaskContext,
        admin: KafkaAdmin,
        group_offsets: GroupOffsets,
    ) -> None:
        self.topics = topics
        self._settings = settings
        self._admin = admin
        self._group_offsets = group_offsets
        from pyspark import SparkFiles

        self._hurry = Path(SparkFiles.getRootDirectory(), "hurry")
        self._context = replace(context, hurry=str(self._hurry))
        self._spark = spark
        self._seed = spark.sparkContext.parallelize([0], 1)
        self._dataframe: DataFrameFinish | None = None
        self._pool = ThreadPoolExecutor(COMMIT_THREADS, thread_name_prefix="commit")

    @property
    def dataframe(self) -> "DataFrameFinish":
        """The dataframe finish, made when first needed."""
        if self._dataframe is None:
            from kgs_core.adapters.dataframe_task import DataFrameFinish

            self._dataframe = DataFrameFinish(self._spark, self._context, READ_TIMEOUT_S)
        return self._dataframe

    def round(self) -> RoundReport:
        """One round over all topics; returns after about a second when there is nothing to read, or when hurried.

        Raises:
            TransientError: Kafka or the lake did not answer; the positions have been or must be read again.
        """
        now = time.monotonic()
        for state in self.topics.values():
            state.retry_due(now)
        report = RoundReport()
        planned, has_dataframe = self._plan(now)
        results = [self._read_arrow(self._slice_s(planned, has_dataframe=has_dataframe))]
        if planned is not None:
            state = self.topics[planned.topic]
            results.append(self.dataframe.read(state.job(), state.exact_ranges(planned.ranges)))
            state.waiting_since = None
        for result in results:
            self._settle(result, report)
        return report

    def warm(self) -> None:
        """Have a Python worker that is up, with Kafka's client in it; reads nothing."""
        self._run({}, {}, 0.0)

    def warm_topic(self, state: TopicState) -> None:
        """Have the workers up that the transform of a topic runs in; reads nothing of it.

        Raises:
            TransientError: the lake did not answer.
        """
        if state.uses_dataframe:
            self.dataframe.read(state.job(), {})

    def hurry(self) -> None:
        """Have the round in hand wait for records no longer; for another thread than that of the rounds."""
        with suppress(OSError):  # a full disk: then it comes back at the end of its slice
            self._hurry.touch()

    def take_your_time(self) -> None:
        """Take `hurry` back."""
        with suppress(OSError):
            self._hurry.unlink(missing_ok=True)

    def _slice_s(self, planned: PlannedRead | None, *, has_dataframe: bool) -> float:
        """How long the arrow topics may be waited for: not at all while a dataframe topic is due."""
        if not has_dataframe:
            return SLICE_S
        shortest, longest = MIXED_SLICES_S
        return 0.0 if planned else min(max(self._settings.consumer.wait_time_s / 10, shortest), longest)

    def close(self) -> None:
        """End the commit threads."""
        self._pool.shutdown()

    def _read_arrow(self, slice_s: float) -> ReadResult:
        states = [s for s in self.topics.values() if not s.uses_dataframe and s.active]
        if not states:
            time.sleep(slice_s)
            return ReadResult()
        start = {TopicPartition(s.topic, p): offset for s in states for p, offset in s.active.items()}
        return self._run({s.topic: s.job() for s in states}, start, slice_s)

    def _run(self, jobs: Mapping[str, TopicJob], start: Mapping[TopicPartition, int], slice_s: float) -> ReadResult:
        consumer = self._settings.consumer
        request = ArrowRequest(self._context, jobs, start, consumer.batch_bytes, consumer.wait_time_s, slice_s)
        results: list[ReadResult] = self._seed.mapPartitions(partial(run_arrow_task, request)).collect()
        return results[0]

    def _plan(self, now: float) -> tuple[PlannedRead | None, bool]:
        """The dataframe topic whose turn it is, and whether there are any such topics."""
        states = [s for s in self.topics.values() if s.uses_dataframe and s.active]
        if not states:
            return None, False
        tps = [TopicPartition(s.topic, p) for s in states for p in s.active]
        try:
            ends = self._admin.offsets(tps, "latest", committed_reads=True)
        except TransientError as e:  # one partition without a leader must not hold up the other topics
            _log.warning("ends not known: %s", e)
            return None, True
        waiting = []
        for state in states:
            own = {p: ends[TopicPartition(state.topic, p)] for p in state.active}
            for partition, position in state.active.items():
                if own[partition] < position:
                    self._stop_lost(TopicPartition(state.topic, partition), "")
            found = Waiting(state.topic, state.active, own, state.waiting_since or now, state.bytes_per_record)
            if found.records:
                state.waiting_since = state.waiting_since or now
                waiting.append(found)
        consumer = self._settings.consumer
        return choose(waiting, consumer.batch_bytes, consumer.wait_time_s, now), True

    def _settle(self, result: ReadResult, report: RoundReport) -> None:
        report.problems |= result.problems
        report.fetch_s += result.fetch_s
        report.write_s += result.write_s
        began = time.monotonic()
        batches = self._checked(result.batches)
        commits = [self._pool.submit(self._commit, batch) for batch in batches]
        wait(commits)  # also when one of them breaks: whoever called must know that no commit is under way any more
        outcomes = [commit.result() for commit in commits]
        report.commit_s += time.monotonic() - began
        for batch, outcome in zip(batches, outcomes, strict=True):
            if outcome is Outcome.COMMITTED:
                self._count(batch, report)
            else:
                report.refused += 1
                _log.info("refused topic=%s ranges=%s: %s", batch.topic, dict(batch.ranges), outcome)
                self._recover(self.topics[batch.topic], outcome)
        for tp, (_, reason) in result.poison.items():
            self.topics[tp.topic].stop({tp.partition: f"bad record: {reason}"})
        for tp, reason in result.lost.items():
            self._stop_lost(tp, reason)
        for topic, reason in result.failed.items():
            self.topics[topic].fail(reason, time.monotonic())
        for outcome in outcomes:
            if isinstance(outcome, TransientError):
                raise outcome

    @staticmethod
    def _recover(state: TopicState, outcome: Outcome | PortError) -> None:
        """After a batch that did not land: start again from the table's positions, or stand still if it is not safe."""
        try:
            if isinstance(outcome, UnsafeError):
                raise outcome
            state.reload()
        except UnsafeError as e:
            state.stop(dict.fromkeys(state.owned, str(e)))

    def _checked(self, batches: list[TopicBatch]) -> list[TopicBatch]:
        """The batches whose topic still is the one it was when they were read; the others' topics are stopped."""
        if not batches:
            return []
        ids = self._admin.topic_ids([b.topic for b in batches])
        good = []
        for batch in batches:
            if ids[batch.topic] == batch.topic_id:
                good.append(batch)
            else:
                state = self.topics[batch.topic]
                state.stop(dict.fromkeys(state.owned, recreated(batch.topic, [batch.topic_id], ids[batch.topic])))
        return good

    def _commit(self, batch: TopicBatch) -> Outcome | PortError:
        try:
            return self.topics[batch.topic].table.commit(batch)
        except PortError as e:
            return e

    def _count(self, batch: TopicBatch, report: RoundReport) -> None:
        self.topics[batch.topic].advance(batch)
        self._group_offsets.report({TopicPartition(batch.topic, p): r.end for p, r in batch.ranges.items()})
        report.batches += 1
        report.records += batch.records
        report.consumed_bytes += batch.consumed_bytes
        if batch.oldest_ms is not None:
            report.latency_s = max(report.latency_s or 0.0, time.time() - batch.oldest_ms / 1000)

    def _stop_lost(self, tp: TopicPartition, words: str) -> None:
        """Stop a partition whose next offset the broker does not have, with a reason told from what it does have."""
        state = self.topics[tp.topic]
        position, topic_id = state.positions[tp.partition], state.table.ids.topic_id
        found = self._admin.topic_ids([tp.topic])[tp.topic]
        if found != topic_id:
            state.stop(dict.fromkeys(state.owned, recreated(tp.topic, [topic_id], found)))
            return
        first, end = (self._admin.offsets([tp], which)[tp] for which in ("earliest", "latest"))
        if position < first:
            words = (
                f"offsets {position} to {first - 1} were deleted before being read; to go on without them: "
                f"kgs accept-loss {tp}={position}-{first} --yes"
            )
        elif position > end:
            words = truncated(position, end)
        state.stop({tp.partition: words})


def truncated(position: int, end: int) -> str:
    """The reason of a partition whose log is shorter than the table."""
    return f"log truncated: the table has offsets to {position - 1}, the log ends at {end}: restore the log"
