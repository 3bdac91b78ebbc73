"""Gathering a batch: a client that is kept at exact positions, whichever way its records come. Nothing is committed."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPosition

from kgs_core.ingest.fetch.small_topics import MOST_PASSED_BYTES, Longs, taking_order
from kgs_core.ingest.fetch.topic_records import TopicRecords, records_of
from kgs_core.ingest.round.stops import StopCause
from kgs_core.kafka.errors import is_passing
from kgs_core.model import OffsetRange, TopicId, TopicPartition

if TYPE_CHECKING:
    from kgs_core.ingest.fetch.library import NativeClient

POLL_MESSAGES = 100_000
POLL_S = 0.05
LEARN_TIMEOUT_S = 1.0
SEEK_TIMEOUT_S = 1.0
FIRST_WAIT_SHARE = 0.25
"""Of `wait_time_s`: the wait for the first records of partitions that a client takes over. It has most of a second's
records of them at once, and is another consumer's successor: with a whole wait, a handover would take two."""
_NOWHERE = -1
_LOST = {"_AUTO_OFFSET_RESET", "_LOG_TRUNCATION", "OFFSET_OUT_OF_RANGE"}
_CORRUPT = {"_BAD_MSG", "_BAD_COMPRESSION", "_NOT_IMPLEMENTED", "INVALID_MSG"}


class UnreadableError(Exception):
    """Partitions of an exact range are in trouble, or give nothing: neither records nor an error."""

    def __init__(self, troubles: dict[TopicPartition, tuple[StopCause, str]]) -> None:
        super().__init__("; ".join(f"{tp}: {words}" for tp, (_, words) in troubles.items()))
        self.troubles = troubles


@dataclass(slots=True)
class Fetched:
    """Records and troubles of one call.

    Attributes:
        topics: topic -> its records.
        ranges: offsets covered; a range may hold no record (markers of transactions, compaction).
        troubles: partitions that cannot be read on, with librdkafka's words. Nothing of them past their range is taken.
        problems: other errors, for the log; librdkafka goes on trying by itself.
        waited_s: time in which the client had less than was wanted of it, and no thread of it was at work.
    """

    topics: dict[str, TopicRecords] = field(default_factory=dict)
    ranges: dict[TopicPartition, OffsetRange] = field(default_factory=dict)
    troubles: dict[TopicPartition, tuple[StopCause, str]] = field(default_factory=dict)
    problems: set[str] = field(default_factory=set)
    consumed_bytes: int = 0
    records: int = 0
    waited_s: float = field(default=0.0, compare=False)

    def of(self, topic: str) -> TopicRecords:
        """A topic's records, which may be none."""
        return self.topics.get(topic) or records_of([])


