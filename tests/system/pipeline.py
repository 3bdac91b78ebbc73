"""A whole pipeline in a test: its settings, its consumers as processes, what the log holds and what the lake holds."""

import hashlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ClientTopicPartition
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from kgs_core.config import Settings
from kgs_core.config.file import load_settings
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.lake.files.storage import Storage
from kgs_core.model import TopicPartition
from tests.waiting import wait_until

KGS = str(Path(sys.executable).with_name("kgs"))
BENCH = (sys.executable, "-m", "bench")
HOOKS = Path(__file__).with_name("pipeline_hooks.py")
JSON_FIELDS = {"i": "long", "s": "string"}
LogKey = tuple[str, int, int, str]
"""Topic id, partition, offset, hash of the value."""


def fingerprint(value: bytes | None) -> str:
    """What a value is compared by."""
    return hashlib.sha256(value or b"\0none").hexdigest()[:16]


class HasAddresses(Protocol):
    """A cluster."""

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, comma-separated."""


class Pipeline:
    """One group with a lake of its own, on a broker that others use too."""

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        rules: Sequence[Mapping[str, Any]],
        *,
        registry: str = "http://127.0.0.1:9",
        storage: Storage | None = None,
        kafka: Mapping[str, Any] | None = None,
        **consumer: Any,
    ) -> None:
        """`kafka`: where and how kgs signs in, where that is another way than the test's own clients."""
        self.folder = folder
        self.bootstrap = bootstrap
        self.config = folder / "kgs.yaml"
        self._tree: dict[str, Any] = {
            "group": f"group-{folder.name}"[:100],
            "kafka": kafka or {"bootstrap_servers": bootstrap},
            "lake": {"root": storage.root, "storage_options": dict(storage.options)} if storage else {"root": "lake"},
            "registry": {"url": registry},
            "consumer": {"wait_time_s": 0.1, "topics_refresh_s": 0.5, **consumer},
        }
        self.configure(rules)
        shutil.copy(HOOKS, folder / "hooks.py")
        self.settings: Settings = load_settings(self.config, {})
        self.admin = KafkaAdmin({"bootstrap.servers": bootstrap})
        self.lake = Path(self.settings.lake.root)
        self.running: list[ConsumerProcess] = []
        self._storage = storage

    def configure(self, rules: Sequence[Mapping[str, Any]]) -> None:
        """Have consumers that are started from now on go by these rules."""
        self._tree["lake"] |= {"mask_secret": "0123456789abcdef"} if any("mask" in rule for rule in rules) else {}
        self.config.write_text(yaml.safe_dump({**self._tree, "topics": [dict(rule) for rule in rules]}))

    def add(self, environ: Mapping[str, str] | None = None, **sections: Any) -> Settings:
        """Have the configuration these sections, too."""
        tree = yaml.safe_load(self.config.read_text())
        self.config.write_text(yaml.safe_dump({**tree, **sections}))
        self.settings = load_settings(self.config, environ or {})
        return self.settings

    def command(self, *arguments: str) -> list[str]:
        """A command of the group's people."""
        return [KGS, *arguments, "--config", str(self.config)]

    def kgs(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """The same, however it ends."""
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=300, check=False)

    def consumer(
        self, number: int = 1, share: str = "1/1", *, cwd: Path | None = None, **environ: str
    ) -> "ConsumerProcess":
        """`kgs consume` of a share."""
        return ConsumerProcess(self, number, ["--share", share], environ, cwd)

    def positions(self, topics: Iterable[str]) -> dict[TopicPartition, int | None]:
        """The lake's positions of all partitions of these topics; None where it has none yet."""
        found: dict[TopicPartition, int | None] = {}
        for topic, description in self.admin.describe(list(topics)).items():
            try:
                rule = self.settings.rule_of(topic)
                table = self._table(rule.table_of(topic) if rule is not None else topic)
            except TableNotFoundError:
                table = None
            for p in range(description.partitions):
                app = f"{self.settings.group}/{topic}@{description.topic_id}/{p}"
                found[TopicPartition(topic, p)] = table.transaction_version(app) if table else None
        return found

    def caught_up(self, topics: Sequence[str]) -> bool:
        """Whether the lake's positions are the log's ends."""
        positions = self.positions(topics)
        return positions == self.admin.offsets(list(positions), "latest", committed_reads=True)

    def wait_caught_up(self, topics: Sequence[str], timeout_s: float = 60) -> None:
        def attempt() -> bool:
            found = self.caught_up(topics)
            assert found or not self.running or any(each.process.poll() is None for each in self.running), (
                f"nobody is left to catch up with {topics}: {[each.tail() for each in self.running]}"
            )
            return found

        wait_until(attempt, timeout_s, f"caught up with {topics}: {self.positions(topics)}")

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a table of the lake."""
        if self._storage is None:
            return lake_rows(self.lake / table)
        try:
            found: list[dict[str, Any]] = self._table(table).to_pyarrow_table().to_pylist()
        except TableNotFoundError:
            return []
        return found

    def _table(self, name: str) -> DeltaTable:
        if self._storage is None:
            return DeltaTable(str(self.lake / name))
        return DeltaTable(self._storage.uri(name), storage_options=self._storage.delta_options())

    def assert_audit_is_clean(self) -> None:
        from kgs_core.lake.audit.audit import audit_lake

        audit = audit_lake(self.settings, with_log=True)
        assert audit.ok, audit

    def assert_exact(self, topic: str, *, raw: bool = True) -> None:
        """The table and its dead letters hold exactly what an independent read of the log gives."""
        topic_id = self.admin.topic_ids([topic])[topic]
        log = {(str(topic_id), p, o, fingerprint(v)) for p, o, v in read_log(self.bootstrap, self.admin, topic)}
        dead_letters = [_key(row, row["value"]) for row in self.rows(f"{topic}_dead_letters")]
        if raw:
            rows = [_key(row, row["value"]) for row in self.rows(topic)]
        else:
            rows = [_key(row, json.dumps({"i": row["i"], "s": row["s"]}).encode()) for row in self.rows(topic)]
        assert len(rows) + len(dead_letters) == len(log)
        assert {*rows, *dead_letters} == log


COMBINED = {"PYTHONPATH": str(Path(__file__).parent / "combined")}
"""Environment of a consumer whose commits are combined, whoever else commits."""


class ConsumerProcess:
    """One `kgs consume`, in a process group of its own; ended at the end of the block whatever happens."""

    def __init__(
        self,
        pipeline: Pipeline,
        number: int,
        share: Sequence[str],
        environ: Mapping[str, str],
        cwd: Path | None = None,
    ) -> None:
        self._pipeline = pipeline
        self.log = pipeline.folder / f"consumer-{number}.log"
        self.status_file = pipeline.folder / f"consumer-{number}.json"
        command = [KGS, "--log-level", "DEBUG", "consume", "--config", str(pipeline.config), "--id", str(number)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *share, "--status", str(self.status_file)],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **environ},
                cwd=cwd,
            )
        pipeline.running.append(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def status(self) -> dict[str, Any]:
        """What it says of itself; empty before it has said anything."""
        found: dict[str, Any] = json.loads(self.status_file.read_text()) if self.status_file.exists() else {}
        return found

    def wait_stopped(self, *partitions: str, timeout_s: float = 60) -> dict[str, str]:
        """The reasons of the stopped partitions, once these are among them."""

        def stopped() -> dict[str, str] | None:
            self.assert_alive()
            found: dict[str, str] = self.status().get("stopped", {})
            return found if set(partitions) <= found.keys() else None

        found = wait_until(stopped, timeout_s, f"{partitions} stopped: {self.tail()}")
        assert found is not None
        return found

    def assert_alive(self) -> None:
        assert self.process.poll() is None, self.tail()

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]

    def terminate(self) -> None:
        """SIGTERM, and the exit status of a clean stop."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, self.tail()

    def destroy(self) -> None:
        """End it and everything it has started, by pid."""
        if self in self._pipeline.running:
            self._pipeline.running.remove(self)
        try:
            family = [self.process_handle, *self.process_handle.children(recursive=True)]
        except psutil.NoSuchProcess:
            family = []
        for member in family:
            try:
                member.kill()
            except psutil.NoSuchProcess:
                continue
        self.process.wait(10)

    @property
    def process_handle(self) -> psutil.Process:
        return psutil.Process(self.process.pid)


