"""Reading ahead in a thread beside the commits of a round; `consumer.round.ahead` says what, and what is of use."""

import logging
from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from kgs_core.adapters.ingest.batch_runner import BatchRunner
from kgs_core.adapters.ingest.topic_state import TopicState
from kgs_core.consumer.round.ahead import ReadAhead, foresee
from kgs_core.consumer.round.questions import ReadBatch, ReadResult
from kgs_core.consumer.round.state import Round
from kgs_core.errors import one_line

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """A reading that was begun, and maybe is over."""

    ahead: ReadAhead
    states: Mapping[str, TopicState]
    answer: Future[ReadResult]


class ReadingAhead:
    """One reading at most. The runner is for one thread at a time: `wait` comes before anybody else uses it."""

    def __init__(self, runner: BatchRunner) -> None:
        self._runner = runner
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="read-ahead")
        self._reading: _Reading | None = None

    def begin(self, at: Round, states: Mapping[str, TopicState]) -> None:
        """Read what is foreseen of a round whose commits are open; nothing where another one is kept."""
        if self._reading is not None or (ahead := foresee(at)) is None:
            return
        mine = {name: states[name] for name in ahead.at.topics}
        jobs = {name: state.job(ahead.at.topics[name]) for name, state in mine.items()}
        answer = self._pool.submit(self._runner.read, ahead.question, jobs)
        self._reading = _Reading(ahead, mine, answer)

    def take(self, at: Round, question: ReadBatch, states: Mapping[str, TopicState]) -> ReadResult | None:
        """What was read ahead, if it answers a round's question; it is kept no longer.

        Raises:
            Exception: the reading has failed, as `BatchRunner.read` does.
        """
        reading, self._reading = self._reading, None
        if reading is None:
            return None
        result = reading.answer.result()
        if any(states[name] is not state for name, state in reading.states.items() if name in states):
            return None
        return reading.ahead.answer(result, at, question)

    def wait(self) -> None:
        """Until nothing is being read."""
        if self._reading is not None:
            wait([self._reading.answer])

    def drop(self, topics: Collection[str] | None = None) -> None:
        """Forget what was read ahead, if one of these topics (None: any) is in it."""
        if self._reading is not None and (topics is None or not self._reading.states.keys().isdisjoint(topics)):
            self.wait()
            problem = self._reading.answer.exception()
            if isinstance(problem, Exception):
                _log.info("read ahead in vain: %s", one_line(problem))
            self._reading = None

    def close(self) -> None:
        """End the thread."""
        self.drop()
        self._pool.shutdown()
