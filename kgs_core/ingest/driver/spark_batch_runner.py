"""Runner of batches on Spark: one task for the topics of the arrow processor, a job for each batch of a transform."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa

from kgs_core.config.settings import ConsumerSettings
from kgs_core.ingest.driver.batch_runner import BatchRunner
from kgs_core.ingest.round.questions import ReadResult
from kgs_core.ingest.worker.arrow_task import ArrowRequest, TaskContext, run_arrow_task
from kgs_core.ingest.worker.long_task import LongTask
from kgs_core.ingest.worker.topic_job import TopicJob
from kgs_core.model import OffsetRange
from kgs_core.spark.session import end_accumulators_in_silence, jvm_has_ended, stop_spark
from kgs_core.spark.temporary_folder import socket_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kgs_core.ingest.worker.dataframe_task import DataFrameProcessor

READ_TIMEOUT_S = 10.0


class SparkBatchRunner(BatchRunner):
    """Runner on one Spark session, whose Python worker keeps Kafka's client between rounds; it ends the session."""

    def __init__(self, spark: "SparkSession", context: TaskContext, consumer: ConsumerSettings) -> None:
        from pyspark import SparkFiles

        end_accumulators_in_silence(spark)
        self._interrupt = Path(SparkFiles.getRootDirectory(), "interrupt")
        super().__init__(replace(context, interrupt=str(self._interrupt)), consumer)
        self._spark = spark
        self._seed = spark.sparkContext.parallelize([0], 1)
        self._is_on_one_machine = (spark.sparkContext.master or "").startswith("local")
        self._task: LongTask | None = None

    @cached_property
    def _dataframe(self) -> "DataFrameProcessor":
        from kgs_core.ingest.worker.dataframe_task import DataFrameProcessor

        return DataFrameProcessor(self._spark, self._context, READ_TIMEOUT_S)

    @property
    def has_ended(self) -> bool:
        """Whether Spark's JVM is gone."""
        return jvm_has_ended(self._spark)

    def transform_schema(self, transform: str, topic: str, schema: pa.Schema) -> pa.Schema:
        """Columns that a transform makes of `schema`, from Spark's analysis; no job runs."""
        from kgs_core.ingest.worker.dataframe_task import transform_schema

        return transform_schema(self._spark, transform, topic, schema)

    def read_arrow(self, request: ArrowRequest) -> ReadResult:
        """Send a request to the long task; run one Spark task instead if workers are on other machines."""
        if not self._is_on_one_machine:
            results: list[ReadResult] = self._seed.mapPartitions(partial(run_arrow_task, request)).collect()
            return results[0]
        if self._task is None:
            # Its name is short, as Spark's sockets are
            with TemporaryDirectory(prefix="kgs-", dir=socket_folder(), ignore_cleanup_errors=True) as folder:
                self._task = LongTask(self._seed, Path(folder))
        try:
            return self._task.read(request)
        except BaseException:
            self._task = None
            raise

    def end_task(self) -> None:
        """End the long task, which frees its core; the next read starts another one in the same worker."""
        task, self._task = self._task, None
        if task is not None:
            task.end()

    def read_dataframe(self, job: TopicJob, ranges: Mapping[int, OffsetRange]) -> ReadResult:
        """One Spark job."""
        self.end_task()
        return self._dataframe.read(job, ranges)

    def warm_transforms(self) -> None:
        """Start the workers of Spark transforms, and run Spark's planner once."""
        self.end_task()
        self._dataframe.warm()

    def interrupt(self) -> None:
        """Make the current read return early, by a file that its worker looks for."""
        with suppress(OSError):  # a full disk: then it comes back at the end of its slice
            self._interrupt.touch()

    def take_your_time(self) -> None:
        """Take `interrupt` back."""
        with suppress(OSError):
            self._interrupt.unlink(missing_ok=True)

    def close(self) -> None:
        """End the session."""
        self.end_task()
        stop_spark(self._spark)
