"""The controller's writer: Target, Assignments and tombstones, in one transaction only the newest controller ends."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as ClientMessage

from kgs_core.errors import FencedError, PermanentError, PortError, ProtocolError, TransientError
from kgs_core.group.protocol import MemberAssignment, Message, Received, Target, Tombstone
from kgs_core.group.protocol.codec import encode
from kgs_core.group.topics.topics import MAX_RECORD_BYTES, GroupTopic, GroupTopics, extra_time_s, transactional_id_of
from kgs_core.group.topics.write_id import WriteIds
from kgs_core.kafka.client_config import admin_client
from kgs_core.kafka.errors import ConnectionWatch
from kgs_core.kafka.producers import make_producer, serve, write_error
from kgs_core.model import TopicPartition
from kgs_core.system.failpoints import failpoint
from kgs_core.system.secret_files import SecretFiles

TRANSACTION_TIMEOUT_S = 27.0
"""And `GroupTopics.extra_time_s`."""
WRITE_TIMEOUT_S = 8.0
"""Of a whole write or a fence, and `extra_time_s` of the partitions that it goes to. Then a new client goes on."""
PATIENT_TIMEOUT_S = 25.0
"""Of the next one after one without an answer: a slow broker has to be connected to, then come three requests, one
after the other, 5 s each (rule 2 of `silent_brokers`); an older controller's open transaction is ended first. Less than
the transaction's, so that we give up before the coordinator does."""
_ABORT_TIMEOUT_S = 1.0
_Written = Target | MemberAssignment | Tombstone
_Record = tuple[int, bytes, bytes | None]
_PURGED = frozenset({"_PURGE_INFLIGHT", "_PURGE_QUEUE"})
_FENCED = frozenset({"_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"})


@dataclass(slots=True)
class _Sending:
    """Records of one transaction.

    Attributes:
        records: partition, key and value of each message.
        queued: how many of the records the client has taken.
        received: index of a message -> as it stands in its topic.
        failed: a message that did not arrive, and why.
        errors: names of all errors so far.
    """

    messages: Sequence[_Written]
    records: Sequence[_Record]
    began: float
    timeout_s: float
    queued: int = 0
    received: dict[int, Received[_Written]] = field(default_factory=dict)
    failed: tuple[_Written, KafkaError] | None = None
    errors: set[str] = field(default_factory=set)

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.began

    @property
    def left_s(self) -> float:
        return max(0.1, self.timeout_s - self.age_s)

    @property
    def is_delivered(self) -> bool:
        return len(self.received) == len(self.records)

    def note(self, index: int, error: KafkaError | None, delivered: ClientMessage) -> None:
        """Takes in the answer about one message."""
        message = self.messages[index]
        if error is None:
            self.received[index] = Received(message, int(delivered.offset() or 0), int(delivered.timestamp()[1]))
        else:
            # The others are purged with the one that is to blame, some of them before it is heard of
            if self.failed is None or self.failed[1].name() in _PURGED:
                self.failed = message, error
            self.errors.add(error.name())


