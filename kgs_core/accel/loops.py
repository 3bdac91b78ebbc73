"""Loops over librdkafka's messages, written for numba: imported only where they are compiled.

Every argument is an int64, most of them an address: a number needs no count of who holds it, and the machine code no
numba. Nothing here can raise. Places in what the addresses lead to stand in `layout`.
"""

from typing import Any

from llvmlite import ir
from numba import extending, types

from kgs_core.accel import layout as at

ENTRIES = {"look": 6, "take": 8, "fill": 8, "free": 4}
"""Function -> number of its arguments."""
_I64, _I32, _I16, _I8 = ir.IntType(64), ir.IntType(32), ir.IntType(16), ir.IntType(8)
_intrinsic: Any = extending.intrinsic
_cpointer: Any = types.CPointer


def _pointer_to(kind: Any, bits: ir.IntType) -> Any:
    """Address to something that can be indexed."""

    def at_address(_: Any, address: Any) -> Any:  # noqa: ARG001 - its type is known
        def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
            return builder.inttoptr(given[0], bits.as_pointer())

        return _cpointer(kind)(types.int64), generate

    return _intrinsic(at_address)


def _copy(_: Any, to: Any, source: Any, size: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        pointer = _I8.as_pointer()
        function = builder.module.declare_intrinsic("llvm.memcpy", [pointer, pointer, _I64])
        ends = [builder.inttoptr(address, pointer) for address in given[:2]]
        count = context.cast(builder, given[2], size, types.int64)
        builder.call(function, [*ends, count, ir.Constant(ir.IntType(1), 0)])
        return context.get_dummy_value()

    return types.void(to, source, size), generate


def _call(bits: ir.IntType | None, *given_types: Any) -> Any:
    """Call of a C function, the first of `given`, whose arguments are int64 or pointers; None: it answers nothing."""

    def generate(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        function = ir.FunctionType(bits or ir.VoidType(), [_I64] * (len(given) - 1)).as_pointer()
        answer = builder.call(builder.inttoptr(given[0], function), given[1:])
        if bits is None:
            return context.get_dummy_value()
        return builder.sext(answer, _I64) if bits is _I32 else answer

    return (types.int64 if bits else types.void)(*given_types), generate


longs = _pointer_to(types.int64, _I64)
ints = _pointer_to(types.int32, _I32)
shorts = _pointer_to(types.int16, _I16)
octets = _pointer_to(types.uint8, _I8)
copy = _intrinsic(_copy)
call_1 = _intrinsic(lambda _, f, a: _call(None, f, a))
int_of_1 = _intrinsic(lambda _, f, a: _call(_I32, f, a))
int_of_2 = _intrinsic(lambda _, f, a, b: _call(_I32, f, a, b))
long_of_2 = _intrinsic(lambda _, f, a, b: _call(_I64, f, a, b))
int_of_5 = _intrinsic(lambda _, f, a, b, c, d, e: _call(_I32, f, a, b, c, d, e))


def look(messages: int, first: int, end: int, notes: int, slots: int, calls: int) -> int:
    """Note what messages `first` to `end` are; returns the bytes of their keys, values and headers.

    Args:
        messages: rd_kafka_message_t*.
        first: number of a message, as `end`.
        end: the one behind the last.
        notes: one for each message.
        slots: their number, then topic (rd_kafka_topic_t*) and partition of each, ascending.
        calls: librdkafka's functions.
    """
    call = longs(calls)
    found = longs(calls + 8 * at.SCRATCH)
    scratch = calls + 8 * at.SCRATCH
    known = longs(slots)
    total = 0
    slot, last_topic, last_partition = at.NOBODY, 0, at.NOBODY
    for i in range(first, end):
        message = longs(messages)[i]
        note = longs(notes + 8 * at.NOTE * i)
        topic = longs(message + at.TOPIC)[0]
        partition = ints(message + at.PARTITION)[0]
        if topic != last_topic or partition != last_partition:
            last_topic, last_partition = topic, partition
            low, high = 0, known[0]
            while low < high:
                middle = (low + high) // 2
                if known[1 + 2 * middle] < topic or (
                    known[1 + 2 * middle] == topic and known[2 + 2 * middle] < partition
                ):
                    low = middle + 1
                else:
                    high = middle
            slot = at.NOBODY
            if low < known[0] and known[1 + 2 * low] == topic and known[2 + 2 * low] == partition:
                slot = low
        note[at.SLOT] = slot
        code = ints(message + at.ERROR)[0]
        note[at.CODE] = code
        note[at.AT] = longs(message + at.OFFSET)[0]
        note[at.VALUE_BYTES] = 0
        note[at.KEY_BYTES] = 0
        note[at.HEADERS] = 0
        note[at.HEADER_BYTES] = 0
        if code != 0:
            continue
        if longs(message + at.VALUE)[0] != 0:
            note[at.VALUE_BYTES] = longs(message + at.VALUE_SIZE)[0]
        if longs(message + at.KEY)[0] != 0:
            note[at.KEY_BYTES] = longs(message + at.KEY_SIZE)[0]
        if int_of_2(call[at.MESSAGE_HEADERS], message, scratch) == 0:
            headers, number, size = found[0], 0, 0
            while int_of_5(call[at.HEADER_GET_ALL], headers, number, scratch + 8, scratch + 16, scratch + 24) == 0:
                length = 0
                while octets(found[1])[length] != 0:
                    length += 1
                size += length
                if found[2] != 0:
                    size += found[3]
                number += 1
            note[at.HEADERS] = number
            note[at.HEADER_BYTES] = size
        total += note[at.VALUE_BYTES] + note[at.KEY_BYTES] + note[at.HEADER_BYTES]
    return total


def take(notes: int, first: int, end: int, following: int, topics: int, sums: int, batch: int, limit: int) -> int:
    """Take messages into the batch, up to its limit or to an error, and return where that is (`end`: to the end).

    Who is not taken is nobody's from then on. Passed over are a partition in trouble, and an offset that was taken.

    Args:
        notes: of the messages.
        first: number of a message, as `end`.
        end: the one behind the last.
        following: slot -> the next offset, which it keeps; negative where the partition is in trouble.
        topics: slot -> number of its topic.
        sums: a topic's, added to.
        batch: the batch's, added to.
        limit: bytes.
    """
    after, topic_of, taken = longs(following), longs(topics), longs(batch)
    i = first
    while i < end:
        note = longs(notes + 8 * at.NOTE * i)
        slot, code = note[at.SLOT], note[at.CODE]
        if code != 0 and code != at.PARTITION_END:
            break
        if slot == at.NOBODY or after[slot] < 0:
            note[at.SLOT] = at.NOBODY
        elif code == at.PARTITION_END:
            note[at.SLOT] = at.NOBODY
            after[slot] = max(after[slot], note[at.AT])
        elif note[at.AT] < after[slot]:
            note[at.SLOT] = at.NOBODY
        else:
            size = note[at.VALUE_BYTES] + note[at.KEY_BYTES] + note[at.HEADER_BYTES]
            if taken[at.TAKEN] > 0 and taken[at.TAKEN_BYTES] + size > limit:
                taken[at.IS_FULL] = 1
                break
            taken[at.TAKEN] += 1
            taken[at.TAKEN_BYTES] += size
            of_topic = longs(sums + 8 * at.SUMS * topic_of[slot])
            of_topic[at.ROWS] += 1
            of_topic[at.SUM_VALUE] += note[at.VALUE_BYTES]
            of_topic[at.SUM_KEY] += note[at.KEY_BYTES]
            of_topic[at.SUM_HEADERS] += note[at.HEADERS]
            of_topic[at.SUM_HEADER_BYTES] += note[at.HEADER_BYTES]
            after[slot] = note[at.AT] + 1
        i += 1
    return i


def fill(messages: int, first: int, end: int, notes: int, slots: int, topics: int, columns: int, calls: int) -> int:
    """Copy the messages that were taken into their topics' columns, and free all; returns how many were copied.

    Args:
        messages: rd_kafka_message_t*; none of them is to be used any more.
        first: number of a message, as `end`.
        end: the one behind the last.
        notes: of the messages, which say whether they were taken.
        slots: as for `look`.
        topics: slot -> number of its topic.
        columns: a topic's, large enough.
        calls: librdkafka's functions.
    """
    call = longs(calls)
    found = longs(calls + 8 * at.SCRATCH)
    scratch = calls + 8 * at.SCRATCH
    copied = 0
    for i in range(first, end):
        message = longs(messages)[i]
        note = longs(notes + 8 * at.NOTE * i)
        slot = note[at.SLOT]
        if slot != at.NOBODY:
            to = longs(columns + 8 * at.COLUMNS * longs(topics)[slot])
            row = to[at.ROW]
            size = note[at.VALUE_BYTES]
            there = longs(message + at.VALUE)[0]
            octets(to[at.VALUE_THERE])[row] = 1 if there != 0 else 0
            if there != 0:
                copy(to[at.VALUES] + to[at.VALUE_END], there, size)
                to[at.VALUE_END] += size
            else:
                to[at.NO_VALUE] += 1
            ints(to[at.VALUE_OFFSETS])[row + 1] = to[at.VALUE_END]
            size = note[at.KEY_BYTES]
            there = longs(message + at.KEY)[0]
            octets(to[at.KEY_THERE])[row] = 1 if there != 0 else 0
            if there != 0:
                copy(to[at.KEYS] + to[at.KEY_END], there, size)
                to[at.KEY_END] += size
            else:
                to[at.NO_KEY] += 1
            ints(to[at.KEY_OFFSETS])[row + 1] = to[at.KEY_END]
            ints(to[at.PARTITIONS])[row] = longs(slots)[2 + 2 * slot]
            longs(to[at.OFFSETS])[row] = note[at.AT]
            time = long_of_2(call[at.TIMESTAMP], message, scratch)
            longs(to[at.TIMES])[row] = time if ints(scratch)[0] != 0 else at.NO_TIME
            ints(to[at.EPOCHS])[row] = int_of_1(call[at.LEADER_EPOCH], message)
            header = to[at.HEADER]
            if note[at.HEADERS] != 0 and int_of_2(call[at.MESSAGE_HEADERS], message, scratch) == 0:
                headers = found[0]
                for number in range(note[at.HEADERS]):
                    int_of_5(call[at.HEADER_GET_ALL], headers, number, scratch + 8, scratch + 16, scratch + 24)
                    size = 0
                    while octets(found[1])[size] != 0:
                        size += 1
                    copy(to[at.NAMES] + to[at.NAME_END], found[1], size)
                    to[at.NAME_END] += size
                    octets(to[at.CONTENT_THERE])[header] = 1 if found[2] != 0 else 0
                    if found[2] != 0:
                        copy(to[at.CONTENTS] + to[at.CONTENT_END], found[2], found[3])
                        to[at.CONTENT_END] += found[3]
                    else:
                        to[at.NO_CONTENT] += 1
                    header += 1
                    ints(to[at.NAME_OFFSETS])[header] = to[at.NAME_END]
                    ints(to[at.CONTENT_OFFSETS])[header] = to[at.CONTENT_END]
            to[at.HEADER] = header
            ints(to[at.HEADER_OFFSETS])[row + 1] = header
            to[at.ROW] = row + 1
            copied += 1
        call_1(call[at.DESTROY], message)
    return copied


def free(messages: int, first: int, end: int, calls: int) -> int:
    """Free messages `first` to `end`; returns how many."""
    for i in range(first, end):
        call_1(longs(calls)[at.DESTROY], longs(messages)[i])
    return end - first
