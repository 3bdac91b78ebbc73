"""Context of any consumer, whoever gives it partitions: clients, Spark, topics, rounds, retries."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from kgs_core.config import Settings, TableSpec
from kgs_core.errors import ConfigError, PermanentError, PortError, TransientError
from kgs_core.ingest.driver.batch_runner import BatchRunner
from kgs_core.ingest.driver.local_batch_runner import LocalBatchRunner
from kgs_core.ingest.driver.rounds import Ingest
from kgs_core.ingest.driver.spark_batch_runner import SparkBatchRunner
from kgs_core.ingest.driver.zone_bytes import ZoneBytes
from kgs_core.ingest.opening.owned_topics import OwnedTopics
from kgs_core.ingest.opening.topic_opener import TopicOpener
from kgs_core.ingest.worker.arrow_task import TaskContext
from kgs_core.kafka.admin import KafkaAdmin, admin_of
from kgs_core.kafka.client_config import fetching_client, reading_client, zone_of
from kgs_core.kafka.committed_offsets import GroupOffsets
from kgs_core.lake.derived.upkeep import NewestRowsUpkeep
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.topics.factory import open_lake
from kgs_core.model import ConsumerId
from kgs_core.ports import Lake
from kgs_core.runtime.start_up import StartUp
from kgs_core.spark.errors import cause, passing, transient
from kgs_core.spark.session import interrupt_handler_kept, start_spark
from kgs_core.system.failpoints import crash_plan
from kgs_core.system.shutdown import StopFlag
from kgs_core.system.watchdog import limited

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNNER = "KGS_BATCH_RUNNER"
"""Environment variable: `local` runs batches in the consumer's process, without Spark; else `spark`."""
StartSpark = Callable[[], "SparkSession"]
MAX_FAILURES = 5
MAX_BACKOFF_S = 10.0
_log = logging.getLogger(__name__)


