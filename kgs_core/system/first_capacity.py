"""First figure of what a consumer reads: a short measurement of this machine, kept for this hardware and version.

It parses JSON and writes Parquet for a moment, as a consumer does for most of its time. Of the speed found `SHARE` is
taken: half for fetching, commits and neighbours, and a quarter of that, since speeds are compared as Kafka stores
records, which may be compressed four times. It is meant to be too low rather than too high: whoever reads more is soon
flat out and shows it, while one that is given too much falls behind.
"""

import hashlib
import io
import json
import time
from importlib.metadata import version

from kgs_core.accel.cache_dir import cache_directory
from kgs_core.errors import PermanentError
from kgs_core.system.files import write_whole
from kgs_core.system.usage import hardware

SHARE = 1 / 8
_SECONDS = 0.2
"""Of processor time, so that a machine that is busy at that moment gives the same figure."""
_RECORDS = 2000


def first_flat_out() -> float:
    """Stored bytes/s that a consumer on this machine reads flat out, by a careful guess; the same for every process."""
    name = hashlib.sha256(f"{version('kgs')} {hardware()}".encode()).hexdigest()[:16]
    try:
        kept = cache_directory() / f"capacity-{name}"
        try:
            return float(kept.read_text(encoding="ascii"))
        except (OSError, ValueError):
            found = measured()
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_whole(kept, f"{found:.3g}\n".encode())
            return float(kept.read_text(encoding="ascii"))
    except (OSError, PermanentError):  # nothing can be kept: it is measured each time
        return measured()


def measured() -> float:
    """`SHARE` of the bytes/s that one thread parses and writes here in a second of processor time."""
    import pyarrow.json
    import pyarrow.parquet

    data = b"".join(
        json.dumps({"id": n, "name": f"order {n * 7919 % 1000}", "price": n / 7, "note": "x" * 900}).encode() + b"\n"
        for n in range(_RECORDS)
    )
    options = pyarrow.json.ReadOptions(use_threads=False)
    rates = []
    until = time.process_time() + _SECONDS
    while time.process_time() < until:
        began = time.process_time()
        table = pyarrow.json.read_json(io.BytesIO(data), options)
        pyarrow.parquet.write_table(table, io.BytesIO())
        rates.append(len(data) / (time.process_time() - began))
    return sorted(rates)[len(rates) // 2] * SHARE
