"""The things on the stage: brokers, a lake, a group with its controller, and ways to look at them."""

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.three_brokers import ThreeBrokers
from bench.toxiproxy import find_toxiproxy
from kgs_core.errors import KgsError
from kgs_core.group.protocol import RunState
from kgs_core.model import TopicPartition
from kgs_core.reporting.status import GroupStatus
from kgs_core.runtime.group_status import GroupWatch
from tests.processes import pid_of
from tests.system.chaos.controls import MARK, BareControl, ChaosControl, DagsterControl, marked
from tests.system.chaos.journal import Journal
from tests.system.chaos.lakes import ChaosLake, meddled_store, small_disk
from tests.system.chaos.options import Options
from tests.system.pipeline import ConsumerProcess, Pipeline

KGS_CLASS = "kgs"
SUSPECT_S = 6.0
FRESH_S = 2.0
PARTITIONS = {"raw": 4, "json": 3, "frame": 2}
UNCLEAN = "unclean"
JSON_FIELDS = {"seq": "long", "crc": "long", "pad": "string"}
MAX_CONSUMERS = 3
SECTIONS: Mapping[str, Mapping[str, Any]] = {
    "monitor": {"window_s": 8.0},
    "packing": {
        "packing_capacity_bytes_per_s": 40_000.0,
        "consumer_capacity_bytes_per_s": 60_000.0,
        "spare_consumers": 1,
        "max_consumers": MAX_CONSUMERS,
        "sentinel_timeout_s": 10.0,
    },
    "membership": {
        "suspect_after_s": SUSPECT_S,
        "start_timeout_s": 300.0,
    },
}


@dataclass(frozen=True, slots=True)
class Looked:
    """The group at one moment; `status` is None where Kafka did not answer."""

    at: float
    status: GroupStatus | None


