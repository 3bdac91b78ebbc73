"""Questions to Kafka that no single broker holds up, and the rules by which all clients of kgs survive its silence.

A broker may be killed, frozen, without power, cut off in one direction or both, or slow by seconds. Most of these leave
its connections up: no answer comes on them, and no error either. No other part of kgs knows about it.

1. Requests, and the setup of connections, end after 6.5 s in every client (`client_config.TIME_OUTS`). Without it:
   librdkafka waits 60 s, until then takes the silent connection for up, and prefers it for further requests.
2. That is longer than a slow broker takes, say 5 s. Without it: its partitions would never be read, and no report to it
   would ever arrive. A new connection takes one answer within that time, with SASL three or four, so a broker that
   is slow by more than 1.6 s may be out of reach there.
3. A question without an answer is repeated by a new client after 0.9 s, 1.8 s and so on, until its time is over; by two
   in a process at most at a time. Each of these waits 7 s; for the controller 1.5 s, but the later ones. Without it:
   the client has chosen the silent broker and asks no other. Most questions go to the controller. With KRaft, each
   response names any broker as such, so that a new client may choose the silent one again; and who has lost a leader
   finds the next one by a client that asks after the election. Without the limit: a machine that is busy is made busier
   by clients that are not needed.
   So it is with a report, every 2.5 s (`DurableWriter`).
4. The client that answers first is used from then on. Without it: every question waits for the silent broker again.
5. A client is only replaced by one that has answered. Without it: a new client has to connect first; with a slow leader
   that takes as long as the answer, which would come too late each time.
6. Requests that change something are sent once. Without it: the repetition fails because the first one succeeded.
7. While the connection to a partition's leader is down, a client looks for a new leader every second. librdkafka does
   this itself, given rule 1. Without it: it refreshes its metadata every few minutes.
8. The answer to one fetch has about 16 MB (`client_config.reading_client`). Without it: 50 MB take longer than rule 1
   allows on a link below 8 MB/s; the answer would be dropped and fetched again, for ever.
9. A topic of the group counts as missing, or as another one, after four answers to four clients in a row
   (`GroupTopics`). Without it: a broker whose metadata lag, or that is cut off from the others, ends a controller
   that has just made the topic.
10. A client of Kafka's administration keeps a connection to every broker (`admin.KafkaAdmin`). Without it: librdkafka
   connects when a question needs a broker, and spends a core and more on that while the broker refuses.
11. A question about offsets may be asked for 16 s (`admin.KafkaAdmin`). Without it: it fails before Kafka has given the
   partitions of a lost broker to another, which takes Kafka 9 s.
"""

import math
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException

from kgs_core.errors import PortError, TransientError
from kgs_core.kafka.clients import RotatingClient
from kgs_core.kafka.errors import NO_ANSWER

REPEAT_S = 0.9
QUICK_REPEATS = 4
MOST_AT_ONCE = 2
ANSWER_S = 7.0
SHORT_S = 1.5
"""What one attempt waits: longer than rule 1, so that it says why; or for the controller at first."""
_repeating = threading.BoundedSemaphore(MOST_AT_ONCE)
_NEXT_TRY_S = 0.2
_GRACE_S = 1.0  # for librdkafka to report itself that nobody answered
_Key = TypeVar("_Key", bound=Hashable)
_Client = TypeVar("_Client")
Question = Callable[[_Client, float], Mapping[_Key, "Future[Any]"]]
"""Request by a client with a time-out in seconds; it has a future for each of its subjects."""


def ask(
    clients: RotatingClient[_Client],
    question: Question[_Client, _Key],
    timeout_s: float,
    attempt_s: float = ANSWER_S,
    *,
    once: bool = False,
) -> dict[_Key, Any]:
    """Answer to each subject of a question: a result or a KafkaError.

    Args:
        clients: the client to ask, replaced by the one that answers.
        attempt_s: what each of the first attempts waits.
        once: for requests that change something.

    Raises:
        TimeoutError: librdkafka did not even report a time-out.
        KafkaException: the request is refused.
    """
    asking: _Asking[_Client, _Key] = _Asking(clients, question, timeout_s, attempt_s, once=once)
    try:
        return asking.answered()
    finally:
        asking.end()


def first(connect: Callable[[], _Client], discard: Callable[[_Client], object]) -> _Client:
    """The connection that is made first, where a client waits for the one address that it has chosen (rule 3).

    Args:
        connect: makes a connection or raises; called again every `REPEAT_S` until one is there, up to four times.
        discard: ends a connection that came too late.

    Raises:
        Exception: what the last attempt raised, or the first one that raised no TransientError.
    """
    open_: set[Future[_Client]] = set()
    begun = 0
    while True:
        if begun <= QUICK_REPEATS:
            open_.add(in_thread(connect)[None])
            begun += 1
        done, open_ = wait(open_, REPEAT_S if begun <= QUICK_REPEATS else None, FIRST_COMPLETED)
        final = [each for each in done if not isinstance(each.exception(), TransientError)]
        if final or not open_:
            for late in open_ | set(final[1:]):
                late.add_done_callback(lambda each: discard(each.result()) if each.exception() is None else None)
            return (final or list(done))[0].result()


