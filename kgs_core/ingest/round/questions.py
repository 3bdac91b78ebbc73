"""Questions of a round, and their answers. Pure values; `machine` says when, the driver carries it out."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from kgs_core.ingest.round.batch_plan import PlannedRead
from kgs_core.ingest.round.stops import StopCause
from kgs_core.lake.rule.batch import TablePositions, TopicBatch
from kgs_core.model import TopicId, TopicPartition
from kgs_core.ports.lake import Schema


@dataclass(frozen=True, slots=True)
class Trouble:
    """An answer that is none: refused, failed, or not there in time."""

    reason: str
    cause: StopCause = StopCause.NO_ANSWER


@dataclass(frozen=True, slots=True)
class AskEnds:
    """Question where these partitions end for a reader of committed records. Answer: `Ends`."""

    tps: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class AskTopicIds:
    """Which id has each topic now? Answer: `TopicIds`."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AskLogs:
    """Which offsets does Kafka have of these partitions? Answer: `Logs`."""

    tps: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class AskPositions:
    """Question where the topic's table stands. Answer: `TablePositions` or Trouble."""

    topic: str
    partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """Gather, transform and write. Answer: ReadResult.

    Attributes:
        start: position of each partition of the topics that share a task.
        planned: exact ranges of the one topic that has a job of its own this time.
        has_dataframe: there are such topics, so the others may not be waited for long.
        batch_bytes: how much to gather of the topics that share a task, at most.
    """

    start: Mapping[TopicPartition, int]
    planned: PlannedRead | None
    has_dataframe: bool
    batch_bytes: int


@dataclass(frozen=True, slots=True)
class Commit:
    """Write rows and positions, if the table stands where the batch began. Answer: Landed or Trouble."""

    batch: TopicBatch


@dataclass(frozen=True, slots=True)
class AddColumns:
    """Give the table these columns, which nothing read so far was committed with. Answer: Landed or Trouble."""

    topic: str
    columns: Schema


Question = AskEnds | AskTopicIds | AskLogs | AskPositions | ReadBatch | Commit | AddColumns


def topic_of(question: Question) -> str | None:
    """The one topic whose table is asked; None: it is no question to a table."""
    match question:
        case AskPositions(topic=topic) | AddColumns(topic=topic):
            return topic
        case Commit(batch=batch):
            return batch.topic
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Ends:
    """Answer to `AskEnds`; a partition that is left out was not answered."""

    ends: Mapping[TopicPartition, int | Trouble]


@dataclass(frozen=True, slots=True)
class TopicIds:
    """Answer to `AskTopicIds`; None: Kafka knows no such topic."""

    ids: Mapping[str, TopicId | Trouble | None]


@dataclass(frozen=True, slots=True)
class Logs:
    """Answer to `AskLogs`: the first offset that is there, and the next one to be written."""

    logs: Mapping[TopicPartition, tuple[int, int] | Trouble]


@dataclass(frozen=True, slots=True)
class Landed:
    """Answer to `Commit` and `AddColumns`. `committed`: False: another writer was there first."""

    committed: bool


_BY_PARTITION = ("troubles", "stopped", "waiting")
_BY_TOPIC = ("failed", "unavailable", "wider")


@dataclass(slots=True)
class ReadResult:
    """Result of one round of reading, over one or more topics.

    Attributes:
        troubles: partitions that cannot be read on, with librdkafka's or the broker's words.
        stopped: partitions that must stop at a bad record (`on_error: stop`): offset and reason.
        waiting: partitions that are read up to a record that cannot be judged yet, since a registry does not answer:
            offset and reason.
        failed: topics whose records could not be worked on (the transform raised or broke its promise, any other
            exception), with the reason.
        unavailable: topics whose table or store did not take the file, with the reason: passing trouble.
        wider: topics of which nothing was made, since their table lacks columns and may be given them, with these.
        problems: Kafka's other errors; librdkafka goes on trying.
        asked_bytes: the `batch_bytes` of its question.
        waited_s: of `fetch_s` and `write_s`, waiting for Kafka or an object store with nothing else to do.
        received: bytes over the wire from each broker, by its id, of late; empty where nobody counts them.
    """

    batches: list[TopicBatch] = field(default_factory=list)
    troubles: dict[TopicPartition, tuple[StopCause, str]] = field(default_factory=dict)
    stopped: dict[TopicPartition, tuple[int, str]] = field(default_factory=dict)
    waiting: dict[TopicPartition, tuple[int, str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)
    wider: dict[str, Schema] = field(default_factory=dict)
    problems: set[str] = field(default_factory=set)
    asked_bytes: int = 0
    fetch_s: float = 0.0
    write_s: float = 0.0
    waited_s: float = field(default=0.0, compare=False)
    received: Counter[int] = field(default_factory=Counter, compare=False)

    def of(self, tps: Collection[TopicPartition], cut: Collection[str]) -> "ReadResult":
        """Only what is about these partitions; problems, and what it has cost, are nobody's.

        A batch with another partition in it goes whole, with what is said of its partitions: they are read again.

        Args:
            tps: what stays.
            cut: topics that lose a partition: what is said of the whole topic may be about that one.
        """
        whole, left = {tp.topic for tp in tps} - set(cut), set(tps)
        new = replace(self, batches=[])
        for batch in self.batches:
            read = {TopicPartition(batch.topic, p) for p in batch.ranges}
            if read <= set(tps):
                new.batches.append(batch)
            else:
                left -= read
        for name in _BY_PARTITION:
            setattr(new, name, {tp: what for tp, what in getattr(self, name).items() if tp in left})
        for name in _BY_TOPIC:
            setattr(new, name, {topic: what for topic, what in getattr(self, name).items() if topic in whole})
        return new

    def add(self, other: "ReadResult") -> None:
        """Take in what another job of the same round came to."""
        self.batches += other.batches
        for name in (*_BY_PARTITION, *_BY_TOPIC):
            getattr(self, name).update(getattr(other, name))
        self.problems |= other.problems
        self.fetch_s += other.fetch_s
        self.write_s += other.write_s
        self.waited_s += other.waited_s
        self.received += other.received


Answer = Ends | TopicIds | Logs | TablePositions | ReadResult | Landed | Trouble