def _key(row: Mapping[str, Any], value: bytes | None) -> LogKey:
    return row["_topic_id"], row["_partition"], row["_offset"], fingerprint(value)


def lake_rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a Delta table; none where there is no table."""
    try:
        table = DeltaTable(str(path))
    except TableNotFoundError:
        return []
    files = [pq.read_table(uri.removeprefix("file://"), partitioning=None) for uri in table.file_uris()]
    rows: list[dict[str, Any]] = pa.concat_tables(files, promote_options="default").to_pylist() if files else []
    return rows


def read_log(bootstrap: str, admin: KafkaAdmin, topic: str) -> Iterator[tuple[int, int, bytes | None]]:
    """Partition, offset and value of every committed record that the log holds, by a reader of its own."""
    count = admin.describe([topic])[topic].partitions
    tps = [TopicPartition(topic, p) for p in range(count)]
    starts, ends = admin.offsets(tps, "earliest"), admin.offsets(tps, "latest", committed_reads=True)
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "independent-reader",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    open_ = {tp for tp in tps if starts[tp] < ends[tp]}
    reader.assign([ClientTopicPartition(tp.topic, tp.partition, starts[tp]) for tp in sorted(open_)])
    while open_:
        for message in reader.consume(10_000, 0.2):
            tp = TopicPartition(str(message.topic()), int(message.partition() or 0))
            if message.error() is not None:
                open_.discard(tp)
            else:
                yield tp.partition, int(message.offset() or 0), message.value()
    reader.close()


def produce(
    bootstrap: str, topic: str, values: Iterable[bytes | None], keys: Iterable[bytes] | None = None, **config: Any
) -> int:
    """Send values with keys (their numbers, unless given) and headers, acknowledged by all; returns how many."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True, **config})
    count = 0
    for value, key in zip(values, keys or (str(n).encode() for n in itertools.count()), strict=False):
        producer.produce(topic, value, key=key, headers=[("n", str(count).encode())])
        count += 1
        if count % 1000 == 0:
            producer.poll(0)
    assert producer.flush(30) == 0
    return count


def json_values(first: int, count: int) -> Iterator[bytes]:
    """Records of `JSON_FIELDS`, whose bytes the rows can be compared with."""
    return (json.dumps({"i": i, "s": f"value {i}"}).encode() for i in range(first, first + count))
