"""One consumer's process in the static mode: a fixed share of partitions, rounds until a signal says stop."""

import logging
import os
import threading
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from kgs_core.adapters.arrow_task import TaskContext
from kgs_core.adapters.consumer_status import ConsumerStatus
from kgs_core.adapters.crash_points import crash_plan
from kgs_core.adapters.group_offsets import GroupOffsets
from kgs_core.adapters.ingest import Ingest
from kgs_core.adapters.kafka_admin import KafkaAdmin, TopicDescription
from kgs_core.adapters.kafka_clients import admin_client, reading_client
from kgs_core.adapters.spark_session import jvm_has_ended, start_spark, stop_spark
from kgs_core.adapters.stop_flag import StopFlag
from kgs_core.adapters.storage import Storage, probe
from kgs_core.adapters.task_errors import cause, transient
from kgs_core.adapters.topic_opening import TopicOpener, recreated
from kgs_core.adapters.topic_state import TopicState
from kgs_core.config import Settings, TableSpec, resolve_tables
from kgs_core.consumer.share import Share
from kgs_core.errors import ConfigError, PermanentError, TransientError, UnsafeError
from kgs_core.model import ConsumerId

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_FAILURES = 5
MAX_BACKOFF_S = 10.0
EXIT_SELF_FENCE = 1
_log = logging.getLogger(__name__)


class Watchdog:
    """Ends the process when one round takes longer than `batch_timeout_s`: a stuck consumer must not look alive."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._since = time.monotonic()
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def touch(self) -> None:
        """A round begins or ends."""
        self._since = time.monotonic()

    def _run(self) -> None:
        while True:
            time.sleep(min(1.0, self._timeout_s / 4))
            if time.monotonic() - self._since > self._timeout_s:
                _log.critical("batch older than batch_timeout_s=%g: ending this process", self._timeout_s)
                logging.shutdown()
                os._exit(EXIT_SELF_FENCE)


class StaticConsumer:
    """A consumer that reads a fixed share, whatever else runs."""

    def __init__(self, settings: Settings, consumer: ConsumerId, share: Share, status_file: Path | None = None) -> None:
        self._settings = settings
        self._consumer = consumer
        self._share = share
        self._topics: dict[str, TopicState] = {}
        self._status = ConsumerStatus(consumer, status_file)
        self._refreshed = float("-inf")

    def run(self, stop: StopFlag) -> None:
        """Read until `stop`; the batch in hand is committed first.

        Raises:
            ConfigError, PermanentError, UnsafeError: found before anything is read.
            TransientError: the same failure several times over.
        """
        settings = self._settings
        self._admin = KafkaAdmin(admin_client(settings))
        storage = Storage(settings.lake.root, settings.lake.storage_options)
        self._admin.list_topics()
        probe(storage)
        client = reading_client(settings)
        offsets = GroupOffsets(client, settings.group)
        self._opener = TopicOpener(settings, storage, self._admin, offsets, self._dataframe_schema)
        try:
            # Spark takes seconds to start: what can be refused is refused before that.
            self._refresh(first=True)
            context = TaskContext(client, storage, crash_plan())
            ingest = Ingest(self._topics, settings, self._spark, context, self._admin, offsets)
            _log.info("reading group=%s consumer=%d topics=%d", settings.group, self._consumer, len(self._topics))
            self._loop(ingest, stop)
            ingest.close()
        finally:
            offsets.close()
            if "_spark" in self.__dict__:
                stop_spark(self._spark)
        _log.info("ended consumer=%d records=%d", self._consumer, self._status.records)

    @cached_property
    def _spark(self) -> "SparkSession":
        return start_spark(self._settings.spark, f"kgs-{self._settings.group}-{self._consumer}")

    def _dataframe_schema(self, transform: str, topic: str, schema: pa.Schema) -> pa.Schema:
        from kgs_core.adapters.dataframe_task import transform_schema

        return transform_schema(self._spark, transform, topic, schema)

    def _loop(self, ingest: Ingest, stop: StopFlag) -> None:
        watchdog = Watchdog(self._settings.consumer.batch_timeout_s)
        failures = 0
        while not stop.is_set:
            watchdog.touch()
            try:
                if time.monotonic() - self._refreshed > self._settings.consumer.topics_refresh_s:
                    self._refresh(first=False)
                report = ingest.round()
                failures = 0
            except TransientError as e:
                # Waits for as long as it takes: a consumer that ends because Kafka is away would come back no wiser.
                _log.warning("trying again: %s", e)
                stop.wait(e.retry_after_s)
                continue
            except (ConfigError, PermanentError):
                raise
            except Exception as e:
                if (again := transient(e)) is not None:
                    _log.warning("trying again: %s", again)
                    stop.wait(again.retry_after_s)
                    continue
                # A Python worker or the whole JVM of Spark has died. Nothing is lost by it: the lake has the positions.
                failures += 1
                if failures >= MAX_FAILURES or jvm_has_ended(self._spark):
                    raise TransientError(
                        f"consumer {self._consumer}: {failures} rounds failed, last: {cause(e)}"
                    ) from e
                _log.warning("round failed (%d of %d): %s", failures, MAX_FAILURES, cause(e))
                stop.wait(min(0.5 * 2**failures, MAX_BACKOFF_S))
                continue
            watchdog.touch()
            self._status.note(report, self._topics.values())
        self._status.write(self._topics.values())

    def _refresh(self, *, first: bool) -> None:
        """Look for topics and partitions that came, went or changed; ask the table where stopped partitions stand.

        Raises:
            UnsafeError, ConfigError: at the first time; later a topic that cannot be opened is left out, loudly.
        """
        specs = resolve_tables(self._settings, self._admin.list_topics())
        described = self._admin.describe(specs)
        for topic, spec in specs.items():
            if topic in described:
                try:
                    self._refresh_topic(spec, described[topic])
                except (ConfigError, UnsafeError) as e:
                    if first:
                        raise
                    _log.error("topic left out: %s", e)
                    if (state := self._topics.get(topic)) is not None:
                        state.stop(dict.fromkeys(state.owned, str(e)))
        for topic, state in self._topics.items():
            if topic not in described:
                state.stop(dict.fromkeys(state.owned, recreated(topic, [state.table.ids.topic_id], None)))
        self._refreshed = time.monotonic()

    def _refresh_topic(self, spec: TableSpec, found: TopicDescription) -> None:
        owned = self._share.of(spec.topic, found.partitions)
        state = self._topics.get(spec.topic)
        if state is None and owned:
            state = TopicState(self._opener.open(spec, found.topic_id, found.partitions))
            self._topics[spec.topic] = state
        if state is None:
            return
        if state.table.ids.topic_id != found.topic_id:
            state.stop(dict.fromkeys(state.owned, recreated(spec.topic, [state.table.ids.topic_id], found.topic_id)))
        elif owned != state.owned or state.stopped:
            state.owned = owned
            state.reload()
