"""Questions to Kafka that no single broker holds up, and the rules by which all clients of kgs survive its silence.

A broker may be killed, frozen, without power, cut off in one direction or both, or slow by seconds. Most of these leave
its connections up: no answer comes on them, and no error either. No other part of kgs knows about it.

1. Requests, and the setup of connections, end after 8 s in every client (`client_config.TIME_OUTS`). Without it:
   librdkafka waits 60 s, until then takes the silent connection for up, and prefers it for further requests.
2. That is longer than a slow broker takes, say 5 s. Without it: its partitions would never be read, and no report to it
   would ever arrive.
3. A question without an answer is repeated by a new client every 0.75 s, up to five times. Without it: the client has
   chosen the silent broker and asks no other. Most questions go to the controller. With KRaft, each response names any
   broker as such, so that a new client may choose the silent one again.
4. The client that answers first is used from then on. Without it: every question waits for the silent broker again.
5. A client is only replaced by one that has answered. Without it: a new client has to connect first; with a slow leader
   that takes as long as the answer, which would come too late each time.
6. Requests that change something are sent once. Without it: the repetition fails because the first one succeeded.
7. While the connection to a partition's leader is down, a client looks for a new leader every second. librdkafka does
   this itself, given rule 1. Without it: it refreshes its metadata every few minutes.
8. The answer to one fetch has about 16 MB (`client_config.reading_client`). Without it: 50 MB take longer than rule 1
   allows on a link below 6 MB/s; the answer would be dropped and fetched again, for ever.
"""

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException

from kgs_core.adapters.kafka.clients import RotatingClient
from kgs_core.adapters.kafka.errors import NO_ANSWER
from kgs_core.errors import PortError, TransientError

REPEAT_S = 0.75
MOST_REPEATS = 5
_GRACE_S = 1.0  # for librdkafka to report itself that nobody answered
_Key = TypeVar("_Key", bound=Hashable)
_Client = TypeVar("_Client")
Question = Callable[[_Client, float], Mapping[_Key, "Future[Any]"]]
"""Request by a client with a time-out in seconds; it has a future for each of its subjects."""


def ask(
    clients: RotatingClient[_Client], question: Question[_Client, _Key], timeout_s: float, repeats: int = MOST_REPEATS
) -> dict[_Key, Any]:
    """Answer to each subject of a question: a result or a KafkaError.

    Args:
        clients: the client to ask, replaced by the one that answers.
        question: sends it.
        timeout_s: of the whole.
        repeats: maximum number of repetitions; 0 for requests that change something.

    Raises:
        TimeoutError: librdkafka did not even report a time-out.
        KafkaException: the request is refused.
        PortError: there is no client.
    """
    began_s = time.monotonic()
    attempts = [_Attempt.begin(clients.get(), question, timeout_s)]
    while True:
        left_s = began_s + timeout_s - time.monotonic()
        for each in attempts:
            if each.take() and each.is_answered:
                clients.keep(each.client)
                return each.found
        are_over, may_repeat = all(each.is_over for each in attempts), len(attempts) <= repeats and left_s > 0
        due_s = REPEAT_S * len(attempts) + began_s - time.monotonic()
        if may_repeat and (due_s <= 0 or are_over):
            try:
                attempts.append(_Attempt.begin(clients.another(), question, left_s))
            except PortError:  # no token now, say
                repeats = 0
        elif are_over:
            return max((each.found for each in attempts), key=_known)
        elif left_s + _GRACE_S <= 0:
            raise TimeoutError
        else:
            open_ = [each.open[-1][1] for each in attempts if not each.is_over]
            wait(open_, min(due_s if may_repeat else left_s + _GRACE_S, left_s + _GRACE_S), FIRST_COMPLETED)


def first(connect: Callable[[], _Client], discard: Callable[[_Client], object]) -> _Client:
    """The connection that is made first, where a client waits for the one address that it has chosen (rule 3).

    Args:
        connect: makes a connection or raises; called again every 0.75 s until one is there.
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
class _Attempt(Generic[_Client, _Key]):
    """One way a question was sent.

    Attributes:
        open: subjects without an answer yet. librdkafka answers all subjects of a request at once.
        found: the other subjects.
    """

    client: _Client
    open: list[tuple[_Key, "Future[Any]"]]
    found: dict[_Key, Any] = field(default_factory=dict)

    @classmethod
    def begin(cls, client: _Client, question: Question[_Client, _Key], timeout_s: float) -> "_Attempt[_Client, _Key]":
        return cls(client, list(question(client, timeout_s).items()))

    def take(self) -> bool:
        """Take in what has come; whether all has."""
        while self.open and self.open[-1][1].done():
            key, future = self.open.pop()
            try:
                answer = future.result()
            except KafkaException as e:
                answer = e.args[0]
            # Of a leader that did not answer, librdkafka may give this offset, and no error
            is_missing = getattr(answer, "offset", None) == OFFSET_INVALID
            self.found[key] = KafkaError(KafkaError._TIMED_OUT) if is_missing else answer  # noqa: SLF001 - a constant
        return self.is_over

    @property
    def is_over(self) -> bool:
        return not self.open

    @property
    def is_answered(self) -> bool:
        return _known(self.found) == len(self.found)


def _known(found: Mapping[Any, Any]) -> int:
    """Number of subjects that a broker has answered about."""
    return sum(not (isinstance(answer, KafkaError) and answer.name() in NO_ANSWER) for answer in found.values())
