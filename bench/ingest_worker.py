"""The program that `bench ingest` runs for each processor: a consumer's rounds, begun and ended by request."""

import json
import select
import socket
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kgs_core.config import Settings, parse_settings, resolve_tables
from kgs_core.config.settings import SparkSettings
from kgs_core.errors import PermanentError, PortError
from kgs_core.ingest.driver.round_report import RoundReport
from kgs_core.ingest.driver.rounds import Ingest
from kgs_core.ingest.driver.spark_batch_runner import SparkBatchRunner
from kgs_core.ingest.opening.topic_opener import TopicOpener
from kgs_core.ingest.opening.topic_state import TopicState
from kgs_core.ingest.worker.arrow_task import TaskContext
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.client_config import admin_client, reading_client
from kgs_core.kafka.committed_offsets import GroupOffsets
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.topics.factory import open_lake
from kgs_core.model import TopicId, TopicPartition
from kgs_core.spark.session import start_spark, stop_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DRY_S = 5.0


def transform(df: "DataFrame", topic: str) -> "DataFrame":  # noqa: ARG001 - the signature of transforms
    """What the dataframe processor is measured with: one more column."""
    return df.withColumn("total", df["reading"] * df["count"])


class TimedAdmin(KafkaAdmin):
    """The consumer's administration of Kafka, with the seconds of what every round asks it."""

    def __init__(self, config: Mapping[str, str | int]) -> None:
        super().__init__(config)
        self.seconds: Counter[str] = Counter()

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[what] += time.perf_counter() - began  # type: ignore[assignment] # a Counter of floats adds as well

    def each_topic_id(self, topics: Collection[str]) -> dict[str, TopicId | PortError | None]:
        """As the base's."""
        with self._timed("topic_ids"):
            return super().each_topic_id(topics)

    def each_offset(
        self, tps: Collection[TopicPartition], which: Any, *, committed_reads: bool = False
    ) -> dict[TopicPartition, int | PortError]:
        """As the base's."""
        with self._timed("ends"):
            return super().each_offset(tps, which, committed_reads=committed_reads)


class BenchConsumer:
    """One opening of the topics: one group, one lake."""

    def __init__(self, settings: Settings, spark: "SparkSession") -> None:
        self._settings = settings
        self._spark = spark
        self._admin = TimedAdmin(admin_client(settings))
        storage = Storage(settings.lake.root, settings.lake.storage_options)
        client = reading_client(settings)
        self._context = TaskContext(client, storage, None, formats=settings.formats)
        self._offsets = GroupOffsets(client, settings.group)
        opener = TopicOpener(settings, open_lake(settings.lake), self._admin, self._offsets, self._dataframe_schema)
        specs = resolve_tables(settings, self._admin.list_topics())
        self._topics: dict[str, TopicState] = {}
        for topic, found in self._admin.describe(specs).items():
            state = TopicState(opener.open(specs[topic], found.topic_id, found.partitions))
            state.own(frozenset(range(found.partitions)))
            self._topics[topic] = state
        self._first = {topic: dict(state.progress.positions) for topic, state in self._topics.items()}
        self._ingest = self._new_ingest(settings)

    def _dataframe_schema(self, name: str, topic: str, schema: pa.Schema) -> pa.Schema:
        from kgs_core.ingest.worker.dataframe_task import transform_schema

        return transform_schema(self._spark, name, topic, schema)

    def _new_ingest(self, settings: Settings) -> Ingest:
        runner = SparkBatchRunner(self._spark, self._context, settings.consumer)
        return Ingest(self._topics, settings.consumer, runner, self._admin, self._offsets)

    def set_batch_bytes(self, batch_bytes: int) -> None:
        """Go on where it is, with batches of another size; they grow only where commits take a third of the time."""
        consumer = self._settings.consumer.model_copy(update={"batch_bytes": batch_bytes})
        self._ingest.close()
        self._ingest = self._new_ingest(self._settings.model_copy(update={"consumer": consumer}))

    def settle(self, max_s: float, max_bytes: int) -> dict[str, Any]:
        """Rounds until every topic has been read once, or so much is consumed: a first fetch takes up to a second.

        A client of all topics reads the partitions of a backlog in their order, some at a time, and would otherwise
        have most of it behind it before it comes to the last ones.
        """
        began, consumed = time.monotonic(), 0
        while time.monotonic() - began < max_s and consumed < max_bytes:
            consumed += self.round().consumed_bytes
            if all(state.progress.positions != self._first[topic] for topic, state in self._topics.items()):
                break
        return {"elapsed_s": time.monotonic() - began}

    def measure(self, until_bytes: int, min_rounds: int, max_s: float) -> dict[str, Any]:
        """Rounds until so much is consumed or so long has passed, but so many at least; or until nothing is left.

        What is left over at a backlog's end waits for more, as every batch does: no figures for a comparison.
        """
        total, rounds = RoundReport(), list[float]()
        self._admin.seconds.clear()
        began = last = time.monotonic()
        while last - began < max_s or len(rounds) < min_rounds:
            since = time.monotonic()
            report = self.round()
            now = time.monotonic()
            if report.records:
                _add(total, report)
                rounds.append(now - since)
                last = now
            if now - last > _DRY_S or (total.consumed_bytes >= until_bytes and len(rounds) >= min_rounds):
                break
        return {
            "elapsed_s": last - began,
            "records": total.records,
            "consumed_bytes": total.consumed_bytes,
            "batch_s": rounds,
            "phases_s": self._phases(total, last - began),
        }

    def _phases(self, total: RoundReport, elapsed_s: float) -> dict[str, float]:
        """Where the time went; the dataframe processor fetches, parses and writes inside one Spark job (`job`).

        What is read while others commit counts to both, so `other` may be less than nothing.
        """
        asked = self._admin.seconds
        if any(state.progress.uses_dataframe for state in self._topics.values()):
            parts = {"ends": float(asked["ends"]), "job": total.write_s}
        else:
            parts = {"fetch": total.fetch_s, "write": total.write_s}
        parts["topic_ids"] = float(asked["topic_ids"])
        parts["commit"] = total.commit_s
        return {**parts, "other": elapsed_s - sum(parts.values())}

    def round(self) -> RoundReport:
        """One round.

        Raises:
            PermanentError: a partition stands still, or another writer was there: nothing to measure.
        """
        report = self._ingest.round()
        stopped = [stop.reason for state in self._topics.values() for stop in state.progress.reported_stops.values()]
        if stopped or report.refused:
            raise PermanentError(f"bench: {stopped[:1] or 'a batch was refused'}")
        return report

    def close(self) -> None:
        """End what it has started, but Spark."""
        self._ingest.close()
        self._offsets.close()


