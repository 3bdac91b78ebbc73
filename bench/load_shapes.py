"""A load of known speed on one topic: steps, ramps and noise, sent in step with the clock."""

import math
import random
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from kgs_core.kafka.paced_producer import FlightProducer
from kgs_core.system.shutdown import StopFlag

RECORD_BYTES = 1000
_RECORDS = 997  # different ones, sent in turn
_WORDS = ("departure", "arrival", "delayed", "gate", "altitude", "runway", "heading", "carrier", "origin", "speed")
_STEP_S = 0.05

Shape = Callable[[float], float]
"""Values' bytes/s, uncompressed, at a time in seconds since the start."""


def steady(bytes_per_s: float) -> Shape:
    """Always the same."""
    return lambda _: bytes_per_s


def step(before: float, after: float, at_s: float) -> Shape:
    """One speed, and from `at_s` on another."""
    return lambda t: before if t < at_s else after


def ramp(before: float, after: float, from_s: float, to_s: float) -> Shape:
    """From one speed to another in a straight line."""
    return lambda t: before + (after - before) * min(1.0, max(0.0, (t - from_s) / (to_s - from_s)))


def noise(bytes_per_s: float, deviation: float, generator: random.Random, seconds: int) -> Shape:
    """Around a speed; a new one every second, normally distributed with `deviation` (a share) and never negative."""
    factors = [max(0.0, generator.gauss(1.0, deviation)) for _ in range(seconds + 1)]
    return lambda t: bytes_per_s * factors[min(int(t), seconds)]


class KnownLoad:
    """Sends while the block runs, from a thread of its own."""

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        shape: Shape,
        compression: str = "none",
        value: Callable[[random.Random], bytes] | None = None,
    ) -> None:
        """Nothing is sent yet.

        Args:
            bootstrap_servers: host:port,host:port.
            topic: must be there.
            shape: how fast, in bytes of values before compression.
            compression: librdkafka's name of the codec.
            value: makes one of `RECORD_BYTES`; None: half words, half noise.
        """
        self._topic = topic
        self._shape = shape
        self._producer = FlightProducer({"bootstrap.servers": bootstrap_servers, "compression.type": compression})
        self._stop = StopFlag()
        self._thread = threading.Thread(target=self._run, name=f"load-{topic}", daemon=True)
        self._owed = 0.0
        self._sent = 0
        generator = random.Random(topic)  # noqa: S311 - a load, not a secret
        self._values = [(value or _value)(generator) for _ in range(_RECORDS)]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def due(self, from_s: float, to_s: float) -> Iterator[tuple[str, bytes, bytes]]:
        """The records of [from_s, to_s), so many that bytes sent follow the integral of the shape."""
        steps = max(1, math.ceil((to_s - from_s) / _STEP_S))
        width = (to_s - from_s) / steps
        for number in range(steps):
            self._owed += self._shape(from_s + (number + 0.5) * width) * width
            while self._owed >= RECORD_BYTES:
                self._owed -= RECORD_BYTES
                self._sent += 1
                yield self._topic, b"", self._values[self._sent % _RECORDS]

    def _run(self) -> None:
        self._producer.run(self.due, self._stop)


def _value(generator: random.Random) -> bytes:
    """Half words, half noise: shrinks to roughly half its size."""
    words = " ".join(generator.choice(_WORDS) for _ in range(RECORD_BYTES // 14))
    return words.encode()[: RECORD_BYTES // 2].ljust(RECORD_BYTES // 2) + generator.randbytes(RECORD_BYTES // 2)
