"""Runner of batches in the consumer's own process, without Spark: for tests that do not need Spark.

It starts at once. It runs the same functions as Spark's worker, so a table's files and log are the same.
Spark transforms cannot run, and a record that kills the worker kills the consumer.
"""

import threading
from collections.abc import Mapping

import pyarrow as pa

from kgs_core.config.settings import ConsumerSettings
from kgs_core.errors import ConfigError
from kgs_core.ingest.driver.batch_runner import BatchRunner
from kgs_core.ingest.round.questions import ReadResult
from kgs_core.ingest.worker.arrow_task import ArrowRequest, TaskContext, read_round
from kgs_core.ingest.worker.topic_job import TopicJob
from kgs_core.kafka.records import collector_paused
from kgs_core.model import OffsetRange


class LocalBatchRunner(BatchRunner):
    """Runner in this process."""

    def __init__(self, context: TaskContext, consumer: ConsumerSettings) -> None:
        super().__init__(context, consumer)
        self._interrupted = threading.Event()

    @property
    def has_ended(self) -> bool:
        """False: it ends only with its process."""
        return False

    def transform_schema(self, transform: str, topic: str, schema: pa.Schema) -> pa.Schema:  # noqa: ARG002
        """Raise a ConfigError: a transform needs Spark."""
        raise _needs_spark(transform, topic)

    def read_arrow(self, request: ArrowRequest) -> ReadResult:
        """One read, here and now."""
        with collector_paused():
            return read_round(request, self._interrupted.is_set)

    def read_dataframe(self, job: TopicJob, ranges: Mapping[int, OffsetRange]) -> ReadResult:  # noqa: ARG002
        """Raise a ConfigError: a transform needs Spark."""
        raise _needs_spark(job.plan.spec.rule.transform, job.topic)

    def warm_transforms(self) -> None:
        """Do nothing: no transform can run here."""

    def interrupt(self) -> None:
        """Make the current read return early."""
        self._interrupted.set()

    def take_your_time(self) -> None:
        """Take `interrupt` back."""
        self._interrupted.clear()

    def end_task(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing was started."""


def _needs_spark(transform: str | None, topic: str) -> ConfigError:
    return ConfigError([f"transform {transform} of {topic}: needs Spark: unset KGS_BATCH_RUNNER"])
