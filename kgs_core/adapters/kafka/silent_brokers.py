"""Questions to Kafka that no single broker holds up, and the rules by which all clients of kgs survive its silence.

A broker may be killed, frozen, without power, cut off in one direction or both, or slow by seconds. Most of these leave
its connections up: no answer comes on them, and no error either. No other part of kgs knows about it.

1. Requests, and the setup of connections, end after 6.5 s in every client (`client_config.TIME_OUTS`). Without it:
   librdkafka waits 60 s, until then takes the silent connection for up, and prefers it for further requests.
2. That is longer than a slow broker takes, say 5 s. Without it: its partitions would never be read, and no report to it
   would ever arrive. A new connection takes one answer within that time, with SASL three or four, so a broker that
   is slow by more than 1.6 s may be out of reach there.
3. A question without an answer is repeated by a new client every 0.9 s, up to four times, and by two in a process at
   most at a time. Without it: the client has chosen the silent broker and asks no other. Most questions go to the
   controller. With KRaft, each response names any broker as such, so that a new client may choose the silent one again.
   Without the limit: a machine that is busy is made busier by clients that are not needed.
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
10. A question to the controller is sent by a client that a broker has just answered, and waits 2 s while it can be
   repeated. Without it: librdkafka spends a core on connecting to a controller that is down, for as long as it waits.
"""

import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException

from kgs_core.adapters.kafka.clients import RotatingClient
from kgs_core.adapters.kafka.errors import NO_ANSWER
from kgs_core.errors import PortError, TransientError

REPEAT_S = 0.9
MOST_REPEATS = 4
MOST_AT_ONCE = 2
SHORT_S = 2.0
_repeating = threading.BoundedSemaphore(MOST_AT_ONCE)
_GRACE_S = 1.0  # for librdkafka to report itself that nobody answered
_Key = TypeVar("_Key", bound=Hashable)
_Client = TypeVar("_Client")
Question = Callable[[_Client, float], Mapping[_Key, "Future[Any]"]]
"""Request by a client with a time-out in seconds; it has a future for each of its subjects."""


def ask(
    clients: RotatingClient[_Client],
    question: Question[_Client, _Key],
    timeout_s: float,
    repeats: int = MOST_REPEATS,
    look: Question[_Client, None] | None = None,
) -> dict[_Key, Any]:
    """Answer to each subject of a question: a result or a KafkaError.

    Args:
        clients: the client to ask, replaced by the one that answers.
        question: sends it.
        timeout_s: of the whole.
        repeats: maximum number of repetitions; 0 for requests that change something.
        look: question to any broker, for one to the controller (rule 10).

    Raises:
        TimeoutError: librdkafka did not even report a time-out.
        KafkaException: the request is refused, or no broker answers.
        PortError: there is no client.
    """
    asking: _Asking[_Client, _Key] = _Asking(clients, question, look, repeats)
    try:
        return _answered(asking, timeout_s)
    finally:
        asking.end()


def _answered(asking: "_Asking[_Client, _Key]", timeout_s: float) -> dict[_Key, Any]:
    began_s = time.monotonic()
    asking.begin(asking.clients.get(), timeout_s)
    while True:
        left_s = began_s + timeout_s - time.monotonic()
        if (winner := asking.winner()) is not None:
            asking.clients.keep(winner.client, asking.attempts[0].client)
            return winner.found
        due_s = REPEAT_S * (len(asking.attempts) + asking.skipped) - (timeout_s - left_s)
        if asking.may_repeat(left_s) and (due_s <= 0 or asking.is_over):
            asking.repeat(left_s)
        elif asking.is_over or left_s + _GRACE_S <= 0:
            break
        else:
            longest_s = left_s + _GRACE_S
            asking.wait(min(due_s, longest_s) if asking.may_repeat(left_s) else longest_s)
    asking.clients.doubt()
    return _best(asking.attempts)


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
        if begun <= MOST_REPEATS:
            open_.add(in_thread(connect)[None])
            begun += 1
        done, open_ = wait(open_, REPEAT_S if begun <= MOST_REPEATS else None, FIRST_COMPLETED)
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
            future.set_exception(e)

    threading.Thread(target=run, name="kafka-question", daemon=True).start()
    return {None: future}


