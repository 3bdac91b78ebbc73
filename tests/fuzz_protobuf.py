"""Broken Protobuf messages against Google's library, one at a time: `python -m tests.fuzz_protobuf BROKEN SEED`."""

import random
import sys
from collections import Counter

from kgs_core.ingest.formats.protobuf.protobuf_messages import MessageDecoder, natural_columns
from tests.protobuf_values import Everything, any_message, broken, comparable, expected

BATCH, BROKEN_SHARE = 500, 0.8


def differences(count, seed):
    """Messages for which a batch gives another answer than a look at each alone; and how many were what.

    Args:
        count: how many broken messages at least; the others lie between them.
        seed: of what is drawn.
    """
    descriptor = Everything.DESCRIPTOR
    decoder = MessageDecoder(descriptor, natural_columns(descriptor))
    chance, wrong, tally = random.Random(seed), [], Counter()
    while tally["broken"] < count:
        values = [_message(chance, tally) for _ in range(BATCH)]
        found = decoder.decode(values)
        found.table.validate(full=True)
        rows = dict(zip(found.good, found.table.to_pylist(), strict=True))
        for i, value in enumerate(values):
            want = expected(value)
            same = i in found.bad if want is None else i in rows and repr(comparable(rows[i])) == repr(comparable(want))
            tally["bad" if want is None else "good"] += 1
            if not same or (i in rows) == (i in found.bad):
                wrong.append((value.hex(), found.bad.get(i)))
    return wrong, tally


def _message(chance, tally):
    value = any_message(chance)
    if chance.random() >= BROKEN_SHARE:
        return value
    tally["broken"] += 1
    return broken(chance, value, any_message(chance))


if __name__ == "__main__":
    found, counts = differences(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    print(f"{dict(counts)}, {len(found)} differ", *found[:5], sep="\n")
    sys.exit(bool(found))