class FetchClient(ABC):
    """One client, the partitions assigned to it, and the offset that each will deliver next.

    Attributes:
        epochs: leader epoch of the record before a partition's start, where it is known: set before a call, it lets
            librdkafka find that the log was truncated and has grown past the start again.
        topic_ids: topic -> id of the one that the starts are of: set before a call, it keeps records of a deleted topic
            from becoming those of one made again under its name.
    """

    epochs: Mapping[TopicPartition, int] = MappingProxyType({})
    topic_ids: Mapping[str, TopicId] = MappingProxyType({})
    _ids_before: Mapping[str, TopicId] = MappingProxyType({})
    _has_moved = False

    def __init__(self, client: "NativeClient") -> None:
        self._client = client
        self._next: dict[tuple[str, int], int] = {}
        self._waiting_bytes = 0
        self._gathering_since: float | None = None
        self._are_small_waiting = False
        self._passed_bytes = 0
        self._record_bytes = 1000.0
        self._waited_s = 0.0

    def close(self) -> None:
        """End the client."""
        self._drop_held()
        self._client.close()

    def gather(
        self,
        start: Mapping[TopicPartition, int],
        batch_bytes: int,
        wait_time_s: float,
        slice_s: float,
        is_interrupted: Callable[[], bool] = lambda: False,
    ) -> Fetched:
        """At most `batch_bytes` (but at least one record), or what came within `wait_time_s` of the first record.

        A batch that is full before leaves small topics to the next one (`small_topics`), until `wait_time_s` is over.
        Partitions that are new here are waited for less (`FIRST_WAIT_SHARE`).

        Returns after `slice_s` at the latest, or soon after `is_interrupted` says so; a batch that is not due by then
        is kept here, and the next call with the same start goes on with it. Then, and when there is nothing, no range
        is returned.
        """
        self._has_moved |= self._position(start)
        if not start:
            return Fetched()
        slice_end = time.monotonic() + slice_s
        while self._waiting_bytes < batch_bytes:
            due = slice_end if self._gathering_since is None else self._gathering_since + wait_time_s
            wanted = int((batch_bytes - self._waiting_bytes) / self._record_bytes) + 1
            timeout_s = min(max(min(due, slice_end) - time.monotonic(), 0.0), POLL_S)
            count = self._timed_poll(min(wanted, POLL_MESSAGES), timeout_s, at_once=wait_time_s == 0)
            if count and (self._gathering_since is None or self._has_moved):
                # What is taken over is unread since another consumer's last batch
                since = time.monotonic() - (wait_time_s * (1 - FIRST_WAIT_SHARE) if self._has_moved else 0.0)
                self._gathering_since = min(since, self._gathering_since or since)
                self._has_moved = False
            if (
                time.monotonic() >= min(slice_end, (self._gathering_since or slice_end) + wait_time_s)
                or is_interrupted()
            ):
                break
        is_due = self._gathering_since is not None and time.monotonic() >= self._gathering_since + wait_time_s
        is_due = is_due or self._passed_bytes > MOST_PASSED_BYTES
        waited_s, self._waited_s = self._waited_s, 0.0
        if self._waiting_bytes < batch_bytes and not is_due:
            return Fetched(waited_s=waited_s)
        fetched = self._batch(start, batch_bytes, is_due=is_due)
        fetched.waited_s = waited_s
        if not self._are_small_waiting:
            self._gathering_since = time.monotonic() if self._has_held() else None
        return fetched

    def _batch(self, start: Mapping[TopicPartition, int], batch_bytes: int, *, is_due: bool) -> Fetched:
        fetched = Fetched()
        try:
            held, sizes = self._held_events()
            order, most = taking_order(held, sizes, batch_bytes, is_due=is_due)
            self._are_small_waiting = most < len(held)
            if order is not None:
                self._reorder(order)
            self._take(fetched, batch_bytes, most)
        except BaseException:  # what it had taken is read again
            self._begin_anew()
            raise
        self._passed_bytes = self._passed_bytes + fetched.consumed_bytes if self._are_small_waiting else 0
        if fetched.records:
            self._record_bytes = max(1.0, fetched.consumed_bytes / fetched.records)
        fetched.ranges = {tp: OffsetRange(o, self._next[tp]) for tp, o in start.items() if self._next[tp] > o}
        # librdkafka says once that a partition is in trouble, and then is silent or goes on behind it
        self._next |= dict.fromkeys(fetched.troubles, _NOWHERE)
        return fetched

    def _timed_poll(self, count: int, timeout_s: float, *, at_once: bool) -> int:
        began_s, began_cpu_s = time.monotonic(), time.process_time()
        found = self._poll(count, timeout_s, at_once=at_once)
        if found < count:  # else all was there; a client that is busy (with decompressing, say) does not wait for Kafka
            idle_s = time.monotonic() - began_s - (time.process_time() - began_cpu_s)
            self._waited_s += max(0.0, idle_s)
        return found

    def received(self) -> dict[int, int]:
        """Bytes that came over the wire from each broker, since the last call; none where nobody counts them."""
        return {}

    @abstractmethod
    def _poll(self, count: int, timeout_s: float, *, at_once: bool) -> int:
        """Hold at most `count` events more: those that come within `timeout_s`, or `at_once` when the first has come.

        Otherwise the client sleeps until there are as many: a loop that takes them one by one as they arrive would
        fight with the client's own threads for the queue, and for a core.
        """

    @abstractmethod
    def _held_events(self) -> tuple[Longs, Longs]:
        """Of each held event the number of its topic, -1 where it has none, and its bytes."""

    @abstractmethod
    def _reorder(self, order: Longs) -> None:
        """Put the held events into this order."""

    @abstractmethod
    def _take(self, fetched: Fetched, batch_bytes: int, most: int) -> None:
        """Move held events to a result, up to the size of a batch, and go on in `_next`; the rest stays for the next.

        Only the first `most` of them may be taken. Of a partition in trouble nothing more is taken.
        """

    @abstractmethod
    def _has_held(self) -> bool:
        """Whether events are held."""

    @abstractmethod
    def _drop_held(self) -> None:
        """Forget held events."""

    @abstractmethod
    def _expect(self, tps: Sequence[TopicPartition], kept: Collection[tuple[str, int]]) -> None:
        """Prepare for the events of these partitions, ascending; of what is held only that of `kept` stays."""

    def _position(self, start: Mapping[TopicPartition, int]) -> bool:
        """Make the client deliver each partition from its start; whether it would not have done so anyway.

        What the client has fetched ahead of partitions that it delivers from there anyway, it keeps.
        """
        before, self._next = self._next, {}  # whatever fails from here on, the next call assigns all
        ids, self._ids_before = self._ids_before, self.topic_ids
        others = {topic for topic in {tp.topic for tp in start} if ids.get(topic) != self.topic_ids.get(topic)}
        if before == dict(start) and not others:
            self._next = before
            return False
        moved = {tp: offset for tp, offset in start.items() if before.get(tp) != offset or tp.topic in others}
        self._learn({tp.topic for tp in start} - {topic for topic, _ in before})
        positions = [KafkaPosition(tp.topic, tp.partition, offset) for tp, offset in sorted(moved.items())]
        if before:
            if left := sorted(tp for tp in before if tp in moved or tp not in start):
                self._client.incremental_unassign([KafkaPosition(*tp) for tp in left])
            if positions:
                self._client.incremental_assign(positions)
        else:
            self._client.assign(positions)
        self._check_epochs(moved)
        self._expect(sorted(start), before.keys() & start.keys() - moved.keys())
        self._next = {(tp.topic, tp.partition): offset for tp, offset in start.items()}
        if not self._has_held():
            self._gathering_since = None
        return bool(moved)

    def _check_epochs(self, start: Mapping[TopicPartition, int]) -> None:
        """Have librdkafka compare known epochs with the log: it does so at a seek, and not at an assignment.

        A seek is refused until the assignment has come through, milliseconds later. Where that takes longer than
        anybody would wait (no leader, say), the partition is read without the check.
        """
        deadline = time.monotonic() + SEEK_TIMEOUT_S
        for tp in sorted(start.keys() & self.epochs.keys()):
            position = KafkaPosition(tp.topic, tp.partition, start[tp], leader_epoch=self.epochs[tp])
            while True:
                try:
                    self._client.seek(position)
                    break
                except KafkaException:
                    if time.monotonic() > deadline:
                        break
                    time.sleep(0.001)

    def _learn(self, topics: set[str]) -> None:
        """Ask where new topics are: a client that is at work finds out by itself only once a second."""
        if not topics:
            return
        try:
            # One question in any case: each would wait for the fetch that is under way.
            self._client.list_topics(topics.pop() if len(topics) == 1 else None, timeout=LEARN_TIMEOUT_S)
        except KafkaException:
            return  # it goes on asking by itself

    def _note_error(self, fetched: Fetched, tp: TopicPartition, error: KafkaError | None) -> None:
        if error is None:
            return
        trouble = trouble_of(error)
        if tp in self._next and trouble is not None:
            fetched.troubles.setdefault(tp, (trouble, error.str()))
        else:
            fetched.problems.add(f"{error.name()}: {error.str()}")

    def _begin_anew(self) -> None:
        """Have the next call assign all its partitions, whatever it asks for."""
        self._next = {}


def trouble_of(error: KafkaError) -> StopCause | None:
    """What an error of a partition means for it; None: librdkafka tries again, which may help."""
    name = error.name()
    if name in _LOST:
        return StopCause.OUT_OF_RANGE
    if name in _CORRUPT:
        return StopCause.CORRUPT
    return None if name == "_PARTITION_EOF" or is_passing(error) else StopCause.DENIED
