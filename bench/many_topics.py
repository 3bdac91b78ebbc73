"""One consumer of many small topics, from its start; what it takes to open them and to go round."""

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kgs_core.config import Settings, parse_settings
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import PermanentError
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.client_config import admin_client, reading_client
from kgs_core.kafka.committed_offsets import GroupOffsets
from kgs_core.lake.topics.factory import open_lake
from kgs_core.model import ConsumerId
from kgs_core.ports import PLAIN, Lake, TableLayout
from kgs_core.runtime.consumer_context import ConsumerContext

_PREFIX = "bench."
_AT_ONCE = 100
_MADE_S = 300.0
_STREAM_S = 0.02
_BUSY_RECORD = b"x" * 1000
Say = Callable[[str], None]


@dataclass(frozen=True)
class TopicsPlan:
    """Plan of what to measure.

    Attributes:
        topics: so many, of one partition each.
        seconds: for how long at most; it is over sooner once `rounds` rounds are measured.
        rounds: measured from when every topic has been read once.
        records_per_s: written to each topic.
        busy_mb_per_s: written to the first topic besides, in 10^6 bytes.
        lake_delay_s: added to each call of a table.
        hung: so many topics whose tables never answer.
    """

    topics: int = 500
    seconds: float = 120.0
    rounds: int = 20
    records_per_s: float = 1.0
    busy_mb_per_s: float = 0.0
    lake_delay_s: float = 0.0
    wait_time_s: float = 1.0
    batch_timeout_s: float = 20.0
    hung: int = 0

    def most_files_per_h(self, batch_bytes: int) -> float:
        """As docs/speed.md has it: a file of each topic in `wait_time_s`, and the busy one's in full batches."""
        full = 2 * self.busy_mb_per_s * 1e6 / batch_bytes
        return 3600 * (self.topics / self.wait_time_s + full)


@dataclass(frozen=True)
class TopicsResult:
    """Result of one run. Times are seconds from the first opening; None: not within the time.

    Attributes:
        all_open_s: every topic that answers is open.
        all_read_s: each of these has rows in its table.
        rounds_s: of the rounds measured, also the parts of them: fetching, writing files, committing.
        longest_step_s: what the watchdog would see, from the beginning on; it ends a consumer at `batch_timeout_s`.
        files_per_h: committed, while rounds were measured.
        most_files_per_h: what the settings allow.
        cpu_s_per_file: of this process alone: tables are asked and committed in it.
    """

    plan: TopicsPlan
    first_rows_s: float | None
    all_open_s: float | None
    all_read_s: float | None
    longest_step_s: float
    rounds_s: Sequence[float]
    fetch_s: Sequence[float]
    write_s: Sequence[float]
    commit_s: Sequence[float]
    files_per_h: float | None
    cpu_s_per_file: float | None
    most_files_per_h: float

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return asdict(self)


class _DelayedLake:
    """A lake whose tables take so much longer for each call; those of `hung` never answer."""

    def __init__(self, lake: Lake, delay_s: float, hung: frozenset[str]) -> None:
        self._lake = lake
        self._delay_s = delay_s
        self._hung = hung

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lake, name)

    def table(self, name: str, schema: Any, layout: TableLayout = PLAIN) -> Any:
        table = self._lake.table(name, schema, layout)
        for method in ("create", "exists", "versions", "commit"):
            setattr(table, method, self._delayed(getattr(table, method), name in self._hung))
        return table

    def all_versions(self, name: str) -> dict[str, int]:
        time.sleep(self._delay_s)
        return self._lake.all_versions(name)

    def _delayed(self, call: Callable[..., Any], is_hung: bool) -> Callable[..., Any]:  # noqa: FBT001
        def delayed(*arguments: Any) -> Any:
            if is_hung:
                threading.Event().wait()
            time.sleep(self._delay_s)
            return call(*arguments)

        return delayed


def run_topics_bench(plan: TopicsPlan, folder: Path, say: Say) -> TopicsResult:
    """Make broker and topics, then read them with one consumer, on Spark as `kgs consume` does.

    Raises:
        PermanentError: no broker can be started, or it does not make the topics.
    """
    with ExitStack() as held:
        kafka = held.enter_context(EmbeddedKafka.start(folder / "kafka", log=say))
        names = [f"{_PREFIX}{number:05d}" for number in range(plan.topics)]
        settings = _settings(plan, kafka, folder)
        admin = KafkaAdmin(admin_client(settings))
        say(f"making {plan.topics} topics")
        _make_topics(names, kafka, admin)
        hung = frozenset(names[: plan.hung])
        lake: Any = _DelayedLake(open_lake(settings.lake), plan.lake_delay_s, hung)
        offsets = GroupOffsets(reading_client(settings), settings.group)
        context = ConsumerContext(settings, ConsumerId(1), lake, admin, offsets)
        held.callback(context.close)
        say("starting the consumer")
        context.warm_up()
        held.enter_context(_written(names, kafka, plan))
        say("reading")
        return _Measuring(plan, context, names, hung, settings.consumer.batch_bytes).run()


