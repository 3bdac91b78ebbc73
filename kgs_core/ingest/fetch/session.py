"""Native fetch: batches of librdkafka's messages copied into Arrow columns by compiled loops.

A message is ours from `consume` on, and is freed once: by `fill` with the batch that it came to an end in, or by
`free` when what is held is dropped. Until then it may be held over into the next batch.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from confluent_kafka import KafkaError

from kgs_core.accel import layout
from kgs_core.accel.compiled import address_of, machine_code
from kgs_core.ingest.fetch.columns import TopicColumns
from kgs_core.ingest.fetch.fetch_client import POLL_MESSAGES, POLL_S, FetchClient, Fetched, UnreadableError
from kgs_core.ingest.fetch.library import NativeClient, calls, message_error, message_topic
from kgs_core.ingest.fetch.small_topics import Longs
from kgs_core.ingest.round.stops import StopCause
from kgs_core.model import OffsetRange, TopicPartition

_LOOPS = "kgs_core.accel.loops"
_ROOM = 1024
_IN_TROUBLE = -1
_NO_LIMIT = 2**62
_SIZES = (layout.VALUE_BYTES, layout.KEY_BYTES, layout.HEADER_BYTES)


class NativeFetchSession(FetchClient):
    """A client without a Python object for each record.

    Raises:
        PermanentError: this librdkafka does not fit, or the loops cannot be compiled or kept.
        KafkaException: a setting is refused.
    """

    def __init__(self, config: Mapping[str, str | int | bool]) -> None:
        self._loops = machine_code(_LOOPS)
        self._calls = calls()
        self._call_address = address_of(np.frombuffer(self._calls, np.int64))
        super().__init__(NativeClient(config))
        self._messages: Longs = np.zeros(_ROOM, np.int64)
        self._notes: Longs = np.zeros((_ROOM, layout.NOTE), np.int64)
        self._count = 0
        self._tps: list[TopicPartition] = []
        self._expect([], ())

    def received(self) -> dict[int, int]:
        """See `FetchClient`."""
        return {} if self._client.received is None else self._client.received.take()

    def read_exact(
        self, ranges: Mapping[TopicPartition, OffsetRange], timeout_s: float, chunk_bytes: int = 8_000_000
    ) -> Iterator[Fetched]:
        """Every record of exactly these ranges, in chunks. Called again with the same ranges it gives the same rows.

        Raises:
            UnreadableError: a partition cannot be read on, or nothing has come for `timeout_s`.
        """
        self._position({tp: r.start for tp, r in ranges.items()})
        if not ranges:
            return
        ends = np.array([ranges[tp].end for tp in self._tps], np.int64)
        deadline = time.monotonic() + timeout_s
        while True:
            following, has_trouble, most = self._sort_past_last(ends)
            missing = np.maximum(ends - following, 0)
            if has_trouble or not missing.any() or self._waiting_bytes >= chunk_bytes:
                if (fetched := self._take_exact(most)).records:
                    yield fetched
                if not missing.any():
                    break
            if time.monotonic() > deadline:
                silent = {tp: i for i, tp in enumerate(self._tps) if missing[i]}
                offsets = ", ".join(f"{tp}: {following[i]} to {ends[i] - 1}" for tp, i in silent.items())
                words = f"nothing came for {timeout_s:g} s, still to read: {offsets}"
                raise UnreadableError(dict.fromkeys(silent, (StopCause.NO_ANSWER, words)))
            # Exactly as many as are missing, so that the call returns with the last of them.
            if self._poll(min(int(missing.sum()), POLL_MESSAGES), POLL_S, at_once=False):
                deadline = time.monotonic() + timeout_s
        # Where a range ends with markers, what lies past its end says that all before it has come.
        self._next = {(tp.topic, tp.partition): r.end for tp, r in ranges.items()}

    def _take_exact(self, most: int) -> Fetched:
        fetched = Fetched()
        self._take(fetched, _NO_LIMIT, most)
        for tp, (trouble, words) in fetched.troubles.items():
            offset = self._next[tp]
            self._begin_anew()
            raise UnreadableError({tp: (trouble, f"offset {offset}: {words}")})
        return fetched

    def _sort_past_last(self, ends: Longs) -> tuple[Longs, bool, int]:
        """Put what lies past its partition's end behind the rest, for the next call.

        Returns:
            The next offset of each partition once all that is held is taken, whether an error is held, and how many
            events lie before their ends.
        """
        notes = self._notes[: self._count]
        slots, codes, at = notes[:, layout.SLOT], notes[:, layout.CODE], notes[:, layout.AT]
        is_end = codes == layout.PARTITION_END
        is_read = (slots != layout.NOBODY) & ((codes == 0) | is_end)
        after = at + ~is_end
        following = np.array([self._next[tp] for tp in self._tps], np.int64)
        np.maximum.at(following, slots[is_read], after[is_read])
        is_past = is_read & (after > np.append(ends, 0)[slots])  # NOBODY names the last
        self._reorder(np.argsort(is_past, kind="stable"))
        return following, bool(((codes != 0) & ~is_end).any()), int((~is_past).sum())

    def _expect(self, tps: Sequence[TopicPartition], kept: Collection[tuple[str, int]]) -> None:
        """Number the partitions as their messages name them: by the topic's address."""
        self._drop_others(kept)
        self._client.forget_topics()
        names = sorted({tp.topic for tp in tps})
        number = {name: i for i, name in enumerate(names)}
        slots = sorted((self._client.topic_address(tp.topic), tp.partition, tp) for tp in tps)
        self._names = names
        self._tps = [TopicPartition(*tp) for _, _, tp in slots]
        flat = [len(slots), *(n for topic, partition, _ in slots for n in (topic, partition))]
        self._slots: Longs = np.array(flat, np.int64)
        self._topic_of: Longs = np.array([number[tp.topic] for tp in self._tps], np.int64)
        self._waiting_bytes = self._look(0)

    def _drop_others(self, kept: Collection[tuple[str, int]]) -> None:
        """Free what is held of other partitions than these."""
        stays = np.array([*(tp in kept for tp in self._tps), False])  # NOBODY names the last
        others = ~stays[self._notes[: self._count, layout.SLOT]]
        self._reorder(np.argsort(others, kind="stable"))
        count, self._count = self._count, self._count - int(others.sum())
        self._loops["free"](address_of(self._messages), self._count, count, self._call_address)

    def _look(self, first: int) -> int:
        """Note what the held messages from `first` on are; their bytes."""
        places = address_of(self._messages), first, self._count
        return self._loops["look"](*places, address_of(self._notes), address_of(self._slots), self._call_address)

    def _poll(self, count: int, timeout_s: float, *, at_once: bool) -> int:
        self._make_room(count)
        first = self._count
        into = address_of(self._messages) + 8 * first
        if at_once:
            found = self._client.consume(1, timeout_s, into)
            if found and count > 1:
                found += self._client.consume(count - 1, 0, into + 8)
        else:
            found = self._client.consume(count, timeout_s, into)
        self._count += found
        self._waiting_bytes += self._look(first)
        return found

    def _make_room(self, count: int) -> None:
        if self._count + count > len(self._messages):
            room = max(2 * len(self._messages), self._count + count)
            messages, notes = np.zeros(room, np.int64), np.zeros((room, layout.NOTE), np.int64)
            messages[: self._count], notes[: self._count] = self._messages[: self._count], self._notes[: self._count]
            self._messages, self._notes = messages, notes

    def _has_held(self) -> bool:
        return self._count > 0

    def _drop_held(self) -> None:
        count, self._count, self._waiting_bytes = self._count, 0, 0
        self._loops["free"](address_of(self._messages), 0, count, self._call_address)

    def _held_events(self) -> tuple[Longs, Longs]:
        notes = self._notes[: self._count]
        slots = notes[:, layout.SLOT]
        topics = np.append(self._topic_of, layout.NOBODY)[slots]  # NOBODY names the last
        return topics, notes[:, layout.VALUE_BYTES] + notes[:, layout.KEY_BYTES] + notes[:, layout.HEADER_BYTES]

    def _reorder(self, order: Longs) -> None:
        for table in (self._messages, self._notes):
            table[: self._count] = table[: self._count][order]

    def _take(self, fetched: Fetched, batch_bytes: int, most: int) -> None:
        following = np.array([self._next[tp] for tp in self._tps], np.int64)
        sums, batch = np.zeros((len(self._names), layout.SUMS), np.int64), np.zeros(layout.BATCH, np.int64)
        end = 0
        while True:
            end = self._loops["take"](
                address_of(self._notes),
                end,
                most,
                address_of(following),
                address_of(self._topic_of),
                address_of(sums),
                address_of(batch),
                batch_bytes,
            )
            if end == most or batch[layout.IS_FULL]:
                break
            self._pass_over(fetched, end, following)
            end += 1
        self._next |= {tp: int(at) for tp, at in zip(self._tps, following, strict=True) if at >= 0}
        columns = [TopicColumns(each) if each[layout.ROWS] else None for each in sums]
        self._fill(end, columns)
        fetched.records, fetched.consumed_bytes = int(batch[layout.TAKEN]), int(batch[layout.TAKEN_BYTES])
        fetched.topics = {
            name: each.records() for name, each in zip(self._names, columns, strict=True) if each is not None
        }

    def _fill(self, end: int, columns: Sequence[TopicColumns | None]) -> None:
        """Copy and free the messages before `end`; those behind it stay."""
        state = np.zeros((len(columns), layout.COLUMNS), np.int64)
        for row, each in zip(state, columns, strict=True):
            if each is not None:
                row[:] = each.state
        held = self._count - end
        self._count = 0  # they are no longer ours, whatever happens
        self._loops["fill"](
            address_of(self._messages),
            0,
            end,
            address_of(self._notes),
            address_of(self._slots),
            address_of(self._topic_of),
            address_of(state),
            self._call_address,
        )
        for table in (self._messages, self._notes):
            table[:held] = table[end : end + held].copy()
        self._count = held
        self._waiting_bytes = sum(int(self._notes[:held, part].sum()) for part in _SIZES)
        for row, each in zip(state, columns, strict=True):
            if each is not None:
                each.state[:] = row

    def _pass_over(self, fetched: Fetched, number: int, following: Longs) -> None:
        """Note an error; of a partition in trouble nothing more is taken."""
        message, slot = int(self._messages[number]), int(self._notes[number, layout.SLOT])
        self._notes[number, layout.SLOT] = layout.NOBODY
        error: KafkaError = message_error(message, int(self._notes[number, layout.CODE]))
        tp = self._tps[slot] if slot != layout.NOBODY else TopicPartition(message_topic(message), -1)
        self._note_error(fetched, tp, error)
        if tp in fetched.troubles and following[slot] >= 0:
            self._next[tp] = int(following[slot])
            following[slot] = _IN_TROUBLE