class KafkaControllerWriter:
    """Port `ControllerWriter` on Kafka. For one thread.

    Killed before the commit, nothing of a write is ever visible: the next controller's fence, or the transaction's
    time-out, aborts it. Killed after it, all of it is. Offsets are known before the commit, once all is delivered.

    A write that fails takes the right to write away: `fence`, read to the end, decide again. Also where the abort is
    known: Kafka may forget its marker in a partition (docs/adr/0024), where the next write of the same epoch would join
    what was aborted, and commit it.
    """

    def __init__(self, topics: GroupTopics) -> None:
        settings = topics.settings
        self._topics = topics
        self._topic = topics.name(GroupTopic.ASSIGNMENTS)
        self._who = f"controller of group {settings.group}"
        self._where = settings.kafka.bootstrap_servers
        self._watch = ConnectionWatch()
        self._files = SecretFiles({})
        self._producer: Producer | None = None
        self._ids = WriteIds()
        self._is_patient = False
        self._fenced: FencedError | None = None
        self._transaction_timeout_s = TRANSACTION_TIMEOUT_S + topics.extra_time_s
        longest_s = min(PATIENT_TIMEOUT_S + topics.extra_time_s, self._transaction_timeout_s)
        client = admin_client(settings)
        self._config: dict[str, Any] = {
            **client,
            "transactional.id": transactional_id_of(settings),
            "transaction.timeout.ms": round(self._transaction_timeout_s * 1000),
            "message.timeout.ms": round(longest_s * 1000),
            "message.max.bytes": MAX_RECORD_BYTES,
            "compression.type": "lz4",
            "linger.ms": 0,
            # More than a transaction's time-out is refused by the client, whoever has set it
            "socket.timeout.ms": round(
                min(longest_s * 1000, int(client["socket.timeout.ms"]) + topics.extra_time_s * 1000)
            ),
            "error_cb": self._watch.note,
        }

    def fence(self) -> None:
        """See `ControllerWriter`. When it returns, every older write is over: to be seen now, or never.

        Raises:
            FencedError: a newer controller has taken the right to write from this one before. Final.
            UnsafeError: a topic was made again since it was opened.
            TransientError: Kafka does not answer.
            PermanentError: refused.
        """
        self._producer = None
        if self._fenced is not None:
            raise self._fenced
        self._topics.check()
        began = time.monotonic()
        self._files = SecretFiles(self._config)
        producer = make_producer(self._where, self._config)
        try:
            producer.init_transactions(self._timeout_s)
        except KafkaException as e:
            self._is_patient = not self._is_patient
            cause = self._watch.cause_since(began)
            raise write_error(self._where, f"{self._who}: fence", e.args[0], cause) from e
        self._topics.written.clear()
        self._ids.begin_series()
        self._producer = producer

    def write(
        self,
        target: Target | None,
        assignments: Sequence[MemberAssignment],
        tombstones: Sequence[Tombstone],
    ) -> Sequence[Received[Message]]:
        """See `ControllerWriter`.

        Raises:
            FencedError: a newer controller has the right to write. Final.
            UnsafeError: a topic was made again since it was opened.
            TransientError: not written, or nothing is known of the result.
            PermanentError: a message is too large, or for a consumer without a partition, or Kafka refuses.
        """
        messages: list[_Written] = [*([target] if target is not None else []), *assignments, *tombstones]
        if not messages:
            return []
        if self._fenced is not None:
            raise self._fenced
        if self._producer is None:
            raise TransientError(f"{self._who}: it has no right to write: fence, read to the end, decide again")
        if self._files.have_changed():
            self._producer = None
            raise TransientError(f"{self._who}: its secrets have changed: fence, read to the end, decide again")
        self._topics.check()
        records = [self._record(message) for message in messages]
        # Taken out until the transaction is known to be over: whatever ends this call early must not leave one open
        # behind a writer that looks fit
        producer, self._producer = self._producer, None
        spread = len({partition for partition, _, _ in records})
        sending = _Sending(messages, records, time.monotonic(), self._timeout_s + extra_time_s(spread))
        try:
            producer.begin_transaction()
            self._queue(producer, sending)
            serve(producer.flush, sending.left_s)
            if not sending.is_delivered:
                raise self._give_up(producer, sending, None)
            failpoint("in-transaction")
            producer.commit_transaction(sending.left_s)
        except KafkaException as e:
            raise self._give_up(producer, sending, e.args[0]) from e
        self._producer, self._is_patient = producer, sending.age_s > WRITE_TIMEOUT_S / 2
        self._note_written(sending)
        return [sending.received[index] for index in range(len(messages))]

    @property
    def _timeout_s(self) -> float:
        return PATIENT_TIMEOUT_S if self._is_patient else WRITE_TIMEOUT_S

    def close(self) -> None:
        """Give the right to write away; an open transaction ends by its time-out."""
        self._producer = None

    def _queue(self, producer: Producer, sending: _Sending) -> None:
        headers = self._ids.next_headers()
        for index, (partition, key, value) in enumerate(sending.records):
            noted = partial(sending.note, index)
            producer.produce(self._topic, value, key, partition, on_delivery=noted, headers=headers)
            sending.queued += 1

    def _note_written(self, sending: _Sending) -> None:
        for index, (partition, _, _) in enumerate(sending.records):
            tp = TopicPartition(self._topic, partition)
            self._topics.written[tp] = sending.received[index].offset, time.monotonic()

    def _record(self, message: _Written) -> _Record:
        try:
            return self._partition(message), *encode(message)
        except ProtocolError as e:
            raise PermanentError(f"{self._who}: write {_named(message)}: {e}") from e

    def _partition(self, message: _Written) -> int:
        if isinstance(message, Target):
            return 0
        return self._topics.queue(message.member.consumer)

    def _give_up(self, producer: Producer, sending: _Sending, error: KafkaError | None) -> PortError:
        self._ids.begin_series()
        self._topics.written.clear()  # what is open from there on may have records of this write in it
        is_committing = sending.is_delivered and error is not None and not error.txn_requires_abort()
        if error is not None:
            sending.errors.add(error.name())
        if not is_committing:
            try:
                producer.abort_transaction(_ABORT_TIMEOUT_S)
            except KafkaException as e:
                sending.errors.add(e.args[0].name())
        result = "it may be written or not: fence, read to the end, decide again" if is_committing else "not written"
        if sending.errors & _FENCED:
            return self._fenced_out(sending.age_s, result)
        what, cause = f"{self._who}: write", self._watch.cause_since(sending.began)
        if sending.failed is not None:
            message, error = sending.failed
            what = f"{what} {_named(message)}"
        elif sending.queued < len(sending.records):
            what = f"{what} {_named(sending.messages[sending.queued])}"
        if error is None:
            self._is_patient = True
            return TransientError(f"{what}: no answer in {sending.timeout_s:g} s: {result}")
        failure = write_error(self._where, what, error, cause)
        return failure if isinstance(failure, PermanentError) else TransientError(f"{failure}: {result}")

    def _fenced_out(self, age_s: float, result: str) -> PortError:
        if age_s >= self._transaction_timeout_s:
            # The coordinator itself ends and fences a transaction of this age: no proof that somebody else is there
            return TransientError(
                f"{self._who}: its transaction was open for {age_s:.0f} s, longer than the "
                f"{self._transaction_timeout_s:g} s that it may be: {result}"
            )
        self._fenced = FencedError(f"{self._who}: a newer controller has taken over: this one ends; nothing to fix")
        return self._fenced


def _named(message: _Written) -> str:
    if isinstance(message, Target):
        return f"Target of {len(message.assignment)} partitions"
    return f"{type(message).__name__} of {message.member}"
