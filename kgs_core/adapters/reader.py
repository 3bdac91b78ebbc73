"""What every consumer works with, however it comes to its partitions: clients, Spark, topics, rounds, patience."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from kgs_core.adapters.arrow_task import TaskContext
from kgs_core.adapters.crash_points import crash_plan
from kgs_core.adapters.group_offsets import GroupOffsets
from kgs_core.adapters.ingest import Ingest
from kgs_core.adapters.kafka_admin import KafkaAdmin
from kgs_core.adapters.kafka_clients import admin_client, reading_client
from kgs_core.adapters.owned_topics import OwnedTopics
from kgs_core.adapters.spark_session import interrupt_handler_kept, jvm_has_ended, start_spark, stop_spark
from kgs_core.adapters.storage import Storage, probe
from kgs_core.adapters.task_errors import cause, transient
from kgs_core.adapters.topic_opening import TopicOpener
from kgs_core.adapters.watchdog import limited
from kgs_core.config import Settings
from kgs_core.errors import ConfigError, PermanentError, PortError, TransientError
from kgs_core.model import ConsumerId

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

StartSpark = Callable[[], "SparkSession"]
MAX_FAILURES = 5
MAX_BACKOFF_S = 10.0
_log = logging.getLogger(__name__)


class Reader:
    """One consumer's means; Spark is started when first needed, since it takes seconds.

    Attributes:
        start_spark: gives the session, which is the reader's to end.
    """

    def __init__(
        self, settings: Settings, consumer: ConsumerId, storage: Storage, admin: KafkaAdmin, offsets: GroupOffsets
    ) -> None:
        self.admin = admin
        self.topics = OwnedTopics(settings, admin, TopicOpener(settings, storage, admin, offsets, self._schema))
        self.start_spark: StartSpark = lambda: start_spark(settings.spark, f"kgs-{settings.group}-{consumer}")
        self._settings = settings
        self._consumer = consumer
        self._storage = storage
        self._offsets = offsets
        self._failures = 0

    @cached_property
    def _spark(self) -> "SparkSession":
        with interrupt_handler_kept():
            return self.start_spark()

    @cached_property
    def ingest(self) -> Ingest:
        """The rounds over `topics`."""
        settings = self._settings
        context = TaskContext(reading_client(settings), self._storage, crash_plan())
        return Ingest(self.topics.states, settings, self._spark, context, self.admin, self._offsets)

    def _schema(self, transform: str, topic: str, schema: pa.Schema) -> pa.Schema:
        from kgs_core.adapters.dataframe_task import transform_schema

        return transform_schema(self._spark, transform, topic, schema)

    def warm_up(self) -> None:
        """Start Spark, with Python workers that can read at once.

        Raises:
            PortError: it does not start.
        """
        try:
            self.ingest.warm()
            if any(rule.transform for rule in self._settings.topics):
                self.ingest.dataframe.warm()
        except PortError:
            raise
        except Exception as e:
            raise TransientError(f"consumer {self._consumer}: Spark does not start: {cause(e)}") from e

    def attempt(self, step: Callable[[], None], wait: Callable[[float], None]) -> None:
        """Run one step; what may pass is waited for.

        Raises:
            ConfigError, PermanentError: a person must act.
            TransientError: the same failure several times over, or Spark's JVM is gone.
        """
        try:
            step()
        except TransientError as e:
            # Waits for as long as it takes: a consumer that ends because Kafka is away would come back no wiser.
            _log.warning("trying again: %s", e)
            wait(e.retry_after_s)
        except (ConfigError, PermanentError):
            raise
        except Exception as e:
            if (again := transient(e)) is not None:
                _log.warning("trying again: %s", again)
                wait(again.retry_after_s)
                return
            # A Python worker or the whole JVM of Spark has died. Nothing is lost by it: the lake has the positions.
            self._failures += 1
            if self._failures >= MAX_FAILURES or jvm_has_ended(self._spark):
                raise TransientError(
                    f"consumer {self._consumer}: {self._failures} rounds failed, last: {cause(e)}"
                ) from e
            _log.warning("round failed (%d of %d): %s", self._failures, MAX_FAILURES, cause(e))
            wait(min(0.5 * 2**self._failures, MAX_BACKOFF_S))
        else:
            self._failures = 0

    def close(self) -> None:
        """End the commit threads, the client of the group's offsets, and Spark where it was started."""
        if "ingest" in self.__dict__:
            self.ingest.close()
        self._offsets.close()
        if "_spark" in self.__dict__:
            try:
                stop_spark(self._spark)
            except Exception as e:  # noqa: BLE001 - py4j raises anything when the JVM dies, and why we end must be told
                _log.warning("Spark did not end in order: %s", cause(e))


@contextmanager
def open_reader(
    settings: Settings,
    consumer: ConsumerId,
    start_spark: StartSpark | None = None,
    last_word: Callable[[str], None] | None = None,
) -> Iterator[Reader]:
    """A reader, closed at the end of the block; the process ends where that does not come to an end.

    Args:
        settings: what is read, and where to.
        consumer: who reads.
        start_spark: gives the session where somebody else makes it; it is ended here all the same.
        last_word: see `watchdog.start_watchdog`.

    Raises:
        PortError: Kafka or the lake does not answer, or refuses us.
    """
    admin = KafkaAdmin(admin_client(settings))
    storage = Storage(settings.lake.root, settings.lake.storage_options)
    admin.list_topics()
    probe(storage)
    reader = Reader(settings, consumer, storage, admin, GroupOffsets(reading_client(settings), settings.group))
    if start_spark is not None:
        reader.start_spark = start_spark
    try:
        yield reader
    finally:
        with limited("the end", settings.consumer.batch_timeout_s, last_word):
            reader.close()