class ConsumerContext:
    """Resources of one consumer; its batch runner starts when first needed, since Spark takes seconds.

    Attributes:
        start_spark: creates the session, which the reader ends.
        zone_bytes: what was read within its zone and across; none is counted where the zone is not known.
    """

    def __init__(
        self, settings: Settings, consumer: ConsumerId, lake: Lake, admin: KafkaAdmin, offsets: GroupOffsets
    ) -> None:
        self.admin = admin
        self.topics = OwnedTopics(settings, admin, TopicOpener(settings, lake, admin, offsets, self._schema))
        self.zone_bytes = ZoneBytes(zone_of(settings), admin.racks)
        self.start_spark: StartSpark = lambda: start_spark(settings.spark, f"kgs-{settings.group}-{consumer}")
        self._settings = settings
        self._consumer = consumer
        self._offsets = offsets
        self._failures = 0

    @cached_property
    def runner(self) -> BatchRunner:
        """The runner of batches."""
        settings = self._settings
        storage = Storage.of(settings.lake)
        context = TaskContext(fetching_client(settings), storage, crash_plan(), formats=settings.formats)
        if _is_local():
            _log.warning("%s=local: batches are run without Spark", RUNNER)
            return LocalBatchRunner(context, settings.consumer)
        with interrupt_handler_kept():
            spark = self.start_spark()
        return SparkBatchRunner(spark, context, settings.consumer)

    @cached_property
    def ingest(self) -> Ingest:
        """The rounds over `topics`."""
        return Ingest(self.topics.states, self._settings.consumer, self.runner, self.admin, self._offsets)

    def _schema(self, transform: str, topic: str, schema: pa.Schema) -> pa.Schema:
        return self.runner.transform_schema(transform, topic, schema)

    def warm_up(self) -> None:
        """Start the runner, with workers that can read at once.

        Raises:
            PortError: it does not start.
        """
        try:
            self.runner.warm()
            if any(rule.transform for rule in self._settings.topics):
                self.runner.warm_transforms()
        except PortError:
            raise
        except Exception as e:
            raise TransientError(f"consumer {self._consumer}: Spark does not start: {cause(e)}") from e

    def attempt(self, step: Callable[[], None], wait: Callable[[float], None], stop: StopFlag | None = None) -> bool:
        """Run one step; after a transient error, wait.

        Returns:
            Whether another step makes sense: not once Spark's JVM was ended together with this process, by a signal to
            both. The batch in hand is lost then, and read again by the next consumer.

        Raises:
            ConfigError, PermanentError: a person must act.
            TransientError: the same failure several times over, or Spark's JVM is gone.
        """
        try:
            self._try(step, wait)
        except TransientError:
            if stop is None or not stop.is_set or not self.has_lost_runner:
                raise
            _log.info("Spark has also ended: the batch in hand is left to the next consumer")
            return False
        return True

    def _try(self, step: Callable[[], None], wait: Callable[[float], None]) -> None:
        try:
            step()
        except Exception as e:
            if (again := _may_pass(e)) is not None:
                # Waits for as long as it takes: a consumer that ends because Kafka is away would come back no wiser.
                _log.warning("trying again: %s", again)
                wait(again.retry_after_s)
                return
            if isinstance(e, ConfigError | PermanentError):
                raise
            # A Python worker or the whole JVM of Spark has died. Nothing is lost by it: the lake has the positions.
            self._failures += 1
            if self._failures >= MAX_FAILURES or self.has_lost_runner:
                raise TransientError(
                    f"consumer {self._consumer}: {self._failures} rounds failed, last: {cause(e)}"
                ) from e
            _log.warning("round failed (%d of %d): %s", self._failures, MAX_FAILURES, cause(e))
            wait(min(0.5 * 2**self._failures, MAX_BACKOFF_S))
        else:
            self._failures = 0
            if self.has_lost_runner:  # a topic's own failures do not get as far as here, and each of them would fail
                raise TransientError(f"consumer {self._consumer}: Spark's JVM has ended")

    @property
    def has_lost_runner(self) -> bool:
        """Whether Spark was started, and its JVM is gone."""
        return "runner" in self.__dict__ and self.runner.has_ended

    def first_partitions(self) -> list[TableSpec]:
        """Tables of the topics whose partition 0 it owns; any thread may ask."""
        return [each.table.spec for each in list(self.topics.states.values()) if 0 in each.progress.owned]

    def stuck_reason(self, now: float) -> str | None:
        """For the watchdog: why no topic can be opened any more; None while one can."""
        return self.topics.threads.stuck_reason(now, self._settings.consumer.batch_timeout_s)

    def close(self) -> None:
        """End the threads at the lake, the client of the group's offsets, and the runner where it was started."""
        self.topics.threads.close()
        if "ingest" in self.__dict__:
            self.ingest.close()
        self._offsets.close()
        if "runner" in self.__dict__:
            try:
                self.runner.close()
            except Exception as e:  # noqa: BLE001 - py4j raises anything when the JVM dies, and why we end must be told
                _log.warning("Spark did not end in order: %s", cause(e))


def _is_local() -> bool:
    name = os.environ.get(RUNNER, "spark")
    if name not in ("spark", "local"):
        raise ConfigError([f"{RUNNER}={name}: no such runner of batches: use spark (as without it) or local"])
    return name == "local"


def _may_pass(error: Exception) -> TransientError | None:
    """Transient error to wait for; None: the error is not known to be transient."""
    if isinstance(error, TransientError):
        return error
    return transient(error) or (TransientError(cause(error)) if passing(error) is not None else None)


@contextmanager
def open_reader(
    settings: Settings,
    consumer: ConsumerId,
    start_up: StartUp,
    start_spark: StartSpark | None = None,
    last_word: Callable[[str], None] | None = None,
) -> Iterator[ConsumerContext]:
    """A reader, closed at the end of the block; if closing hangs, the process ends.

    `start_spark` returns a session that the caller makes; it is ended here all the same.

    Raises:
        PortError: Kafka or the lake refuses us.
        AskedToEndError: see `StartUp.bear`.
    """
    admin = admin_of(settings)
    lake = open_lake(settings.lake, str(consumer))
    start_up.bear(admin.list_topics)
    start_up.bear(lake.probe, f"lake {settings.lake.root}")
    reader = ConsumerContext(settings, consumer, lake, admin, GroupOffsets(reading_client(settings), settings.group))
    if start_spark is not None:
        reader.start_spark = start_spark
    try:
        with NewestRowsUpkeep(settings, reader.first_partitions).running():
            yield reader
    finally:
        with limited("the end", settings.consumer.batch_timeout_s, last_word):
            reader.close()
