"""Spark as the reader of a consumer's rounds: one task for the topics of the arrow finish, a job a dataframe topic."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kgs_core.adapters.ingest.arrow_task import ArrowRequest, TaskContext, run_arrow_task
from kgs_core.adapters.ingest.process_batch import TopicJob
from kgs_core.config.settings import ConsumerSettings
from kgs_core.consumer.round.questions import Read, ReadResult
from kgs_core.model import OffsetRange, TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kgs_core.adapters.ingest.dataframe_task import DataFrameFinish

SLICE_S = 1.0
MIXED_SLICES_S = (0.01, 0.1)
READ_TIMEOUT_S = 10.0


class SparkReads:
    """Reads on one Spark session, whose Python worker keeps Kafka's client between rounds."""

    def __init__(self, spark: "SparkSession", context: TaskContext, consumer: ConsumerSettings) -> None:
        from pyspark import SparkFiles

        self._hurry = Path(SparkFiles.getRootDirectory(), "hurry")
        self._context = replace(context, hurry=str(self._hurry))
        self._consumer = consumer
        self._spark = spark
        self._seed = spark.sparkContext.parallelize([0], 1)
        self._dataframe: DataFrameFinish | None = None

    @property
    def dataframe(self) -> "DataFrameFinish":
        """The dataframe finish, made when first needed."""
        if self._dataframe is None:
            from kgs_core.adapters.ingest.dataframe_task import DataFrameFinish

            self._dataframe = DataFrameFinish(self._spark, self._context, READ_TIMEOUT_S)
        return self._dataframe

    def read(self, question: Read, jobs: Mapping[str, TopicJob]) -> ReadResult:
        """Carry out one `Read`; returns after about a second when there is nothing to read, or when hurried.

        Args:
            question: what to read.
            jobs: what a worker must know of each topic in it.

        Raises:
            Exception: Spark, or a worker of it, has failed.
        """
        planned = question.planned
        slice_s = self._slice_s(is_planned=planned is not None, has_dataframe=question.has_dataframe)
        if question.start:
            topics = {tp.topic for tp in question.start}
            result = self._run({topic: jobs[topic] for topic in topics}, question.start, question.epochs, slice_s)
        else:
            time.sleep(slice_s)
            result = ReadResult()
        if planned is not None:
            result.add(self.dataframe.read(jobs[planned.topic], planned.ranges))
        return result

    def warm(self) -> None:
        """Have a Python worker that is up, with Kafka's client in it; reads nothing."""
        self._run({}, {}, {}, 0.0)

    def warm_topic(self, job: TopicJob) -> None:
        """Have the workers up that the transform of a topic runs in; reads nothing of it."""
        nothing: dict[int, OffsetRange] = {}
        self.dataframe.read(job, nothing)

    def hurry(self) -> None:
        """Have the read in hand wait for records no longer; for another thread than that of the rounds."""
        with suppress(OSError):  # a full disk: then it comes back at the end of its slice
            self._hurry.touch()

    def take_your_time(self) -> None:
        """Take `hurry` back."""
        with suppress(OSError):
            self._hurry.unlink(missing_ok=True)

    def _slice_s(self, *, is_planned: bool, has_dataframe: bool) -> float:
        """How long the arrow topics may be waited for: not at all while a dataframe topic is due."""
        if not has_dataframe:
            return SLICE_S
        shortest, longest = MIXED_SLICES_S
        return 0.0 if is_planned else min(max(self._consumer.wait_time_s / 10, shortest), longest)

    def _run(
        self,
        jobs: Mapping[str, TopicJob],
        start: Mapping[TopicPartition, int],
        epochs: Mapping[TopicPartition, int],
        slice_s: float,
    ) -> ReadResult:
        consumer = self._consumer
        request = ArrowRequest(self._context, jobs, start, consumer.batch_bytes, consumer.wait_time_s, slice_s, epochs)
        results: list[ReadResult] = self._seed.mapPartitions(partial(run_arrow_task, request)).collect()
        return results[0]
