"""Runner of a consumer's batches: the seam between the rounds and what fetches, transforms and writes for them."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping

import pyarrow as pa

from kgs_core.config.settings import ConsumerSettings
from kgs_core.ingest.round.questions import ReadBatch, ReadResult
from kgs_core.ingest.worker.arrow_task import ArrowRequest, TaskContext
from kgs_core.ingest.worker.topic_job import TopicJob
from kgs_core.model import OffsetRange

SLICE_S = 1.0
MIXED_SLICES_S = (0.01, 0.1)


class BatchRunner(ABC):
    """Runner of the reads that a round asks for."""

    def __init__(self, context: TaskContext, consumer: ConsumerSettings) -> None:
        self._context = context
        self._consumer = consumer

    @property
    @abstractmethod
    def has_ended(self) -> bool:
        """Whether no further read can succeed."""

    @abstractmethod
    def transform_schema(self, transform: str, topic: str, schema: pa.Schema) -> pa.Schema:
        """Columns that the Spark transform `transform` makes of `schema`.

        Raises:
            TransformError: it cannot be loaded, or it raised.
            ConfigError: no Spark transform can run here.
        """

    @abstractmethod
    def read_arrow(self, request: ArrowRequest) -> ReadResult:
        """One read of the topics without a Spark transform."""

    @abstractmethod
    def read_dataframe(self, job: TopicJob, ranges: Mapping[int, OffsetRange]) -> ReadResult:
        """Read exact ranges of a topic through its Spark transform; without ranges, only start its workers."""

    @abstractmethod
    def end_task(self) -> None:
        """Release what reads of arrow topics hold in between; the next read acquires it again."""

    @abstractmethod
    def close(self) -> None:
        """End what was started."""

    def read(self, question: ReadBatch, jobs: Mapping[str, TopicJob]) -> ReadResult:
        """Carry out one `ReadBatch`; returns after about a second when there is nothing to read, or if interrupted.

        Raises:
            Exception: Spark, or a worker of it, has failed.
        """
        planned = question.planned
        slice_s = self._slice_s(is_planned=planned is not None, has_dataframe=question.has_dataframe)
        if question.start:
            topics = {tp.topic for tp in question.start}
            result = self._read({topic: jobs[topic] for topic in topics}, question, slice_s)
        else:
            time.sleep(slice_s)
            result = ReadResult()
        if planned is not None:
            result.add(self.read_dataframe(jobs[planned.topic], planned.ranges))
        result.asked_bytes = question.batch_bytes
        return result

    def warm(self) -> None:
        """Start a worker with its Kafka client, or keep it running; reads nothing."""
        self._read({}, ReadBatch({}, None, has_dataframe=False, batch_bytes=0), 0.0)

    def warm_topic(self, job: TopicJob) -> None:
        """Start the workers that run a topic's transform, without reading the topic."""
        self.read_dataframe(job, {})

    @abstractmethod
    def warm_transforms(self) -> None:
        """Start everything that Spark transforms run in, whichever topic they belong to."""

    @abstractmethod
    def interrupt(self) -> None:
        """Make the current read stop waiting for records; for a thread other than that of the rounds."""

    @abstractmethod
    def take_your_time(self) -> None:
        """Take `interrupt` back."""

    def _slice_s(self, *, is_planned: bool, has_dataframe: bool) -> float:
        """Longest wait for the arrow topics, s; 0 if a dataframe topic is due."""
        if not has_dataframe:
            return SLICE_S
        shortest, longest = MIXED_SLICES_S
        return 0.0 if is_planned else min(max(self._consumer.wait_time_s / 10, shortest), longest)

    def _read(self, jobs: Mapping[str, TopicJob], question: ReadBatch, slice_s: float) -> ReadResult:
        wait_time_s = self._consumer.wait_time_s
        return self.read_arrow(
            ArrowRequest(self._context, jobs, question.start, question.batch_bytes, wait_time_s, slice_s)
        )
