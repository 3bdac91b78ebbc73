"""Clock of measurements: this machine's steady clock, told from every other's."""

import time
import uuid
from functools import cache

from kgs_core.monitor.speeds import Measurement
from kgs_core.system.process_identity import boot_id


@cache
def clock() -> str:
    """What tells this machine's monotonic clock since its start from every other; the same for all its processes."""
    try:
        return boot_id()
    except OSError:  # no Linux
        return str(uuid.uuid4())


def age_s(measurement: Measurement) -> float:
    """How old a measurement is: by this machine's steady clock if it was made here, else by the wall clock."""
    reading = measurement.reading
    if reading.clock == clock():
        return max(0.0, time.monotonic() - reading.time_s)
    return max(0.0, time.time() - reading.wall_ms / 1000)
