"""A consumer's process: real rounds, parsing, files and commits; only its client is a stand-in."""

from collections.abc import Callable
from dataclasses import replace

from kgs_core.config import Settings, resolve_tables
from kgs_core.errors import KgsError
from kgs_core.ingest.driver.local_batch_runner import LocalBatchRunner
from kgs_core.ingest.driver.rounds import Ingest
from kgs_core.ingest.opening.topic_opener import TopicOpener
from kgs_core.ingest.opening.topic_state import TopicState
from kgs_core.ingest.round.questions import ReadResult
from kgs_core.ingest.worker.arrow_task import ArrowRequest, TaskContext
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.topics.factory import open_lake
from tests.combinations.case import Round
from tests.combinations.stand_ins import MemoryKafka
from tests.group_offsets import MemoryOffsets
from tests.object_fetch import ObjectFetchSession


class _Runner(LocalBatchRunner):
    """Reads what is there, and waits for nothing."""

    most, waits = 0, False

    def read_arrow(self, request: ArrowRequest) -> ReadResult:
        self.interrupt()
        wait_s = 300.0 if self.waits else 0.0
        return super().read_arrow(replace(request, batch_bytes=self.most or 1_000_000, wait_time_s=wait_s))


class Process:
    """A consumer that owns every partition of what it can open.

    Args:
        say: is told what is refused, and why partitions stand still.
    """

    def __init__(self, settings: Settings, kafka: MemoryKafka, say: Callable[[str], None]) -> None:
        self._kafka, self._say = kafka, say
        self._specs = resolve_tables(settings, kafka.list_topics())
        offsets = MemoryOffsets()
        self._opener = TopicOpener(settings, open_lake(settings.lake, "7"), kafka, offsets, lambda *_: None)
        self.client = ObjectFetchSession({"bootstrap.servers": "memory:1"})
        context = TaskContext({"client": self}, Storage(settings.lake.root), None)
        self._runner = _Runner(context, settings.consumer)
        self._topics: dict[str, TopicState] = {}
        self._ingest = Ingest(self._topics, settings.consumer, self._runner, kafka, offsets)

    def _look(self) -> None:
        """Open topics that are not open, or were made again; what is refused is left for the next look."""
        for topic, found in self._kafka.describe(self._specs).items():
            state = self._topics.get(topic)
            if state is not None and state.table.ids.topic_id == found.topic_id:
                continue
            try:
                opened = TopicState(self._opener.open(self._specs[topic], found.topic_id, found.partitions))
                opened.own(frozenset(range(found.partitions)))
            except KgsError as e:
                self._say(f"{topic} is not opened: {e}")
            else:
                self._topics[topic] = opened

    def round(self, step: Round) -> None:
        """See `case.Round`."""
        if step.looks:
            self._look()
        self._runner.most, self._runner.waits = step.most, step.waits
        if self._topics:
            self._ingest.round(lambda: not step.ahead)
        for topic, state in self._topics.items():
            for p, stop in state.progress.stops.items():
                self._say(f"{topic}:{p} stands still: {stop.reason}")

    @property
    def positions(self) -> dict[tuple[str, int], int]:
        return {(t, p): o for t, state in self._topics.items() for p, o in state.progress.positions.items()}

    @property
    def has_read_all(self) -> bool:
        topics = self._kafka.list_topics()
        return self.positions == {(t, p): len(log) for t in topics for p, log in enumerate(self._kafka.log(t))}
