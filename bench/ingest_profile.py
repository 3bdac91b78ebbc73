"""`bench ingest --profile` and `--format`: processor time of a consumer's rounds, in one process, without Spark.

The rounds are the consumer's own (`read_round`), with a clock around each of their parts.
"""

import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil

from bench.figures import MB
from bench.format_records import records_in
from bench.machine import machine
from bench.records import DIFFERENT, Kind, produce_backlog
from bench.registry_stub import running_registry
from kgs_core.config import Settings, TableSpec, TopicRule
from kgs_core.config.registry import RegistrySettings
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import PermanentError, TransientError
from kgs_core.ingest.fetch.fetch_client import FetchClient
from kgs_core.ingest.fetch.fetch_sessions import close_sessions
from kgs_core.ingest.worker import arrow_task, batch_files, process_batch
from kgs_core.ingest.worker.arrow_task import ArrowRequest, TaskContext, read_round
from kgs_core.ingest.worker.topic_job import TopicJob, TopicPlan
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.client_config import reading_client
from kgs_core.kafka.records import collector_paused
from kgs_core.lake.files.row_schema import parsed_schema
from kgs_core.lake.files.storage import Storage
from kgs_core.model import TopicId, TopicPartition

STAGES = ("librdkafka", "fetch", "parse", "rows", "Parquet", "rest")
"""Parts of a round: librdkafka's threads, the call that gathers, the parser, the rows' other work, the file, what else
the process did."""

_QUEUE_MB = 67
_WARM_UP = 2
_GIVE_UP_S = 60.0
_CLOCKS: Sequence[tuple[ModuleType, str, str]] = (
    (process_batch, "parse_records", "parse"),
    (process_batch, "sort_records", "rows"),
    (batch_files, "write_table", "Parquet"),
    (arrow_task, "prepare_topic", "rows"),
)


@dataclass(frozen=True)
class ProfilePlan:
    """Plan of what to measure; sizes in 10^6 bytes."""

    sizes_mb: Sequence[float]
    runs: int
    topics: int
    partitions: int
    records_mb: float

    def backlog_bytes(self) -> int:
        """The backlog of one topic: what is fetched ahead, warm-up, and what is measured."""
        whole = _QUEUE_MB + (_WARM_UP + 2) * max(self.sizes_mb) + max(self.records_mb, 2 * max(self.sizes_mb))
        return int(whole * MB / self.topics)


