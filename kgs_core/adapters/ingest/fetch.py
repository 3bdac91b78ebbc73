"""Reading Kafka inside a Spark Python worker: one long-lived client, exact positions, nothing committed.

Spark re-uses its Python workers, so a module-level client goes on prefetching between batches. It is a cache and no
more: when the worker dies, the next one starts from the positions that the request names.
"""

import gc
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import cast

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPosition

from kgs_core.adapters.kafka.errors import is_passing
from kgs_core.adapters.kafka.records import PARTITION_END, Record, arrived, payload_bytes, record_bytes
from kgs_core.consumer.round.stops import StopCause
from kgs_core.model import OffsetRange, TopicPartition

POLL_MESSAGES = 100_000
POLL_S = 0.05
LEARN_TIMEOUT_S = 1.0
SEEK_TIMEOUT_S = 1.0
UNUSED_S = 600.0
_LOST = {"_AUTO_OFFSET_RESET", "_LOG_TRUNCATION", "OFFSET_OUT_OF_RANGE"}
_CORRUPT = {"_BAD_MSG", "_BAD_COMPRESSION", "_NOT_IMPLEMENTED", "INVALID_MSG"}


class UnreadableError(Exception):
    """A partition of an exact range is in trouble."""

    def __init__(self, tp: TopicPartition, trouble: StopCause, words: str) -> None:
        super().__init__(f"{tp}: {words}")
        self.tp = tp
        self.trouble = trouble
        self.words = words


class SilentError(Exception):
    """Partitions of an exact range give nothing: neither records nor an error."""

    def __init__(self, tps: Collection[TopicPartition], words: str) -> None:
        super().__init__(words)
        self.tps = tuple(tps)


@dataclass(slots=True)
class Fetched:
    """Records and troubles of one call.

    Attributes:
        messages: topic -> its records, ascending by offset within each partition.
        ranges: offsets covered; a range may hold no record (markers of transactions, compaction).
        troubles: partitions that cannot be read on, with librdkafka's words. Nothing of them past their range is taken.
        problems: other errors, for the log; librdkafka goes on trying by itself.
    """

    messages: dict[str, list[Record]] = field(default_factory=dict)
    ranges: dict[TopicPartition, OffsetRange] = field(default_factory=dict)
    troubles: dict[TopicPartition, tuple[StopCause, str]] = field(default_factory=dict)
    problems: set[str] = field(default_factory=set)
    consumed_bytes: int = 0
    records: int = 0