class Stage:
    """One run's brokers, lake and group.

    Attributes:
        folder: all that the run leaves.
        partitions: of each topic; grows.
        brokers: where a network is to fail, behind proxies, which the group has no way around.
        kafka: the same, by addresses of their own: for producers and for questions that are no part of the group.
        truncated: partitions that had an unclean election.
        versions: how often the configuration was changed.
    """

    def __init__(
        self, folder: Path, options: Options, brokers: ThreeBrokers, lake: ChaosLake, journal: Journal
    ) -> None:
        self.folder = folder
        self.options = options
        self.brokers, self.kafka = brokers, brokers.kafka
        self.lake = lake
        self.journal = journal
        self.name = folder.name
        self.prefix = "chaos."
        self.partitions = {f"{self.prefix}{name}": count for name, count in PARTITIONS.items()}
        self.truncated: list[tuple[str, int]] = []
        self.versions = 0
        self._twins: list[ConsumerProcess] = []
        self._lock = threading.Lock()
        self._watch: GroupWatch | None = None
        self._last: GroupStatus | None = None
        self.admin = AdminClient(
            {"bootstrap.servers": self.kafka.bootstrap_servers, "socket.timeout.ms": 8000, "log_level": 2}
        )
        self._create_topics()
        self.pipeline = Pipeline(folder, self.kafka.bootstrap_servers, self._rules(), batch_timeout_s=60.0)
        store = {"root": lake.root, "storage_options": dict(lake.storage_options), "checkpoint_interval": 7}
        kafka = {"bootstrap_servers": brokers.bootstrap(KGS_CLASS)}
        direct = {"KGS_SET_KAFKA__BOOTSTRAP_SERVERS": self.kafka.bootstrap_servers}
        self.settings = self.pipeline.add(direct, **SECTIONS, lake=store, kafka=kafka)
        self.pipeline.lake = lake.tables
        self.control: ChaosControl = (
            BareControl(self.pipeline.command("control", "--log-dir", str(folder / "logs")), folder, journal.tell)
            if options.control == "bare"
            else DagsterControl(folder, self.pipeline.config)
        )

    def _rules(self) -> list[dict[str, Any]]:
        frame = {"format": "json", "schema": JSON_FIELDS, "transform": "hooks:spark_same"}
        return [
            {"topic": f"{self.prefix}json", "format": "json", "schema": JSON_FIELDS},
            {"topic": f"{self.prefix}frame", **(frame if self.options.spark else {})},
            {"pattern": r"chaos\..*"},
        ]

    def _create_topics(self) -> None:
        replicas = min(3, len(self.kafka.nodes))
        made = [NewTopic(topic, count, replicas) for topic, count in self.partitions.items()]
        if replicas > 1:  # replicas on two of three: the third keeps the quorum while they die in turn
            settings = {"min.insync.replicas": "1", "unclean.leader.election.enable": "false"}
            each = [[1, 2], [2, 3]]
            made.append(NewTopic(f"{self.prefix}{UNCLEAN}", len(each), replica_assignment=each, config=settings))
            self.partitions[f"{self.prefix}{UNCLEAN}"] = len(each)
        for future in self.admin.create_topics(made).values():
            future.result()

    @property
    def unclean_topic(self) -> str:
        """The topic whose acknowledged records Kafka itself may lose."""
        return f"{self.prefix}{UNCLEAN}"

    def run(self, *arguments: str, timeout_s: float = 120) -> "subprocess.CompletedProcess[str]":
        """A command of the group's people, however it ends; what it says is kept."""
        try:
            done = subprocess.run(
                self.pipeline.command(*arguments), capture_output=True, text=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired as e:
            done = subprocess.CompletedProcess(e.cmd, 124, "", f"not within {timeout_s} s")
        with (self.folder / "commands.log").open("a") as log:
            log.write(f"$ kgs {' '.join(arguments)} -> {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done

    def look(self) -> Looked:
        """The group as it is now."""
        with self._lock:
            try:
                self._watch = self._watch or GroupWatch(self.settings)
                self._last = self._watch.look(with_lake=False)
            except KgsError:
                self._close_watch()
                return Looked(time.time(), None)  # noqa: TID251 - the clock of commits and records
            return Looked(time.time(), self._last)  # noqa: TID251 - as above

    def consumers(self) -> dict[int, list[psutil.Process]]:
        """Living processes of each consumer that has reported, its own one first."""
        found: dict[int, list[psutil.Process]] = {}
        for line in self._last.consumers if self._last is not None else ():
            if line.process is not None:
                try:
                    driver = psutil.Process(pid_of(line.process))
                    found[line.consumer] = [driver, *driver.children(recursive=True)]
                except psutil.Error:
                    continue
        return found

    def is_at_rest(self) -> bool:
        """Everybody is where they shall be, every partition is read, and what stands still has to."""
        status = self.look().status
        if status is None or not status.is_converged or not status.controller_is_heard:
            return False
        stopped = {tp for line in status.consumers for tp in line.stopped}
        return (
            len(status.current) == sum(self.partitions.values())
            and all(tp.topic == self.unclean_topic for tp in stopped)
            and not any(line.needs_attention and not line.stopped for line in status.consumers)
        )

    def is_paused(self) -> bool:
        state = self._last.desired_state if self._last is not None else None
        return state is not None and state.state is not RunState.RUNNING

    def stopped(self) -> dict[TopicPartition, str]:
        """What stands still, and why, by the last look."""
        return {tp: why for line in (self._last.consumers if self._last else ()) for tp, why in line.stopped.items()}

    def start_by_hand(self, number: int) -> None:
        """A process of a consumer that nobody asked for."""
        self._twins.append(ConsumerProcess(self.pipeline, number, [], {}))

    def _close_watch(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._watch = None

    def left_over(self) -> list[str]:
        """Consumers and runs that live though the group was stopped."""
        words = ("consume", "execute_run", "pyspark")
        lines = []
        for each in marked(self.name):
            with suppress(psutil.Error):  # it ends at this moment
                lines.append(" ".join(each.cmdline()))
        return [line[:160] for line in lines if any(word in line for word in words)]

    def close(self) -> None:
        """End all of it, whatever is left."""
        with self._lock:
            self._close_watch()
        self.control.kill()
        for twin in self._twins:
            twin.destroy()


@contextmanager
def open_stage(folder: Path, options: Options, journal: Journal, *, is_proxied: bool) -> Iterator[Stage]:
    """Everything runs but the controller, till the end of the block; between group and brokers Toxiproxy, if asked."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ[MARK] = folder.name
    os.environ["PYTHONFAULTHANDLER"] = "1"  # what a crash of any process says is looked for
    os.environ["KGS_BATCH_RUNNER"] = "spark" if options.spark else "local"
    settings = {"unclean.leader.election.enable": "false"}
    try:
        with ExitStack() as held:
            store, written = folder / "store", options.seconds * options.bytes_per_s
            is_disk = options.store == "disk"
            lake: ChaosLake = held.enter_context(small_disk(store, written) if is_disk else meddled_store(store))
            program = find_toxiproxy() if is_proxied else None
            if is_proxied and program is None:
                pytest.skip("no toxiproxy-server: `make toxiproxy` builds it where Go is installed, or set TOXIPROXY")
            brokers = held.enter_context(ThreeBrokers(program, folder, [KGS_CLASS], options.brokers, settings))
            (folder / "logs").mkdir()
            stage = Stage(folder, options, brokers, lake, journal)
            held.callback(stage.close)
            yield stage
    finally:
        for process in marked(folder.name):
            try:
                process.kill()
            except psutil.Error:
                continue
        del os.environ[MARK], os.environ["KGS_BATCH_RUNNER"], os.environ["PYTHONFAULTHANDLER"]
