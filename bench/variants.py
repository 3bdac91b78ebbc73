"""Variants that `bench ingest` compares: two processors and two peers, each behind the same few requests."""

import json
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.peer_environment import PeerEnvironment
from bench.process import BenchProcess
from bench.records import Kind
from kgs_core.errors import PermanentError
from kgs_core.spark.java import java_environment

SETTLE_BYTES = 5_000_000
_SPARK_TYPES = {"string": "STRING", "timestamp": "TIMESTAMP", "long": "BIGINT", "int": "INT", "double": "DOUBLE"}


@dataclass(frozen=True, slots=True)
class Source:
    """Topics to read.

    Attributes:
        wait_time_s: how long a batch that is not full waits for more.
        prefix: what their names begin with, and no others'.
    """

    servers: str
    prefix: str
    topics: Sequence[str]
    wait_time_s: float


class Variant(ABC):
    """One way from topics to tables: a process, and a fresh lake for each opening.

    Attributes:
        fills_queue: whether it goes on fetching between rounds and comes to rest when its queue is full.
        warm_up_share: how much of the warm-up it gets.
    """

    fills_queue = True
    warm_up_share = 1.0

    def __init__(self, name: str, command: Sequence[str], directory: Path, environ: Mapping[str, str] | None) -> None:
        self.name = name
        self.process = BenchProcess(name, command, directory, environ)
        self._directory = directory
        self._openings = 0

    @property
    def lake(self) -> Path:
        """The present opening's lake."""
        return self._directory / f"{self.name}-{self._openings}"

    def open(self, source: Source, batch_bytes: int) -> None:
        """Begin at the earliest records, in a fresh lake and group."""
        self._openings += 1
        self.process.request("open", **self._opening(source, batch_bytes))

    @abstractmethod
    def _opening(self, source: Source, batch_bytes: int) -> dict[str, Any]:
        """Details of the request to open."""

    @abstractmethod
    def table(self, topic: str) -> Path:
        """The table that a topic's rows come to."""

    def close(self) -> None:
        """End the opening and remove its lake."""
        self.process.request("close")
        shutil.rmtree(self.lake, ignore_errors=True)

    def committed_rows(self) -> int:
        """Rows in the lake by the logs of its tables, read independently of whoever wrote them.

        Raises:
            PermanentError: a file without a count.
        """
        rows = 0
        for entry in self.lake.glob("**/_delta_log/*.json"):
            for line in entry.read_text().splitlines():
                added = json.loads(line).get("add")
                if added is not None:
                    if not added.get("stats"):
                        raise PermanentError(f"bench {self.name}: {entry}: a file without statistics")
                    rows += json.loads(added["stats"])["numRecords"]
        return rows


class Processor(Variant):
    """One of our processors, by the consumer's own code."""

    def __init__(self, processor: str, directory: Path, records: Kind) -> None:
        super().__init__(processor, [sys.executable, "-m", "bench.ingest_worker"], directory, None)
        self._records = records

    def _opening(self, source: Source, batch_bytes: int) -> dict[str, Any]:
        rule: dict[str, Any] = {"pattern": f"{source.prefix.replace('.', '[.]')}.*", **self._records.rule}
        if self.name == "dataframe":
            rule["transform"] = "bench.ingest_worker:transform"
        settings = {
            "group": f"bench-{self.name}-{self._openings}",
            "kafka": {"bootstrap_servers": source.servers},
            "lake": {"root": str(self.lake)},
            "topics": [rule],
            "consumer": {
                "batch_bytes": batch_bytes,
                "wait_time_s": source.wait_time_s,
            },
        }
        return {"settings": yaml.safe_dump(settings)}

    def table(self, topic: str) -> Path:
        """One for each topic."""
        return self.lake / topic


class Peer(Variant):
    """Structured Streaming with delta-spark, into one table or one for each topic."""

    fills_queue = False
    warm_up_share = 3.0  # all of its work is in a JVM, which goes on compiling for long

    def __init__(self, name: str, directory: Path, environment: PeerEnvironment, records: Kind, *, many: bool) -> None:
        from os import environ

        own = {k: v for k, v in environ.items() if not k.startswith(("PYTHON", "PYSPARK", "SPARK_"))}
        python = {"PYSPARK_PYTHON": str(environment.python), "PYSPARK_DRIVER_PYTHON": str(environment.python)}
        super().__init__(name, environment.command(), directory, {**own, **python, **java_environment()})
        self._many = many
        self._records = records

    def _opening(self, source: Source, batch_bytes: int) -> dict[str, Any]:
        self.lake.mkdir()
        fields: Mapping[str, str] = self._records.rule["schema"]
        return {
            "servers": source.servers,
            "topics": list(source.topics),
            "schema": ", ".join(f"{name} {_SPARK_TYPES.get(kind, kind.upper())}" for name, kind in fields.items()),
            "lake": str(self.lake),
            "checkpoint": str(self.lake / "checkpoint"),
            "batch_bytes": batch_bytes,
            "record_bytes": len(self._records.values[0]),
            "many": self._many,
        }

    def table(self, topic: str) -> Path:
        """The one, or the topic's."""
        return self.lake / (topic if self._many else "all")
