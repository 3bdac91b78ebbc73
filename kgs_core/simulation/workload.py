"""Workload of an experiment: a load, measurement by measurement, and the names that generated ones go by."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from kgs_core.errors import ConfigError
from kgs_core.model import BytesPerSecond, WriteSpeeds

Start = Literal["uniform", "zero", "half", "full"]
STARTS: tuple[Start, ...] = get_args(Start)
"""How fast partitions are at first: drawn, or all alike at nothing, half a consumer, a whole one."""

CAPACITY = 100.0
"""C of generated streams, whose speeds are whole per cents of it."""

DEFAULT_CAPACITY = 1_500_000.0
"""C of one consumer in bytes/s where none is given, as in `kgs.yaml`."""

DELTAS = (0, 5, 10, 15, 20, 25)
"""The step widths that were published."""

_KEY = re.compile(
    r"(?P<start>[a-z]+)-delta(?P<delta>\d{2,3})-seed(?P<seed>\d+)(?:-p(?P<p>\d+)-t(?P<t>\d+)-n(?P<n>\d+))?"
)


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """A generated load, by all that it follows from.

    Attributes:
        delta: greatest change from one measurement to the next, per cent of C.
        steps: measurements after the first one.
        partitions: of all topics together.
    """

    delta: int
    start: Start = "uniform"
    seed: int = 1
    steps: int = 500
    partitions: int = 200
    topics: int = 2

    @property
    def key(self) -> str:
        """`uniform-delta05-seed1`; `-p32-t2-n500` follows where the size is not the published one."""
        plain = f"{self.start}-delta{self.delta:02d}-seed{self.seed}"
        size = (self.partitions, self.topics, self.steps)
        return plain if size == (200, 2, 500) else f"{plain}-p{size[0]}-t{size[1]}-n{size[2]}"


@dataclass(frozen=True, slots=True)
class Workload:
    """A load that is there in full.

    Attributes:
        capacity: packing capacity C, in the unit of the speeds.
        measurements: write speeds of every partition there was, in order of time.
        spec: what it was generated from; None: it was recorded.
    """

    key: str
    capacity: BytesPerSecond
    measurements: Sequence[WriteSpeeds]
    spec: StreamSpec | None = None


def parse_key(key: str) -> StreamSpec:
    """The stream that `StreamSpec.key` names. Raises `ConfigError` if it names none."""
    found = _KEY.fullmatch(key)
    start = next((start for start in STARTS if found and found["start"] == start), None)
    if found is None or start is None:
        raise ConfigError([f"workload '{key}': write {'|'.join(STARTS)}-deltaNN-seedN, as in uniform-delta05-seed1"])
    plain = StreamSpec(int(found["delta"]), start, int(found["seed"]))
    if found["p"] is None:
        return plain
    return StreamSpec(plain.delta, start, plain.seed, int(found["n"]), int(found["p"]), int(found["t"]))
