"""Driver of a consumer's rounds: puts the questions of `ingest.round` to batch runner, Kafka and lake."""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Literal

from kgs_core.config.settings import ConsumerSettings
from kgs_core.ingest.driver.batch_runner import BatchRunner
from kgs_core.ingest.driver.reading_ahead import ReadingAhead
from kgs_core.ingest.driver.round_report import RoundReport
from kgs_core.ingest.opening.port_answers import each, log_of, trouble_of
from kgs_core.ingest.opening.topic_state import TopicState
from kgs_core.ingest.round import reasons
from kgs_core.ingest.round.batch_size import FULL_SHARE, BatchSize
from kgs_core.ingest.round.machine import answered, begin, part
from kgs_core.ingest.round.questions import (
    AddColumns,
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
    topic_of,
)
from kgs_core.ingest.round.state import Round, RoundLimits
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.committed_offsets import GroupOffsets
from kgs_core.lake.rule.batch import TopicBatch
from kgs_core.lake.topics.topic_table import TopicTable
from kgs_core.model import TopicPartition
from kgs_core.ports import CommitOutcome

SIDE_BY_SIDE = 32
PATIENCE_S = 1.0
"""A table is late if it takes longer than this, and than twice the time in which half of the topics finished."""
LULL_S = 1.0
_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Aside:
    """A topic whose table is late, in a round of its own.

    Attributes:
        answers: number of each open question -> its pending answer.
        since: start of the round that it was split from.
    """

    state: TopicState
    at: Round
    answers: dict[int, Future[Answer]]
    since: float