@dataclass(slots=True)
class _Asking(Generic[_Client, _Key]):
    """One question, and the attempts to have an answer."""

    clients: RotatingClient[_Client]
    question: Question[_Client, _Key]
    look: Question[_Client, None] | None
    repeats: int
    attempts: "list[_Attempt[_Client, _Key]]" = field(default_factory=list)
    skipped: int = 0
    held: int = 0

    def begin(self, client: _Client, left_s: float) -> None:
        is_short = self.look is not None and len(self.attempts) < self.repeats
        send = partial(self.question, client, min(left_s, SHORT_S) if is_short else left_s)
        if self.look is None or self.clients.has_answered(client):
            self.attempts.append(_Attempt(client, list(send().items())[::-1]))
        else:
            self.attempts.append(_Attempt(client, [], self.look(client, left_s)[None], send))

    def repeat(self, left_s: float) -> None:
        """One more attempt, where the process has not begun too many; waits for that where nothing else is open."""
        if not _repeating.acquire(timeout=left_s if self.is_over else 0):
            self.skipped += 1
            return
        self.held += 1
        try:
            self.begin(self.clients.another(), left_s)
        except PortError:  # no token now, say
            self.repeats = 0

    def end(self) -> None:
        """Let others repeat theirs."""
        for _ in range(self.held):
            _repeating.release()

    def winner(self) -> "_Attempt[_Client, _Key] | None":
        return next((each for each in self.attempts if each.take() and each.is_answered), None)

    def may_repeat(self, left_s: float) -> bool:
        return len(self.attempts) <= self.repeats and left_s > 0

    @property
    def is_over(self) -> bool:
        return all(each.is_over for each in self.attempts)

    def wait(self, timeout_s: float) -> None:
        wait([each.next for each in self.attempts if not each.is_over], timeout_s, FIRST_COMPLETED)


@dataclass(slots=True)
class _Attempt(Generic[_Client, _Key]):
    """One way a question was sent.

    Attributes:
        open: subjects without an answer yet, the first one last. librdkafka answers all of a request at once.
        looking: answer of the look before it, while that is waited for.
        send: sends the question after the look.
        found: answers so far.
        failure: why the look had none.
    """

    client: _Client
    open: list[tuple[_Key, "Future[Any]"]]
    looking: "Future[Any] | None" = None
    send: Callable[[], Mapping[_Key, "Future[Any]"]] | None = None
    found: dict[_Key, Any] = field(default_factory=dict)
    failure: KafkaError | None = None

    def take(self) -> bool:
        """Take in what has come; whether all has."""
        if self.looking is not None and self.send is not None and self.looking.done():
            answer, self.looking = _answer(self.looking), None
            if _is_missing(answer):
                self.failure = answer
            else:
                self.open = list(self.send().items())[::-1]
        while self.open and self.open[-1][1].done():
            key, future = self.open.pop()
            self.found[key] = _answer(future)
        return self.is_over

    @property
    def next(self) -> "Future[Any]":
        """What is waited for."""
        return self.looking or self.open[-1][1]

    @property
    def is_over(self) -> bool:
        return not self.open and self.looking is None

    @property
    def is_answered(self) -> bool:
        return self.failure is None and not any(map(_is_missing, self.found.values()))

    @property
    def known(self) -> int:
        """Number of subjects that a broker has answered about."""
        return -1 if self.failure is not None else sum(not _is_missing(answer) for answer in self.found.values())


def _best(attempts: "Sequence[_Attempt[_Client, _Key]]") -> dict[_Key, Any]:
    """What is known of most subjects, of the attempts that are over."""
    over = [each for each in attempts if each.is_over]
    if not over:
        raise TimeoutError
    best = max(over, key=lambda each: each.known)
    if best.failure is not None:
        raise KafkaException(best.failure)
    return best.found


def _answer(future: "Future[Any]") -> Any:
    try:
        answer = future.result()
    except KafkaException as e:
        return e.args[0]
    # Of a leader that did not answer, librdkafka may give this offset, and no error
    is_unknown = getattr(answer, "offset", None) == OFFSET_INVALID
    return KafkaError(KafkaError._TIMED_OUT) if is_unknown else answer  # noqa: SLF001 - a public constant


def _is_missing(answer: object) -> bool:
    return isinstance(answer, KafkaError) and answer.name() in NO_ANSWER
