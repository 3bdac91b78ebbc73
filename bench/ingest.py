"""`bench ingest`: our processors and their peers on one broker, in turn; what is measured and in which order."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.family import MemoryWatch, family_cpu_s, wait_quiet
from bench.figures import MB, BenchResult, Latency, Pass, StartTimes
from bench.latency import measure_latency
from bench.machine import machine
from bench.peer_environment import VERSIONS, peer_environment
from bench.process import BenchProcess
from bench.records import KINDS, kind_of_records, produce_backlog
from bench.variants import SETTLE_BYTES, Peer, Processor, Source, Variant
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import ConfigError, PermanentError
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.spark.java import find_java

QUEUE_BYTES = 67_108_864
"""What a reading client fetches ahead (`queued.max.messages.kbytes`)."""

_BACKLOG, _IDLE = "bench.backlog.", "bench.idle."
_MIN_BATCHES = 3
_SETTLE_S = 120.0
_QUIET_S = 20.0
_PEER_LATENCY_RECORDS = 20
_PEER_LATENCY_SETTLE = 3
_WARM_UP_BYTES = 5_000_000
Say = Callable[[str], None]
Step = Callable[[int, int], None]


@dataclass(frozen=True)
class IngestPlan:
    """Plan of what to measure.

    Attributes:
        sizes_mb: batch sizes, 10^6 bytes.
        records_mb: consumed in one measured pass; a pass ends earlier after `pass_s` seconds, but never before its
            third batch.
        warm_up_s: batches before the first pass of each process; a peer's take three times as long.
        latency_records: of each processor; the peers get a tenth at most.
        records: their kind, of `KINDS`; only the arrow processor reads raw ones, for the others compute with columns.
    """

    sizes_mb: Sequence[float] = (1, 5, 16, 64)
    runs: int = 5
    topics: int = 12
    partitions: int = 4
    records_mb: float = 200
    processors: Sequence[str] = ("arrow", "dataframe")
    peer: bool = True
    latency_records: int = 200
    warm_up_s: float = 20.0
    pass_s: float = 15.0
    records: str = KINDS[0]

    @property
    def topic_bytes(self) -> int:
        """The backlog of one topic.

        Large enough that the clients' queues are as full at a pass's end as at its beginning: what is measured is then
        fetched within the measured time. The dataframe processor has a client for each topic and reads one at a time.
        """
        largest, measured = max(self.sizes_mb) * 1e6, max(self.records_mb, _MIN_BATCHES * max(self.sizes_mb)) * 1e6
        whole = QUEUE_BYTES + self.settle_bytes + measured + 3 * largest
        one = QUEUE_BYTES + 4 * SETTLE_BYTES + measured / self.topics + 2 * largest
        return int(max(whole / self.topics, one if "dataframe" in self.processors else 0))

    @property
    def settle_bytes(self) -> int:
        """The most that is consumed before a pass is measured."""
        return 2 * SETTLE_BYTES * self.topics

    @property
    def steps(self) -> int:
        """How many steps the progress counts."""
        variants = len(self.processors) + (2 if self.peer else 0)
        return 1 + variants * (2 + self.runs * len(self.sizes_mb))


def run_ingest_bench(plan: IngestPlan, say: Say, step: Step) -> BenchResult:
    """Measure everything; takes from a minute to an hour, by the plan.

    Raises:
        ConfigError: there is no such kind of records, or somebody cannot read it.
        PermanentError, TransientError: a process ended or stood still; nothing of it is left running.
    """
    check_readers(plan)
    result = BenchResult(machine(VERSIONS if plan.peer else {}), {**asdict(plan), "topic_bytes": plan.topic_bytes})
    with ExitStack() as held:
        # the system's own place: a socket's path must be short
        directory = Path(
            held.enter_context(tempfile.TemporaryDirectory(prefix="kgs-bench-", ignore_cleanup_errors=True))
        )
        bench = _Bench(plan, say, step, directory, held, result)
        bench.prepare()
        for variant in bench.variants:
            bench.start(variant)
        for run in range(1, plan.runs + 1):
            for size in plan.sizes_mb:
                for variant in bench.variants:
                    bench.measure(variant, size, run)
        for variant in bench.variants:
            bench.latency(variant)
    return result


def check_readers(plan: IngestPlan) -> None:
    """Hold the records against who is to read them, before anything is started.

    Raises:
        ConfigError: there is no such kind of records, or somebody cannot read it.
    """
    kind = kind_of_records(plan.records)
    if "schema" not in kind.rule and (plan.peer or set(plan.processors) != {"arrow"}):
        raise ConfigError([f"--records {plan.records}: only arrow reads them: add --no-peer --processor arrow"])


def check_pass(plan: IngestPlan, name: str, found: Mapping[str, Any], committed: int) -> None:
    """Hold what a process says of its pass against its tables' rows, and against the plan.

    Raises:
        PermanentError: it has read less than it says, or the backlog ran out. The last batch has waited for more then.
    """
    if not found["batch_s"] or committed < found["records"]:
        raise PermanentError(
            f"bench {name}: says it read {found['records']} records in {len(found['batch_s'])} batches, "
            f"its tables have {committed}"
        )
    if found["consumed_bytes"] < int(plan.records_mb * MB) and found["elapsed_s"] < plan.pass_s:
        raise PermanentError(
            f"bench {name}: the backlog ran out after {found['consumed_bytes'] / MB:.0f} of {plan.records_mb:g} MB: "
            "nothing to compare"
        )


class _Bench:
    """The broker, the processes, and what is done with them."""

    def __init__(
        self, plan: IngestPlan, say: Say, step: Step, directory: Path, held: ExitStack, result: BenchResult
    ) -> None:
        self._plan = plan
        self._say = say
        self._step = step
        self._directory = directory
        self._held = held
        self._result = result
        self._done = 0
        self._records = kind_of_records(plan.records)
        self.variants: list[Variant] = []

    def prepare(self) -> None:
        """Broker, backlog, and the processes (not started)."""
        plan = self._plan
        if plan.peer:
            environment = peer_environment(find_java(), self._say)
        self.variants = [Processor(processor, self._directory, self._records) for processor in plan.processors]
        if plan.peer:
            for name, many in (("peer-one", False), ("peer-many", True)):
                self.variants.append(Peer(name, self._directory, environment, self._records, many=many))
        kafka = self._held.enter_context(EmbeddedKafka.start(self._directory / "kafka", log=self._say))
        self._backlog = self._topics(kafka, _BACKLOG, wait_time_s=1.0)
        self._idle = self._topics(kafka, _IDLE, wait_time_s=0.0)
        self._say(f"producing the backlog, {plan.topics * plan.topic_bytes / 1e6:,.0f} MB")
        names, values = self._backlog.topics, self._records.values
        produce_backlog(kafka.bootstrap_servers, names, plan.partitions, plan.topic_bytes, values)
        self._advance()

    def _topics(self, kafka: EmbeddedKafka, prefix: str, wait_time_s: float) -> Source:
        names = [f"{prefix}{number:02}" for number in range(1, self._plan.topics + 1)]
        admin = KafkaAdmin({"bootstrap.servers": kafka.bootstrap_servers})
        for name in names:
            admin.create_topic(name, self._plan.partitions, 1, {"retention.ms": "-1"})
        return Source(kafka.bootstrap_servers, prefix, names, wait_time_s)

    def start(self, variant: Variant) -> None:
        """Start a process, take the time to its first commit, and warm it up."""
        self._say(f"{variant.name}: starting")
        process = self._held.enter_context(variant.process)
        process.start()
        session_s = time.monotonic() - process.started_s
        with self._opened(variant, self._backlog, _WARM_UP_BYTES):
            process.request("measure", until_bytes=0, min_rounds=1, max_s=0)
            self._result.starts.append(StartTimes(variant.name, session_s, time.monotonic() - process.started_s))
            self._say(f"{variant.name}: warming up")
            self._settle(process, _WARM_UP_BYTES)
            process.request(
                "measure",
                until_bytes=10**15,
                min_rounds=_MIN_BATCHES,
                max_s=variant.warm_up_share * self._plan.warm_up_s,
            )
        self._advance()

    def measure(self, variant: Variant, size_mb: float, run: int) -> None:
        """One pass: settle, rest, then measure."""
        plan, batch_bytes = self._plan, int(size_mb * 1e6)
        self._say(f"run {run} of {plan.runs}: {variant.name}, batches of {size_mb:g} MB")
        process, others = variant.process, [v.process.session for v in self.variants if v is not variant]
        with self._opened(variant, self._backlog, batch_bytes):
            self._settle(process, batch_bytes)
            if variant.fills_queue:
                wait_quiet(process.session, _QUIET_S)
            before, others_before = family_cpu_s(process.session), sum(map(family_cpu_s, others))
            with MemoryWatch(process.session) as memory:
                until = {"until_bytes": int(plan.records_mb * 1e6), "min_rounds": _MIN_BATCHES, "max_s": plan.pass_s}
                found = process.request("measure", **until)
                cpu_s = family_cpu_s(process.session) - before
                other_cpu_s = sum(map(family_cpu_s, others)) - others_before
            check_pass(plan, variant.name, found, variant.committed_rows())
            self._result.passes.append(
                Pass(
                    variant.name, size_mb, run, cpu_s=cpu_s, rss_bytes=memory.highest, other_cpu_s=other_cpu_s, **found
                )
            )
        self._advance()

    def _settle(self, process: BenchProcess, batch_bytes: int) -> None:
        most = self._plan.settle_bytes
        process.request("settle", settle_bytes=SETTLE_BYTES, batch_bytes=batch_bytes, max_s=_SETTLE_S, max_bytes=most)

    def latency(self, variant: Variant) -> None:
        """Records one by one, with nothing else to do."""
        plan = self._plan
        ours = isinstance(variant, Processor)
        records = plan.latency_records if ours else min(_PEER_LATENCY_RECORDS, -(-plan.latency_records // 10))
        self._say(f"{variant.name}: latency of {records} records")
        if records:
            with self._opened(variant, self._idle, _WARM_UP_BYTES):
                variant.process.request("serve")
                tables = [(topic, variant.table(topic)) for topic in self._idle.topics]
                settle = 2 * plan.topics if ours else _PEER_LATENCY_SETTLE
                seconds = measure_latency(
                    self._idle.servers, tables, plan.partitions, self._records.values, records, settle
                )
                variant.process.request("rest")
            self._result.latencies.append(Latency(variant.name, seconds))
        self._advance()

    @contextmanager
    def _opened(self, variant: Variant, source: Source, batch_bytes: int) -> Iterator[None]:
        variant.open(source, batch_bytes)
        yield
        variant.close()

    def _advance(self) -> None:
        self._done += 1
        self._step(self._done, self._plan.steps)