class Ingest:
    """Runs rounds over the topics in `topics`, which the owner of this object keeps up to date between rounds.

    A round does not wait for a late table: its topic is skipped by later rounds until the table has answered
    (`TopicState.is_at_work`). Until then the topic's batch stays in flight: see `settle`.

    While a round commits, a thread reads what the next one will ask for. Between two rounds no read is running.
    """

    def __init__(
        self,
        topics: Mapping[str, TopicState],
        consumer: ConsumerSettings,
        runner: BatchRunner,
        admin: KafkaAdmin,
        group_offsets: GroupOffsets,
    ) -> None:
        self.topics = topics
        self.runner = runner
        self._wait_time_s = consumer.wait_time_s
        self._size = BatchSize.between(consumer.batch_bytes, consumer.largest_batch_bytes, consumer.batch_timeout_s)
        self._admin = admin
        self._group_offsets = group_offsets
        self._pool = ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="lake")
        self._asides: list[_Aside] = []
        self._ahead = ReadingAhead(runner, consumer.batch_timeout_s)
        self._report = RoundReport()

    def round(self, is_interrupted: Callable[[], bool] = lambda: False) -> RoundReport:
        """One round over all topics; returns after about a second when there is nothing to read, or when interrupted.

        If Kafka or the lake refuses or does not answer, the partitions concerned stop, with a reason.

        `is_interrupted`: whether no other round may follow; then nothing is read ahead.

        Raises:
            Exception: Spark, or a worker of it, has failed. Positions are as the tables have them.
        """
        began = time.monotonic()
        if self._asides and not any(s.progress.active and not s.is_at_work for s in self.topics.values()):
            _wait_for_one(self._asides, LULL_S)  # there is nothing else to do
        for aside in list(self._asides):
            self._go_on(aside)
        report, self._report = self._report, RoundReport()
        states = {name: state for name, state in self.topics.items() if not state.is_at_work}
        limits = RoundLimits(self._size.now, self._wait_time_s)
        at = begin({name: state.progress for name, state in states.items()}, limits, began)
        try:
            while at.open:
                answers, late = self._carry_out(at, report, is_interrupted)
                for number, answer in answers:
                    at = answered(at, number, answer, time.monotonic())
                if late:
                    at, parted = part(at, time.monotonic())
                    for alone in parted:
                        self._put_aside(alone, states, late, began)
            self._resize(at, report)
            self._tell(at, report)
        finally:
            for name, progress in at.topics.items():
                states[name].progress = progress
            self._ahead.wait()
        return report

    @property
    def late_since(self) -> float | None:
        """Start of the oldest round with a batch still in flight, on the steady clock; None without one.

        Data read ahead does not count: its time is part of its round, and the next round commits or drops it.
        """
        return min((aside.since for aside in self._asides), default=None)

    def settle(self, topics: Collection[str] | None = None) -> None:
        """Wait, without a limit, until no batch of these topics (None: of any) is in flight.

        Data read ahead of them is dropped.
        """
        self._ahead.drop(topics)
        while mine := [a for a in self._asides if topics is None or a.state.topic in topics]:
            _wait_for_one(mine)
            for aside in mine:
                self._go_on(aside)

    def close(self) -> None:
        """End the threads and the runner's read task, once nothing is in flight; the runner stays up."""
        self.settle()
        self._ahead.close()
        self._pool.shutdown()
        self.runner.end_task()

    # Tables that are late

    def _put_aside(
        self, at: Round, states: Mapping[str, TopicState], late: Mapping[int, Future[Answer]], since: float
    ) -> None:
        (topic,) = at.topics
        states[topic].is_at_work = True
        self._asides.append(_Aside(states[topic], at, {number: late[number] for number in at.open}, since))

    def _go_on(self, aside: _Aside) -> None:
        """Take arrived answers and ask what follows; once nothing is open, return the topic to the next round."""
        state = aside.state
        for number, answer in list(aside.answers.items()):
            if answer.done():
                del aside.answers[number]
                aside.at = answered(aside.at, number, answer.result(), time.monotonic())
        for number, question in aside.at.open.items():
            if number not in aside.answers:
                aside.answers[number] = self._pool.submit(_ask_table, question, state.table)
        if aside.at.open:
            return
        self._asides.remove(aside)
        state.is_at_work = False
        state.progress = aside.at.topics[state.topic]
        self._tell(aside.at, self._report)

    # Questions

    def _carry_out(
        self, at: Round, report: RoundReport, is_interrupted: Callable[[], bool]
    ) -> tuple[list[tuple[int, Answer]], Mapping[int, Future[Answer]]]:
        """Answers to the questions of one stage, and the late tables apart; all tables are asked in parallel."""
        began, questions = time.monotonic(), at.open
        asked = {number: topic for number, question in questions.items() if (topic := topic_of(question)) is not None}
        at_work = {
            number: self._pool.submit(_ask_table, questions[number], self.topics[topic].table)
            for number, topic in asked.items()
        }
        try:
            if not is_interrupted():
                self._ahead.begin(at, self.topics)
            answers = [(n, self._ask(question, at)) for n, question in questions.items() if n not in asked]
        except BaseException:
            wait(at_work.values())  # the next round must not meet them
            raise
        idle = {name for name, topic in at.topics.items() if topic.active} - set(asked.values())
        late = _late(at_work, len(idle) + len(self._asides))
        answers += [(number, future.result()) for number, future in at_work.items() if number not in late]
        if any(isinstance(question, Commit) for question in questions.values()):
            report.commit_s += time.monotonic() - began
        return answers, late

    def _ask(self, question: Question, at: Round) -> Answer:
        match question:
            case ReadBatch():
                if (ready := self._ahead.take(at, question, self.topics)) is not None:
                    return ready
                # As the round has them: a look may have found the table further than it was at the round's begin
                return self.runner.read(question, {name: self.topics[name].job(now) for name, now in at.topics.items()})
            case AskEnds(tps=tps):
                return Ends(self._offsets(tps, "latest", committed_reads=True))
            case AskTopicIds(topics=topics):
                return TopicIds(each(lambda: self._admin.each_topic_id(topics), topics))
            case AskLogs(tps=tps):
                first, end = self._offsets(tps, "earliest"), self._offsets(tps, "latest")
                return Logs({tp: log_of(first[tp], end[tp]) for tp in tps})
            case _:
                return Trouble(f"{type(question).__name__} is a question to a table")

    def _offsets(
        self, tps: Sequence[TopicPartition], which: Literal["earliest", "latest"], *, committed_reads: bool = False
    ) -> dict[TopicPartition, int | Trouble]:
        return each(lambda: self._admin.each_offset(tps, which, committed_reads=committed_reads), tps)

    # What came of it

    def _resize(self, at: Round, report: RoundReport) -> None:
        read, before = at.result.batches, self._size.now
        landed_bytes = sum(batch.consumed_bytes for batch in at.landed)
        report.is_full = landed_bytes >= FULL_SHARE * before and not at.result.waiting
        self._size = self._size.after(
            sum(batch.consumed_bytes for batch in read),
            at.result.asked_bytes,
            at.result.fetch_s + at.result.write_s,
            report.commit_s or None,  # as long as nothing is exactly what it takes to try nothing
            has_landed=len(at.landed) == len(read),
        )
        if self._size.now != before:
            _log.debug("batches of %d bytes at most: commits took %.2f s", self._size.now, report.commit_s)

    def _tell(self, at: Round, report: RoundReport) -> None:
        report.problems |= at.result.problems
        report.fetch_s += at.result.fetch_s
        report.write_s += at.result.write_s
        report.waited_s += at.result.waited_s
        report.received += at.result.received
        for batch in at.landed:
            self._count(batch, report)
        for topic, reason in at.refused.items():
            report.refused += 1
            report.outrun += reason == reasons.AHEAD
            _log.info("refused topic=%s, read again from its table's positions: %s", topic, reason)

    def _count(self, batch: TopicBatch, report: RoundReport) -> None:
        if (state := self.topics.get(batch.topic)) is not None:
            ends = {TopicPartition(batch.topic, p): r.end for p, r in batch.ranges.items()}
            self._group_offsets.report(batch.topic_id, state.table.spec.table, ends)
        report.batches += 1
        report.records += batch.records
        report.consumed_bytes += batch.consumed_bytes
        report.offsets[batch.topic] += sum(r.end - r.start for r in batch.ranges.values())
        if batch.oldest_ms is not None:
            report.latency_s = max(report.latency_s or 0.0, time.time() - batch.oldest_ms / 1000)


