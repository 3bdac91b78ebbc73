"""The driver of a consumer's rounds: asks batch runner, Kafka and lake what `consumer.round` wants to know."""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from kgs_core.adapters.ingest.batch_runner import BatchRunner
from kgs_core.adapters.ingest.topic_state import TopicState
from kgs_core.adapters.kafka.admin import KafkaAdmin
from kgs_core.adapters.kafka.committed_offsets import GroupOffsets
from kgs_core.consumer.round.machine import answered, begin
from kgs_core.consumer.round.questions import (
    Answer,
    AskEnds,
    AskLogs,
    AskPositions,
    AskTopicIds,
    Commit,
    Ends,
    Landed,
    Logs,
    Question,
    ReadBatch,
    TopicIds,
    Trouble,
)
from kgs_core.consumer.round.state import Round, RoundLimits
from kgs_core.consumer.round.stops import StopCause
from kgs_core.errors import PermanentError, PortError, UnsafeError
from kgs_core.exactly_once.batch import TopicBatch
from kgs_core.model import TopicPartition
from kgs_core.ports import CommitOutcome

SIDE_BY_SIDE = 8
K = TypeVar("K", str, TopicPartition)
V = TypeVar("V")
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class RoundReport:
    """Report of one round, for logs and metrics.

    Attributes:
        refused: batches that did not land: another writer was ahead, or the lake did not answer.
        latency_s: from the timestamp of the oldest record to its commit; None without records.
    """

    batches: int = 0
    records: int = 0
    consumed_bytes: int = 0
    refused: int = 0
    fetch_s: float = 0.0
    write_s: float = 0.0
    commit_s: float = 0.0
    latency_s: float | None = None
    problems: set[str] = field(default_factory=set)


class Ingest:
    """Runs rounds over the topics in `topics`, which the owner of this object keeps up to date between rounds."""

    def __init__(
        self,
        topics: Mapping[str, TopicState],
        pace: RoundLimits,
        runner: BatchRunner,
        admin: KafkaAdmin,
        group_offsets: GroupOffsets,
    ) -> None:
        self.topics = topics
        self.runner = runner
        self._pace = pace
        self._admin = admin
        self._group_offsets = group_offsets
        self._pool = ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="lake")

    def round(self) -> RoundReport:
        """One round over all topics; returns after about a second when there is nothing to read, or when interrupted.

        What Kafka or the lake refuses, or does not answer, stops the partitions that it is about, with a reason.

        Raises:
            Exception: Spark, or a worker of it, has failed. Positions are as the tables have them.
        """
        report = RoundReport()
        at = begin({name: state.progress for name, state in self.topics.items()}, self._pace, time.monotonic())
        try:
            while at.open:
                for number, answer in self._carry_out(at, report):
                    at = answered(at, number, answer, time.monotonic())
        finally:
            for name, progress in at.topics.items():
                self.topics[name].progress = progress
        self._tell(at, report)
        return report

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    # Questions

    def _carry_out(self, at: Round, report: RoundReport) -> list[tuple[int, Answer]]:
        """The answers to questions of one stage; those to the lake side by side, and all of them waited for."""
        began, questions = time.monotonic(), at.open
        at_work = {
            number: self._pool.submit(self._ask_lake, question)
            for number, question in questions.items()
            if isinstance(question, AskPositions | Commit)
        }
        answers = [(n, self._ask(question, at)) for n, question in questions.items() if n not in at_work]
        answers += [(number, future.result()) for number, future in at_work.items()]
        if any(isinstance(question, Commit) for question in questions.values()):
            report.commit_s += time.monotonic() - began
        return answers

    def _ask_lake(self, question: Question) -> Answer:
        """The answer of a topic's table; whatever goes wrong is that topic's trouble alone."""
        try:
            match question:
                case AskPositions(topic=topic, partitions=partitions):
                    return self.topics[topic].table.positions(partitions)
                case Commit(batch=batch):
                    return Landed(self.topics[batch.topic].table.commit(batch) is CommitOutcome.COMMITTED)
                case _:
                    return Trouble(f"{type(question).__name__} is no question to the lake")
        except BaseException as e:  # noqa: BLE001 - their exceptions are many, and a panic of Rust is no Exception
            return _trouble(e)

    def _ask(self, question: Question, at: Round) -> Answer:
        match question:
            case ReadBatch():
                # As the round has them: a look may have found the table further than it was at the round's begin
                return self.runner.read(question, {name: self.topics[name].job(now) for name, now in at.topics.items()})
            case AskEnds(tps=tps):
                return Ends(self._offsets(tps, "latest", committed_reads=True))
            case AskTopicIds(topics=topics):
                return TopicIds(_each(lambda: self._admin.each_topic_id(topics), topics))
            case AskLogs(tps=tps):
                first, end = self._offsets(tps, "earliest"), self._offsets(tps, "latest")
                return Logs({tp: _log_of(first[tp], end[tp]) for tp in tps})
            case _:
                return self._ask_lake(question)

    def _offsets(
        self, tps: Sequence[TopicPartition], which: Literal["earliest", "latest"], *, committed_reads: bool = False
    ) -> dict[TopicPartition, int | Trouble]:
        return _each(lambda: self._admin.each_offset(tps, which, committed_reads=committed_reads), tps)

    # What came of it

    def _tell(self, at: Round, report: RoundReport) -> None:
        report.problems |= at.result.problems
        report.fetch_s += at.result.fetch_s
        report.write_s += at.result.write_s
        for batch in at.landed:
            self._count(batch, report)
        for topic, reason in at.refused.items():
            report.refused += 1
            _log.info("refused topic=%s, read again from its table's positions: %s", topic, reason)

    def _count(self, batch: TopicBatch, report: RoundReport) -> None:
        self._group_offsets.report({TopicPartition(batch.topic, p): r.end for p, r in batch.ranges.items()})
        report.batches += 1
        report.records += batch.records
        report.consumed_bytes += batch.consumed_bytes
        if batch.oldest_ms is not None:
            report.latency_s = max(report.latency_s or 0.0, time.time() - batch.oldest_ms / 1000)


def _each(ask: Callable[[], Mapping[K, V | PortError]], subjects: Collection[K]) -> dict[K, V | Trouble]:
    """What Kafka says of each subject: none answers for another, and no answer at all is an answer for each."""
    try:
        return {k: _trouble(found) if isinstance(found, PortError) else found for k, found in ask().items()}
    except PortError as e:
        return dict.fromkeys(subjects, _trouble(e))


def _log_of(first: int | Trouble, end: int | Trouble) -> tuple[int, int] | Trouble:
    if isinstance(first, Trouble):
        return first
    return end if isinstance(end, Trouble) else (first, end)


def _trouble(error: BaseException) -> Trouble:
    """What an exception of an adapter stops a partition for; a foreign one is passing trouble until it lasts."""
    match error:
        case UnsafeError():
            return Trouble(str(error), StopCause.TABLE)
        case PermanentError():
            return Trouble(str(error), StopCause.DENIED)
        case PortError():
            return Trouble(str(error))
        case _:
            return Trouble(f"{type(error).__name__}: {error}")