def _add(total: RoundReport, report: RoundReport) -> None:
    total.records += report.records
    total.consumed_bytes += report.consumed_bytes
    total.fetch_s += report.fetch_s
    total.write_s += report.write_s
    total.commit_s += report.commit_s


class IngestRequests:
    """Takes requests from the socket and carries them out, until the other end is closed."""

    def __init__(self, connection: socket.socket, spark: "SparkSession") -> None:
        self._connection = connection
        self._file = connection.makefile("rb")
        self._spark = spark
        self._consumer: BenchConsumer | None = None

    def say(self, **answer: Any) -> None:
        """Send an answer."""
        self._connection.sendall(json.dumps(answer).encode() + b"\n")

    def run(self) -> None:
        """One request after the other."""
        while line := self._file.readline():
            request = json.loads(line)
            answer = self._carry_out(request.pop("do"), request)
            if answer is not None:
                self.say(**answer)
        if self._consumer is not None:
            self._consumer.close()

    def _carry_out(self, what: str, request: dict[str, Any]) -> dict[str, Any] | None:
        if what == "open":
            self._consumer = BenchConsumer(parse_settings(request["settings"].encode(), "bench", {}), self._spark)
            return {}
        consumer = self._consumer
        if consumer is None:
            raise PermanentError(f"bench: request {what} before open")
        answer: dict[str, Any] | None = {}
        match what:
            case "settle":
                consumer.set_batch_bytes(request["settle_bytes"])
                answer = consumer.settle(request["max_s"], request["max_bytes"])
                consumer.set_batch_bytes(request["batch_bytes"])
            case "measure":
                answer = consumer.measure(**request)
            case "serve":
                self._serve(consumer)
                answer = None  # the request that ends it, "rest", gets the answer
            case "close":
                self._consumer = None
                consumer.close()
            case _:
                pass
        return answer

    def _serve(self, consumer: BenchConsumer) -> None:
        self.say(serving=True)
        while not select.select([self._connection], [], [], 0)[0]:
            consumer.round()


def main(socket_file: str) -> None:
    """Start Spark, then take requests."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(socket_file)
        spark = start_spark(SparkSettings(), "kgs-bench")
        try:
            requests = IngestRequests(connection, spark)
            requests.say(session=True)
            requests.run()
        finally:
            stop_spark(spark)


if __name__ == "__main__":
    main(sys.argv[1])
