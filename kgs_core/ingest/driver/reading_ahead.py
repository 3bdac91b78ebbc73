"""Reading ahead in a thread beside a round's commits; `ingest.round.ahead` decides what to read and what to use."""

import logging
import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

from kgs_core.errors import one_line
from kgs_core.ingest.driver.batch_runner import BatchRunner
from kgs_core.ingest.opening.topic_state import TopicState
from kgs_core.ingest.round.ahead import ReadAhead, foresee
from kgs_core.ingest.round.questions import ReadBatch, ReadResult
from kgs_core.ingest.round.state import Round

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """A read ahead that has been started, and may be over.

    Attributes:
        states: states of its topics, without those that were dropped.
        since: when it began, on the steady clock.
    """

    ahead: ReadAhead
    states: Mapping[str, TopicState]
    answer: Future[ReadResult]
    since: float


class ReadingAhead:
    """Keeps at most one read ahead. The runner serves one thread at a time: call `wait` before using it elsewhere.

    `longest_s`: a result that was requested longer ago is dropped, since the vacuum relies on files being young.
    """

    def __init__(self, runner: BatchRunner, longest_s: float) -> None:
        self._runner = runner
        self._longest_s = longest_s
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="read-ahead")
        self._reading: _Reading | None = None

    def begin(self, at: Round, states: Mapping[str, TopicState]) -> None:
        """Start reading what the next round is expected to ask for, unless a result is still kept."""
        if self._reading is not None or (ahead := foresee(at)) is None:
            return
        mine = {name: states[name] for name in ahead.at.topics}
        jobs = {name: state.job(ahead.at.topics[name]) for name, state in mine.items()}
        answer = self._pool.submit(self._runner.read, ahead.question, jobs)
        self._reading = _Reading(ahead, mine, answer, time.monotonic())

    def take(self, at: Round, question: ReadBatch, states: Mapping[str, TopicState]) -> ReadResult | None:
        """Answer to a round's question from the kept result, which is then dropped; None: it must be read.

        Raises:
            Exception: the reading has failed, as `BatchRunner.read` does.
        """
        reading, self._reading = self._reading, None
        if reading is None:
            return None
        result = reading.answer.result()
        if time.monotonic() - reading.since > self._longest_s:
            return None
        same = {name for name, state in reading.states.items() if states.get(name) is state}
        return reading.ahead.answer(result, at, question, same)

    def wait(self) -> None:
        """Wait until no read is running."""
        if self._reading is not None:
            wait([self._reading.answer])

    def drop(self, topics: Collection[str] | None = None) -> None:
        """Forget what was read ahead of these topics (None: of all)."""
        reading = self._reading
        if reading is None or (topics is not None and reading.states.keys().isdisjoint(topics)):
            return
        self.wait()
        left = {} if topics is None else {name: state for name, state in reading.states.items() if name not in topics}
        if left:
            self._reading = replace(reading, states=left)
            return
        problem = reading.answer.exception()
        if isinstance(problem, Exception):
            _log.info("read ahead in vain: %s", one_line(problem))
        self._reading = None

    def close(self) -> None:
        """End the thread."""
        self.drop()
        self._pool.shutdown()
