"""Walk through Avro values, written for numba: imported only where it is compiled.

It says of each value whether it is exactly one datum of the schema. What it lets pass can be laid end to end and
decoded in one call: no value takes bytes of its neighbour, and none can make the decoder panic or ask for memory.
Every argument is an int64, most of them an address. Nothing here can raise.
"""

from kgs_core.accel import avro_steps as at
from kgs_core.accel.loops import longs, octets
from kgs_core.accel.utf8 import more_of_character

ENTRIES = {"walk": 7}
"""Function -> number of its arguments."""


def walk(data: int, starts: int, ends: int, count: int, steps: int, counts: int, faults: int) -> int:
    """Write each value's fault (0: none); returns how many have one.

    Args:
        data: bytes that all values lie in.
        starts: where each value begins in them; `ends` likewise.
        ends: behind the last byte of each.
        count: of values.
        steps: see `avro_steps`.
        counts: room for a number for each array that lies in another.
        faults: room for one for each value.
    """
    of, step, left, out = octets(data), longs(steps), longs(counts), longs(faults)
    bad = 0
    for i in range(count):
        p, end = longs(starts)[i], longs(ends)[i]
        n, depth, fault = 0, -1, 0
        while True:
            kind = step[at.WIDTH * n]
            first, second = step[at.WIDTH * n + 1], step[at.WIDTH * n + 2]
            if kind == at.END:
                if p != end:
                    fault = at.TOO_LONG
                break
            number = 0
            if (kind != at.SKIP and kind != at.BOOLEAN and kind != at.NEXT) and not (kind == at.DECIMAL and first > 0):
                shift = 0
                while True:
                    if p >= end:
                        fault = at.TOO_SHORT
                        break
                    byte = of[p]
                    p += 1
                    if shift == 63 and byte > 1:
                        fault = at.BAD_NUMBER
                        break
                    number |= (byte & 127) << shift
                    if byte < 128:
                        break
                    shift += 7
                if fault != 0:
                    break
                number = ((number >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(number & 1)
            following = n + 1
            if kind == at.NUMBER:
                if number < first or number > second:
                    fault = at.OUT_OF_RANGE
            elif kind == at.SKIP:
                if end - p < first:
                    fault = at.TOO_SHORT
                p += first
            elif kind == at.BOOLEAN:
                if p >= end:
                    fault = at.TOO_SHORT
                elif of[p] > 1:
                    fault = at.BAD_BOOLEAN
                p += 1
            elif kind == at.NULLABLE:
                if number < 0 or number > 1:
                    fault = at.BAD_UNION
                elif number == first:
                    following = second
            elif kind == at.BLOCK:
                if number == 0:
                    following = first
                else:
                    if number < 0:
                        number = -number
                        while p < end and of[p] >= 128:
                            p += 1
                        p += 1  # the block's size in bytes, which is for those who pass it over
                    # Every item takes a byte at least
                    if number < 0 or number > end - p:
                        fault = at.TOO_SHORT
                    depth += 1
                    left[depth] = number
            elif kind == at.NEXT:
                left[depth] -= 1
                if left[depth] > 0:
                    following = first
                else:
                    depth -= 1
                    following = second
            else:
                size = first if kind == at.DECIMAL and first > 0 else number
                if size < 0:
                    fault = at.BAD_LENGTH
                elif size > end - p:
                    fault = at.TOO_SHORT
                elif kind == at.TEXT:
                    q, stop = p, p + size
                    while q < stop:
                        byte = of[q]
                        if byte < 128:
                            q += 1
                            continue
                        more = more_of_character(data, q, stop)
                        if more == 0:
                            fault = at.NOT_UTF8
                            break
                        q += more + 1
                elif kind == at.DECIMAL and size > 0:
                    # Digits of the number, or of its complement, against those of ten to the power less one
                    flip = 255 if of[p] > 127 else 0
                    order = 0
                    for k in range(16 if size < 16 else size):
                        place = k - (16 if size < 16 else size) + size
                        digit = of[p + place] ^ flip if place >= 0 else 0
                        limit_at = k - ((16 if size < 16 else size) - 16)
                        limit = step[at.WIDTH * second + limit_at] if limit_at >= 0 else 0
                        if order == 0 and digit != limit:
                            order = 1 if digit > limit else -1
                    if order > 0 or (order == 0 and flip != 0):
                        fault = at.BIG_DECIMAL
                p += size
            if fault != 0:
                break
            n = following
        out[i] = 0
        if fault != 0:
            out[i] = fault | (n << at.FAULT_BITS)
            bad += 1
    return bad