@contextmanager
def formats_of_records(names: Sequence[str]) -> Iterator[list[Kind]]:
    """The same records in each of these formats; a registry on loopback has their schemas until the block ends."""
    with running_registry() as registry:
        found = [(name, records_in(name, registry, DIFFERENT)) for name in names]
        yield [Kind(name, name, of.rule, of.values, RegistrySettings(url=registry.url)) for name, of in found]


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Processor time of one run, s per 10^9 bytes consumed."""

    kind: str
    batch_mb: float
    run: int
    records: int
    mb_per_s: float
    total: float
    stages: Mapping[str, float]
    consumed_bytes: int

    @property
    def record_bytes(self) -> float:
        """Bytes of a record."""
        return self.consumed_bytes / self.records


@dataclass
class ProfileResult:
    """Result of a profile."""

    machine: dict[str, Any]
    plan: dict[str, Any]
    runs: list[StageTimes] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"machine": self.machine, "plan": self.plan, "profile": [asdict(run) for run in self.runs]}


def run_profile(plan: ProfilePlan, kinds: Sequence[Kind], say: Callable[[str], None]) -> ProfileResult:
    """Measure every kind of records at every size, in turns.

    Raises:
        TransientError: the backlog did not come.
        PermanentError: not every record became a row.
    """
    result = ProfileResult(machine({}), {**asdict(plan), "topic_bytes": plan.backlog_bytes()})
    with tempfile.TemporaryDirectory(prefix="kgs-bench-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        with EmbeddedKafka.start(directory / "kafka", log=say) as kafka:
            admin = KafkaAdmin({"bootstrap.servers": kafka.bootstrap_servers})
            for kind in {k.source: k for k in kinds}.values():
                topics = _topics(kind, plan)
                for topic in topics:
                    admin.create_topic(topic, plan.partitions, 1, {"retention.ms": "-1"})
                say(f"producing {plan.topics * plan.backlog_bytes() / MB:,.0f} MB of records: {kind.name}")
                produce_backlog(
                    kafka.bootstrap_servers,
                    topics,
                    plan.partitions,
                    plan.backlog_bytes(),
                    kind.values,
                    compression="lz4",
                )
            for run in range(1, plan.runs + 1):
                for kind in kinds:
                    for size in plan.sizes_mb:
                        say(f"run {run} of {plan.runs}: {kind.name}, batches of {size:g} MB")
                        profile = _Profile(plan, kind, size, kafka.bootstrap_servers, directory)
                        result.runs.append(profile.measure(run))
    return result


def _topics(kind: Kind, plan: ProfilePlan) -> list[str]:
    return [f"profile.{kind.source}.{number:02}" for number in range(1, plan.topics + 1)]


class _Profile:
    """Rounds of one kind at one size from the log's start."""

    def __init__(self, plan: ProfilePlan, kind: Kind, size_mb: float, servers: str, directory: Path) -> None:
        self._plan = plan
        self._kind = kind
        self._size_mb = size_mb
        self._root = directory / "lake"
        rule = TopicRule.model_validate({"topic": "t", **kind.rule})
        topics = _topics(kind, plan)
        specs = [TableSpec(topic, topic, f"{topic}_dl", rule, kind.registry) for topic in topics]
        self._jobs = {
            spec.topic: TopicJob(TopicPlan.of(spec, TopicId("profile"), parsed_schema(rule)), {}) for spec in specs
        }
        self._start = {TopicPartition(topic, p): 0 for topic in topics for p in range(plan.partitions)}
        table = {"pattern": ".*", "table": "{topic}"}
        settings = Settings.model_validate(
            {
                "group": "profile",
                "kafka": {"bootstrap_servers": servers},
                "lake": {"root": str(self._root)},
                "topics": [table],
            }
        )
        formats = frozenset({rule.format, rule.key_format})
        self._context = TaskContext(reading_client(settings), Storage(str(self._root)), None, formats=formats)
        self._seconds: Counter[str] = Counter()
        self._inner: list[float] = []

    def measure(self, run: int) -> StageTimes:
        """Warm up, then rounds until enough is read."""
        with ExitStack() as held:
            held.callback(shutil.rmtree, self._root, ignore_errors=True)
            for topic in self._jobs:
                (self._root / topic).mkdir(parents=True)  # files go into tables that are there
            held.callback(close_sessions)
            for module, name, stage in _CLOCKS:
                held.enter_context(self._clock(module, name, stage))
            held.enter_context(self._clock(FetchClient, "gather", "fetch"))
            for _ in range(_WARM_UP):
                self._round()
            self._seconds.clear()
            records, consumed = 0, 0
            began, cpu, threads = time.monotonic(), time.process_time(), _librdkafka_s()
            while consumed < self._plan.records_mb * MB:
                found = self._round()
                records, consumed = records + found[0], consumed + found[1]
            elapsed, total = time.monotonic() - began, time.process_time() - cpu
            stages = {**dict.fromkeys(STAGES, 0.0), **self._seconds, "librdkafka": _librdkafka_s() - threads}
            stages["rest"] = total - sum(stages.values())
        gb = consumed / 1e9
        per_gb = {stage: seconds / gb for stage, seconds in stages.items()}
        speed = consumed / MB / elapsed
        return StageTimes(self._kind.name, self._size_mb, run, records, speed, total / gb, per_gb, consumed)

    def _round(self) -> tuple[int, int]:
        """Records and bytes of one round."""
        deadline = time.monotonic() + _GIVE_UP_S
        while time.monotonic() < deadline:
            with collector_paused():
                found = read_round(
                    ArrowRequest(self._context, self._jobs, self._start, int(self._size_mb * MB), 1.0, 5.0),
                    lambda: False,
                )
            for batch in found.batches:
                self._start |= {TopicPartition(batch.topic, p): r.end for p, r in batch.ranges.items()}
            if any(batch.bad_records for batch in found.batches) or found.waiting or found.problems:
                raise PermanentError(f"bench: {self._kind.name}: not every record became a row: nothing to measure")
            records = sum(batch.records for batch in found.batches)
            if records:
                return records, sum(batch.consumed_bytes for batch in found.batches)
        raise TransientError(f"bench: nothing of the backlog has come for {_GIVE_UP_S:g} s")

    @contextmanager
    def _clock(self, owner: Any, name: str, stage: str) -> Iterator[None]:
        """Add up what a function takes of this thread's processor time, without what other clocks in it count."""
        function = getattr(owner, name)

        @wraps(function)
        def timed(*args: Any, **more: Any) -> Any:
            began = time.thread_time()
            self._inner.append(0.0)
            try:
                return function(*args, **more)
            finally:
                spent = time.thread_time() - began
                self._seconds[stage] += spent - self._inner.pop()  # type: ignore[assignment] # floats add as well
                if self._inner:
                    self._inner[-1] += spent

        with _replaced(owner, name, timed):
            yield


@contextmanager
def _replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _librdkafka_s() -> float:
    """Processor time of librdkafka's threads that are alive; 0 where the system does not name threads."""
    total = 0.0
    for thread in psutil.Process().threads():
        try:
            name = Path(f"/proc/{os.getpid()}/task/{thread.id}/comm").read_text()
        except OSError:
            continue
        if name.startswith("rdk:"):
            total += thread.user_time + thread.system_time
    return total