class _Measuring:
    """The steps of a consumer, timed."""

    def __init__(
        self,
        plan: TopicsPlan,
        context: ConsumerContext,
        names: Sequence[str],
        hung: frozenset[str],
        batch_bytes: int,
    ) -> None:
        self._plan = plan
        self._batch_bytes = batch_bytes
        self._context = context
        self._names = names
        self._wanted = frozenset(names) - hung
        self._unread = set(self._wanted)
        self._first_rows_s: float | None = None
        self._all_open_s: float | None = None
        self._all_read_s: float | None = None
        self._longest_s = 0.0
        self._rounds: list[tuple[float, float, float, float, int]] = []

    def run(self) -> TopicsResult:
        began = last = time.monotonic()
        since, cpu = began, 0.0
        self._context.topics.refresh(self._names, self._ours)
        while last - began < self._plan.seconds and len(self._rounds) < self._plan.rounds:
            was_read = self._all_read_s is not None
            self._step(began, is_measured=was_read)
            now = time.monotonic()
            self._longest_s = max(self._longest_s, now - last)
            last = now
            if not was_read:
                since, cpu = now, time.process_time()
        files = sum(found[4] for found in self._rounds)
        rounds, fetch, write, commit = ([found[i] for found in self._rounds] for i in range(4))
        return TopicsResult(
            self._plan,
            self._first_rows_s,
            self._all_open_s,
            self._all_read_s,
            self._longest_s,
            rounds,
            fetch,
            write,
            commit,
            files / (last - since) * 3600 if files else None,
            (time.process_time() - cpu) / files if files else None,
            self._plan.most_files_per_h(self._batch_bytes),
        )

    def _step(self, began: float, *, is_measured: bool) -> None:
        topics, since = self._context.topics, time.monotonic()
        topics.take_in(self._ours)
        topics.retry(self._ours)
        report = self._context.ingest.round()
        now = time.monotonic()
        if self._all_open_s is None and topics.states.keys() >= self._wanted:
            self._all_open_s = now - began
        if self._first_rows_s is None and report.records:
            self._first_rows_s = now - began
        if not is_measured:
            self._unread -= {name for name, state in topics.states.items() if any(state.progress.positions.values())}
            self._all_read_s = None if self._unread else now - began
        elif report.batches:
            self._rounds.append((now - since, report.fetch_s, report.write_s, report.commit_s, report.batches))

    @staticmethod
    def _ours(_topic: str, _partitions: int) -> frozenset[int]:
        return frozenset({0})


def median(values: Sequence[float]) -> float | None:
    """None without values."""
    return statistics.median(values) if values else None


def _settings(plan: TopicsPlan, kafka: EmbeddedKafka, folder: Path) -> Settings:
    text = f"""
group: bench
kafka: {{bootstrap_servers: "{kafka.bootstrap_servers}"}}
lake: {{root: "{folder / "lake"}"}}
topics: [{{pattern: "{_PREFIX}*"}}]
consumer: {{wait_time_s: {plan.wait_time_s}, batch_timeout_s: {plan.batch_timeout_s}}}
"""
    return parse_settings(text.encode(), "bench", {})


def _make_topics(names: Sequence[str], kafka: EmbeddedKafka, admin: KafkaAdmin) -> None:
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 2})
    for first in range(0, len(names), _AT_ONCE):
        made: Mapping[str, Any] = client.create_topics(
            [NewTopic(name, 1, 1) for name in names[first : first + _AT_ONCE]]
        )
        for future in made.values():
            future.result()
    until = time.monotonic() + _MADE_S
    while len(found := admin.describe(names)) < len(names) or not all(topic.leaders for topic in found.values()):
        if time.monotonic() > until:
            raise PermanentError(f"bench: the broker has not made {len(names)} topics in {_MADE_S:g} s")
        time.sleep(1.0)


@contextmanager
def _written(names: Sequence[str], kafka: EmbeddedKafka, plan: TopicsPlan) -> Iterator[None]:
    """Every topic gets a record at once, and then so many per second, until the end of the block."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 50, "log_level": 2})
    over = threading.Event()
    loads = [partial(_trickle, producer, names, plan.records_per_s, over)]
    if plan.busy_mb_per_s:
        loads.append(partial(_stream, producer, names[0], plan.busy_mb_per_s, over))
    threads = [threading.Thread(target=load, name="load", daemon=True) for load in loads]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
        producer.flush(10)


def _trickle(producer: Producer, names: Sequence[str], per_s: float, over: threading.Event) -> None:
    while not over.is_set():
        for name in names:
            producer.produce(name, b"record", partition=0)
            producer.poll(0)
        over.wait(1 / per_s)


def _stream(producer: Producer, name: str, mb_per_s: float, over: threading.Event) -> None:
    began, written = time.monotonic(), 0
    while not over.wait(_STREAM_S):
        wanted = int((time.monotonic() - began) * mb_per_s * 1e6 / len(_BUSY_RECORD))
        for _ in range(wanted - written):
            with suppress(BufferError):  # the broker is slower than that
                producer.produce(name, _BUSY_RECORD, partition=0)
        written = wanted
        producer.poll(0)