def _ask_table(question: Question, table: TopicTable) -> Answer:
    """Answer of a topic's table; an error affects that topic alone."""
    try:
        match question:
            case AskPositions(partitions=partitions):
                return table.positions(partitions)
            case Commit(batch=batch):
                return Landed(table.commit(batch) is CommitOutcome.COMMITTED)
            case AddColumns(columns=columns):
                table.add_columns(columns)
                return Landed(committed=True)
            case _:
                return Trouble(f"{type(question).__name__} is no question to a table")
    except BaseException as e:  # noqa: BLE001 - their exceptions are many, and a panic of Rust is no Exception
        return trouble_of(e)


def _wait_for_one(asides: Sequence[_Aside], timeout_s: float | None = None) -> None:
    wait([answer for aside in asides for answer in aside.answers.values()], timeout_s, FIRST_COMPLETED)


def _late(at_work: Mapping[int, Future[Answer]], idle: int) -> Mapping[int, Future[Answer]]:
    """Answers that are late, see `PATIENCE_S`; waits for all others.

    Args:
        at_work: number of a question -> its answer.
        idle: number of other topics, which can be read or may be at any moment.
    """
    began, until = time.monotonic(), float("inf")
    done, missing = 0, set(at_work.values())
    while missing:
        if until == float("inf") and 2 * (idle + done) >= idle + len(at_work):
            until = max(began + PATIENCE_S, time.monotonic() + (time.monotonic() - began))
        left = until - time.monotonic()
        if left <= 0:
            break
        _, missing = wait(missing, None if left == float("inf") else left, FIRST_COMPLETED)
        done = len(at_work) - len(missing)
    return {number: answer for number, answer in at_work.items() if answer in missing}
