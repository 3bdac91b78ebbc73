"""State of a round: the value that `answers` and `machine` step on. Pure."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import IntEnum, auto

from kgs_core.ingest.round.batch_plan import PlannedRead
from kgs_core.ingest.round.progress import TopicProgress
from kgs_core.ingest.round.questions import Question, ReadBatch, ReadResult, topic_of
from kgs_core.ingest.round.stops import StopCause
from kgs_core.lake.rule.batch import TopicBatch
from kgs_core.model import TopicPartition


class Stage(IntEnum):
    """Stage of a round."""

    LOOK = auto()
    READ = auto()
    CHECK = auto()
    COMMIT = auto()
    RECOVER = auto()
    OVER = auto()


@dataclass(frozen=True, slots=True)
class RoundLimits:
    """Size of a round, and how long a record may wait for others; the names are those of kgs.yaml."""

    batch_bytes: int
    wait_time_s: float


@dataclass(frozen=True, slots=True)
class Round:
    """A round; made by `begin`, over when `open` is empty.

    Attributes:
        open: number -> question that waits for its answer.
        ends: where partitions end for readers of committed records, as far as Kafka has answered.
        same: topics that are known to be the ones that the tables were filled from.
        logs: first offset and end of partitions that are out of range.
        refused: topics whose batch did not land, with the reason.
        unsure: those of them whose table must be asked where it stands.
        looks: topics whose stopped partitions may be read again, as far as is known.
        is_aside: parted from its round (`machine.part`): it reads nothing.
    """

    pace: RoundLimits
    topics: Mapping[str, TopicProgress]
    stage: Stage = Stage.LOOK
    open: Mapping[int, Question] = field(default_factory=dict)
    asked: int = 0
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    same: frozenset[str] = frozenset()
    logs: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    result: ReadResult = field(default_factory=ReadResult)
    batches: tuple[TopicBatch, ...] = ()
    landed: tuple[TopicBatch, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    unsure: frozenset[str] = frozenset()
    looks: frozenset[str] = frozenset()
    is_aside: bool = False

    def asking(self, questions: Iterable[Question]) -> "Round":
        """With more open questions."""
        asked = {self.asked + n: question for n, question in enumerate(questions, 1)}
        return replace(self, open={**self.open, **asked}, asked=self.asked + len(asked))

    def of(self, topics: AbstractSet[str]) -> "Round":
        """Only what is about these topics; open are the questions about one of them."""
        return replace(
            self,
            topics={name: topic for name, topic in self.topics.items() if name in topics},
            open={n: q for n, q in self.open.items() if topic_of(q) in topics},
            ends={tp: end for tp, end in self.ends.items() if tp.topic in topics},
            same=self.same & topics,
            logs={tp: log for tp, log in self.logs.items() if tp.topic in topics},
            batches=tuple(batch for batch in self.batches if batch.topic in topics),
            landed=tuple(batch for batch in self.landed if batch.topic in topics),
            refused={topic: reason for topic, reason in self.refused.items() if topic in topics},
            unsure=self.unsure & topics,
            looks=self.looks & topics,
        )

    def reading(self, planned: PlannedRead | None) -> ReadBatch:
        """The question for all that is active, and for what is planned of a topic that has a job of its own."""
        arrow = [t for t in self.topics.values() if not t.uses_dataframe]
        start = {TopicPartition(t.topic, p): offset for t in arrow for p, offset in t.active.items()}
        has_dataframe = any(t.uses_dataframe and t.active for t in self.topics.values())
        return ReadBatch(start, planned, has_dataframe, self.pace.batch_bytes)

    def with_topic(self, topic: TopicProgress) -> "Round":
        """With the newer value of one topic."""
        return replace(self, topics={**self.topics, topic.topic: topic})

    def stopping(self, topic: str, stops: Mapping[int, str], cause: StopCause, now: float) -> "Round":
        """With these partitions (and reasons) of a topic stopped; nothing of a topic that is not ours."""
        if topic not in self.topics or not stops:
            return self
        return self.with_topic(self.topics[topic].stopped(stops, cause, now))
