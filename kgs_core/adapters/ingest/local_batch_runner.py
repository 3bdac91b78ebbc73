"""Runner of batches in the consumer's own process, without Spark: for tests of what Spark has no part in.

It is up in no time. The functions are those that run in Spark's worker, so files and log of a table are the same.
Spark transforms cannot run, and a record that kills the worker kills the consumer.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from kgs_core.adapters.ingest.arrow_task import ArrowRequest, TaskContext, read_round
from kgs_core.adapters.ingest.batch_runner import BatchRunner
from kgs_core.adapters.ingest.process_batch import TopicJob
from kgs_core.adapters.kafka.records import collector_paused
from kgs_core.config.settings import ConsumerSettings
from kgs_core.consumer.round.questions import ReadResult
from kgs_core.errors import ConfigError
from kgs_core.model import OffsetRange


class LocalBatchRunner(BatchRunner):
    """Runner in this process."""

    def __init__(self, context: TaskContext, consumer: ConsumerSettings) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kgs-batches-", ignore_cleanup_errors=True)
        super().__init__(context, consumer, Path(self._folder.name))

    @property
    def has_ended(self) -> bool:
        """Never: it ends with its process."""
        return False

    def transform_schema(self, transform: str, topic: str, schema: pa.Schema) -> pa.Schema:  # noqa: ARG002
        """No columns: refused."""
        raise _needs_spark(transform, topic)

    def read_arrow(self, request: ArrowRequest) -> ReadResult:
        """One read, here and now."""
        with collector_paused():
            return read_round(request)

    def read_dataframe(self, job: TopicJob, ranges: Mapping[int, OffsetRange]) -> ReadResult:  # noqa: ARG002
        """Nothing: refused."""
        raise _needs_spark(job.rule.transform, job.topic)

    def warm_transforms(self) -> None:
        """Nothing: there are none."""

    def close(self) -> None:
        """Remove its folder."""
        self._folder.cleanup()


def _needs_spark(transform: str | None, topic: str) -> ConfigError:
    return ConfigError([f"transform {transform} of {topic}: needs Spark: unset KGS_BATCH_RUNNER"])