class FetchSession:
    """One client, the partitions assigned to it, and the offset that each will deliver next.

    Attributes:
        epochs: leader epoch of the record before a partition's start, where it is known: set before a call, it lets
            librdkafka find that the log was truncated and has grown past the start again.
    """

    epochs: Mapping[TopicPartition, int] = MappingProxyType({})

    def __init__(self, config: Mapping[str, str | int | bool]) -> None:
        self._consumer = Consumer(dict(config))
        self._next: dict[tuple[str, int], int] = {}
        self._held: list[Record] = []
        self._gathering_since: float | None = None
        self._record_bytes = 1000.0

    def close(self) -> None:
        """End the client."""
        self._consumer.close()

    def gather(
        self,
        start: Mapping[TopicPartition, int],
        batch_bytes: int,
        wait_time_s: float,
        slice_s: float,
        is_interrupted: Callable[[], bool] = lambda: False,
    ) -> Fetched:
        """At most `batch_bytes` (but at least one record), or what came within `wait_time_s` of the first record.

        Returns after `slice_s` at the latest, or soon after `is_interrupted` says so; a batch that is not due by then
        is kept here, and the next call with the same start goes on with it. Then, and when there is nothing, no range
        is returned.
        """
        self._position(start)
        if not start:
            return Fetched()
        slice_end = time.monotonic() + slice_s
        waiting = payload_bytes(self._held)
        while waiting < batch_bytes:
            due = slice_end if self._gathering_since is None else self._gathering_since + wait_time_s
            wanted = int((batch_bytes - waiting) / self._record_bytes) + 1
            new = self._poll(wanted, min(due, slice_end) - time.monotonic(), at_once=wait_time_s == 0)
            self._held += new
            waiting += payload_bytes(new)
            if new and self._gathering_since is None:
                self._gathering_since = time.monotonic()
            if (
                time.monotonic() >= min(slice_end, (self._gathering_since or slice_end) + wait_time_s)
                or is_interrupted()
            ):
                break
        is_due = self._gathering_since is not None and time.monotonic() >= self._gathering_since + wait_time_s
        if waiting < batch_bytes and not is_due:
            return Fetched()
        fetched = self._take(start, batch_bytes)
        self._gathering_since = time.monotonic() if self._held else None
        return fetched

    def read_exact(
        self, ranges: Mapping[TopicPartition, OffsetRange], timeout_s: float, chunk_bytes: int = 8_000_000
    ) -> Iterator[list[Record]]:
        """Every record of exactly these ranges, in chunks. Called again with the same ranges it gives the same rows.

        Raises:
            UnreadableError: a partition cannot be read on.
            SilentError: nothing has come for `timeout_s`.
        """
        self._position({tp: r.start for tp, r in ranges.items()})
        ends = {tp: r.end for tp, r in ranges.items()}
        deadline = time.monotonic() + timeout_s
        chunk: list[Record] = []
        events, self._held = self._held, []
        while True:
            for message in events:
                self._sort_in(message, ends, chunk)
            missing = {tp: f"{self._next[tp]} to {end - 1}" for tp, end in ends.items() if self._next[tp] < end}
            if not missing:
                break
            if time.monotonic() > deadline:
                offsets = ", ".join(f"{tp}: {wanted}" for tp, wanted in missing.items())
                raise SilentError(missing, f"nothing came for {timeout_s:g} s, still to read: {offsets}")
            if payload_bytes(chunk) >= chunk_bytes:
                yield chunk
                chunk = []
            # Exactly as many as are missing, so that the call returns with the last of them.
            events = self._poll(sum(max(0, end - self._next[tp]) for tp, end in ends.items()), POLL_S, at_once=False)
            if events:
                deadline = time.monotonic() + timeout_s
        if chunk:
            yield chunk

    def _sort_in(self, message: Record, ends: Mapping[TopicPartition, int], chunk: list[Record]) -> None:
        """Put one event into the chunk, or keep it for the next batch if it lies at or past its partition's end."""
        tp, error = TopicPartition(message.topic(), message.partition()), message.error()
        if error is not None and tp in ends and (trouble := trouble_of(error)) is not None:
            words = f"offset {self._next[tp]}: {error.str()}"
            self._begin_anew()
            raise UnreadableError(tp, trouble, words)
        if tp not in ends or (error is not None and error.code() != PARTITION_END):
            return
        if message.offset() < ends[tp]:
            self._next[tp] = self._after(message, tp)
            if error is None:
                chunk.append(message)
            return
        # Events come in order, so whatever lies past the end says that all before it has been delivered.
        self._next[tp] = ends[tp]
        if error is None or message.offset() > ends[tp]:
            self._held.append(message)

    def _after(self, message: Record, tp: tuple[str, int]) -> int:
        """The next offset after an event: a record, or the end of the partition (past markers of transactions)."""
        offset: int = message.offset()
        return offset + 1 if message.error() is None else max(self._next[tp], offset)

    def _position(self, start: Mapping[TopicPartition, int]) -> None:
        """Make the client deliver each partition from its start; free of cost when it would do so anyway."""
        if self._next == dict(start):
            return
        self._learn({tp.topic for tp in start} - {topic for topic, _ in self._next})
        self._consumer.assign([KafkaPosition(tp.topic, tp.partition, offset) for tp, offset in sorted(start.items())])
        self._check_epochs(start)
        self._next = {(tp.topic, tp.partition): offset for tp, offset in start.items()}
        self._held = []
        self._gathering_since = None

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
                    self._consumer.seek(position)
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
            self._consumer.list_topics(topics.pop() if len(topics) == 1 else None, timeout=LEARN_TIMEOUT_S)
        except KafkaException:
            return  # it goes on asking by itself

    def _poll(self, wanted: int, timeout_s: float, *, at_once: bool) -> list[Record]:
        """At most `wanted` events: those that come within `timeout_s`, or `at_once` when the first has come.

        Otherwise the client sleeps until there are as many: a loop that takes them one by one as they arrive would
        fight with the client's own threads for the queue, and for a core.
        """
        count, timeout_s = min(wanted, POLL_MESSAGES), max(timeout_s, 0.0)
        if not at_once:
            return cast("list[Record]", self._consumer.consume(count, min(timeout_s, POLL_S)))
        return arrived(self._consumer, count, min(timeout_s, POLL_S))

    def _take(self, start: Mapping[TopicPartition, int], batch_bytes: int) -> Fetched:
        """Move held events to a result, up to the size of a batch; the rest stays for the next."""
        fetched = Fetched()
        held, self._held = self._held, []
        for i, message in enumerate(held):
            tp, error = (message.topic(), message.partition()), message.error()  # a plain tuple: this loop is hot
            if tp not in start or tp in fetched.troubles or (error is not None and error.code() != PARTITION_END):
                self._note_error(fetched, TopicPartition(*tp), error)
                continue
            if error is None:
                size = record_bytes(message)
                if fetched.records and fetched.consumed_bytes + size > batch_bytes:
                    self._held = held[i:]
                    break
                fetched.messages.setdefault(tp[0], []).append(message)
                fetched.consumed_bytes += size
                fetched.records += 1
            self._next[tp] = self._after(message, tp)
        if fetched.records:
            self._record_bytes = max(1.0, fetched.consumed_bytes / fetched.records)
        fetched.ranges = {tp: OffsetRange(o, self._next[tp]) for tp, o in start.items() if self._next[tp] > o}
        if fetched.troubles:
            self._begin_anew()
        return fetched

    def _note_error(self, fetched: Fetched, tp: TopicPartition, error: KafkaError | None) -> None:
        if error is None:
            return
        trouble = trouble_of(error)
        if tp in self._next and trouble is not None:
            fetched.troubles.setdefault(tp, (trouble, error.str()))
        else:
            fetched.problems.add(f"{error.name()}: {error.str()}")

    def _begin_anew(self) -> None:
        """Have the next call assign all its partitions, whatever it asks for.

        librdkafka says once that a partition is in trouble, and then is silent or goes on behind it.
        """
        self._next = {}


