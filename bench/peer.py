"""The peer of `bench ingest`: Structured Streaming with delta-spark. Run by path in an environment of its own.

It takes the same requests as the program of our processors, and knows nothing of kgs: only PySpark and the standard
library are there.
"""

import itertools
import json
import os
import socket
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SETTLE_BATCHES = 2
_POLL_S = 0.002
_DRY_S = 30.0
_ACCOUNT_S = 2.0
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.streaming.numRecentProgressUpdates": "2000",
    # What people who tune small batches set: Delta replays its log with 50 tasks otherwise.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.log.level": "ERROR",
}


class PeerStream:
    """One streaming query: one checkpoint, one lake."""

    def __init__(self, spark: "SparkSession", request: dict[str, Any]) -> None:
        self._lake, self._checkpoint = request["lake"], request["checkpoint"]
        self._topics = request["topics"]
        self._record_bytes = request["record_bytes"]
        source = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", request["servers"])
            .option("subscribe", ",".join(self._topics))
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", max(1, request["batch_bytes"] // self._record_bytes))
            .load()
        )
        # One task a batch: with one core, a task and a file for each of many partitions cost far more.
        rows = _typed(source, request["schema"]).coalesce(1)
        self.query: StreamingQuery = self._start(rows, many=request["many"])
        self._done = -1

    def _start(self, rows: "DataFrame", *, many: bool) -> "StreamingQuery":
        writer = rows.writeStream.option("checkpointLocation", self._checkpoint).trigger(processingTime="0 seconds")
        if many:
            return writer.foreachBatch(self._write_each).start()
        return writer.format("delta").partitionBy("topic").start(f"{self._lake}/all")

    def _write_each(self, batch: "DataFrame", batch_id: int) -> None:
        """One idempotent write a topic, as Delta's documentation tells people to do it."""
        batch.persist()
        for topic in self._topics:
            (
                batch.filter(batch["topic"] == topic)
                .write.format("delta")
                .mode("append")
                .option("txnAppId", f"peer-{topic}")
                .option("txnVersion", batch_id)
                .save(f"{self._lake}/{topic}")
            )
        batch.unpersist()

    def wait_batches(self, count: int, max_s: float) -> list[float]:
        """When each of the next batches was committed, on `time.monotonic`; fewer when it takes too long."""
        found: list[float] = []
        deadline = time.monotonic() + max_s
        while len(found) < count and time.monotonic() < deadline:
            if os.path.exists(f"{self._checkpoint}/commits/{self._done + 1}"):
                self._done += 1
                found.append(time.monotonic())
            else:
                self._check()
                time.sleep(_POLL_S)
        return found

    def _check(self) -> None:
        if not self.query.isActive:
            raise RuntimeError(f"the query has ended: {self.query.exception()}")

    def measure(self, until_bytes: int, min_rounds: int, max_s: float) -> dict[str, Any]:
        """From the last committed batch on, until so much is committed or so long has passed, but so many batches."""
        first, began = self._done, time.monotonic()
        ends = [began]
        share = 0
        while ends[-1] - began < max_s or len(ends) <= min_rounds:
            new = self.wait_batches(1, _DRY_S)
            ends += new
            share = sum(self._rows_of(first + 1, self._done)) * self._record_bytes if new else share
            if not new or (share >= until_bytes and len(ends) > min_rounds):
                break
        rows = self._rows_of(first + 1, self._done)
        return {
            "elapsed_s": ends[-1] - began,
            "records": sum(rows),
            "consumed_bytes": sum(rows) * self._record_bytes,
            "batch_s": [b - a for a, b in itertools.pairwise(ends)],
            "phases_s": self._phases(first + 1, self._done),
        }

    def _rows_of(self, first: int, last: int) -> list[int]:
        """Rows of these batches, by the offsets in the query's own log: batches[n] covers what offsets/n adds."""
        ends = [self._offsets(n) for n in range(first - 1, last + 1)]
        return [after - before for before, after in itertools.pairwise(ends)]

    def _offsets(self, batch: int) -> int:
        """Sum of all partitions' end offsets of a batch; the topics begin at 0."""
        if batch < 0:
            return 0
        with open(f"{self._checkpoint}/offsets/{batch}") as file:
            source = json.loads(file.read().splitlines()[2])
        return sum(offset for partitions in source.values() for offset in partitions.values())

    def _phases(self, first: int, last: int) -> dict[str, float]:
        """Spark's own account of these batches, seconds; it comes a moment after the commit."""
        deadline = time.monotonic() + _ACCOUNT_S
        while self._accounted() < last and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        found: Counter[str] = Counter()
        for progress in self.query.recentProgress:
            if first <= progress["batchId"] <= last:
                found.update(progress["durationMs"])
        return {name: ms / 1000 for name, ms in found.items() if name != "triggerExecution"}

    def _accounted(self) -> int:
        progress = self.query.lastProgress
        return -1 if progress is None else int(progress["batchId"])

    def close(self) -> None:
        """End the query, also in the middle of a batch."""
        self.query.stop()


def _typed(source: "DataFrame", schema: str) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

    value = F.from_json(F.col("value").cast("string"), schema).alias("value")
    rows = source.select("topic", "partition", "offset", "timestamp", "key", value)
    return rows.select("topic", "partition", "offset", "timestamp", "key", "value.*")


class PeerRequests:
    """Takes requests from the socket and carries them out, until the other end is closed."""

    def __init__(self, connection: socket.socket, spark: "SparkSession") -> None:
        self._connection = connection
        self._spark = spark
        self._stream: PeerStream | None = None

    def run(self) -> None:
        """One request after the other."""
        for line in self._connection.makefile("rb"):
            request = json.loads(line)
            what = request.pop("do")
            if what == "open":
                self._stream = PeerStream(self._spark, request)
                _say(self._connection)
            elif what == "serve":
                _say(self._connection, serving=True)  # the query goes on by itself
            else:
                _say(self._connection, **self._carry_out(what, request))
        if self._stream is not None:
            self._stream.close()

    def _carry_out(self, what: str, request: dict[str, Any]) -> dict[str, Any]:
        stream = self._stream
        if stream is None:
            raise RuntimeError(f"request {what} before open")
        if what == "settle":
            began = time.monotonic()
            stream.wait_batches(SETTLE_BATCHES, request["max_s"])
            return {"elapsed_s": time.monotonic() - began}
        if what == "measure":
            return stream.measure(**request)
        if what == "close":
            stream.close()
            self._stream = None
        return {}


def _say(connection: socket.socket, **answer: Any) -> None:
    connection.sendall(json.dumps(answer).encode() + b"\n")


def main(jars: str, socket_file: str) -> None:
    """Start Spark, then take requests."""
    from pyspark.sql import SparkSession

    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(socket_file)
        builder = SparkSession.builder.master("local[1]").appName("bench-peer")
        for key, value in {**_SETTINGS, "spark.driver.extraClassPath": f"{jars}/*"}.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        try:
            _say(connection, session=True)
            PeerRequests(connection, spark).run()
        finally:
            spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