def in_thread(call: Callable[[], Any]) -> "Mapping[None, Future[Any]]":
    """The answer of a call of a client that waits for it, by a thread of its own."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as e:  # noqa: BLE001 - raised where the future is read
            future.set_exception(e.with_traceback(None))  # as in `_answer`

    threading.Thread(target=run, name="kafka-question", daemon=True).start()
    return {None: future}


class _Asking(Generic[_Client, _Key]):
    def __init__(
        self,
        clients: RotatingClient[_Client],
        question: Question[_Client, _Key],
        timeout_s: float,
        attempt_s: float,
        *,
        once: bool,
    ) -> None:
        self._clients, self._question, self._attempt_s, self._once = clients, question, attempt_s, once
        self._end_s = time.monotonic() + timeout_s
        self._began_s = time.monotonic()
        self._turns = 0
        self._attempts: list[_Attempt[_Client, _Key]] = []

    def answered(self) -> dict[_Key, Any]:
        """See `ask`."""
        self._begin(self._clients.get(), is_extra=False)
        while True:
            for attempt in self._attempts:
                if attempt.take() and attempt.is_answered:
                    self._clients.keep(attempt.client, self._attempts[0].client)
                    return attempt.found
            left_s, due_s = self._end_s - time.monotonic(), self._next_due_s()
            open_ = [attempt.next for attempt in self._attempts if not attempt.is_over]
            if due_s <= 0 < left_s:
                self._repeat()
            elif left_s + (_GRACE_S if open_ else 0.0) <= 0 or (self._once and not open_):
                return _best(self._attempts)
            elif open_:
                wait(open_, min(due_s, left_s + _GRACE_S), FIRST_COMPLETED)
            else:
                time.sleep(min(due_s, left_s))

    def _next_due_s(self) -> float:
        if self._once:
            return math.inf
        turns = self._turns if self._turns <= QUICK_REPEATS else 3 * self._turns - 2 * QUICK_REPEATS
        return self._began_s + REPEAT_S * turns - time.monotonic()

    def _repeat(self) -> None:
        """One more attempt, where the process has not begun too many."""
        if not _repeating.acquire(blocking=False):
            self._began_s += _NEXT_TRY_S  # all turns are later
            return
        try:
            client = self._clients.another()
        except PortError:  # no token now, say
            _repeating.release()
            self._turns += 1
            return
        self._begin(client, is_extra=True)

    def _begin(self, client: _Client, *, is_extra: bool) -> None:
        self._turns += 1
        left_s = max(self._end_s - time.monotonic(), _NEXT_TRY_S)  # the client may have waited long for a token
        attempt_s = self._attempt_s if self._turns <= QUICK_REPEATS else ANSWER_S
        attempt: _Attempt[_Client, _Key] = _Attempt(client, is_extra)
        self._attempts.append(attempt)
        futures = self._question(client, left_s if self._once else min(left_s, attempt_s))
        attempt.open = list(futures.items())[::-1]

    def end(self) -> None:
        """Let others repeat theirs."""
        for attempt in self._attempts:
            attempt.release()


@dataclass(slots=True)
class _Attempt(Generic[_Client, _Key]):
    """One way a question was sent.

    Attributes:
        is_held: it is one of the process's repetitions, until it is over.
        open: subjects without an answer yet, the first one last. librdkafka answers all of a request at once.
    """

    client: _Client
    is_held: bool
    open: list[tuple[_Key, "Future[Any]"]] = field(default_factory=list)
    found: dict[_Key, Any] = field(default_factory=dict)

    def take(self) -> bool:
        """Take in what has come; whether all has."""
        while self.open and self.open[-1][1].done():
            key, future = self.open.pop()
            self.found[key] = _answer(future)
        if self.is_over:
            self.release()
        return self.is_over

    def release(self) -> None:
        """Let another one begin."""
        if self.is_held:
            self.is_held = False
            _repeating.release()

    @property
    def next(self) -> "Future[Any]":
        """What is waited for."""
        return self.open[-1][1]

    @property
    def is_over(self) -> bool:
        return not self.open

    @property
    def is_answered(self) -> bool:
        return not any(map(_is_missing, self.found.values()))

    @property
    def known(self) -> int:
        """Number of subjects that a broker has answered about."""
        return sum(not _is_missing(answer) for answer in self.found.values())


def _best(attempts: "Sequence[_Attempt[_Client, _Key]]") -> dict[_Key, Any]:
    """What is known of most subjects, of the attempts that are over."""
    over = [each for each in attempts if each.is_over]
    if not over:
        raise TimeoutError
    return max(over, key=lambda each: each.known).found


def _answer(future: "Future[Any]") -> Any:
    error = future.exception()  # raised here, it would keep the client alive until the next garbage collection
    if isinstance(error, KafkaException):
        return error.args[0]
    answer = future.result()
    # Of a leader that did not answer, librdkafka may give this offset, and no error
    is_unknown = getattr(answer, "offset", None) == OFFSET_INVALID
    return KafkaError(KafkaError._TIMED_OUT) if is_unknown else answer  # noqa: SLF001 - a public constant


def _is_missing(answer: object) -> bool:
    return isinstance(answer, KafkaError) and answer.name() in NO_ANSWER