def trouble_of(error: KafkaError) -> StopCause | None:
    """What an error of a partition means for it; None: librdkafka tries again, which may help."""
    name = error.name()
    if name in _LOST:
        return StopCause.OUT_OF_RANGE
    if name in _CORRUPT:
        return StopCause.CORRUPT
    return None if name == "_PARTITION_EOF" or is_passing(error) else StopCause.DENIED


_sessions: dict[str, tuple[object, FetchSession]] = {}
_used_at: dict[str, float] = {}


def session(
    name: str, config: Mapping[str, str | int | bool], make: Callable[..., FetchSession] = FetchSession
) -> FetchSession:
    """This worker's client of that name; made anew when the configuration has changed.

    One that has not been asked for in a while is ended: each has threads and records fetched ahead, and topics come
    and go in the life of a worker.
    """
    now = time.monotonic()
    _used_at[name] = now
    for other in [n for n in _sessions if n != name and now - _used_at.get(n, now) > UNUSED_S]:
        _sessions.pop(other)[1].close()
        del _used_at[other]
    key = tuple(sorted((k, str(v)) for k, v in config.items()))
    if name in _sessions and _sessions[name][0] == key:
        return _sessions[name][1]
    if name in _sessions:
        _sessions.pop(name)[1].close()
    _sessions[name] = (key, make(config))
    # pyarrow loads pandas with its first array, which takes a second: not in the first batch, and before what follows.
    pa.array([b""])
    # Spark's daemon has Python collect all garbage after every task. What is loaded by now is none, and left out.
    gc.collect()
    gc.freeze()
    return _sessions[name][1]
