"""What one run of chaos is: everything that repeating it needs."""

import shlex
from dataclasses import asdict, dataclass
from random import Random
from typing import Literal, Self

Control = Literal["bare", "dagster"]
Store = Literal["disk", "s3"]


@dataclass(frozen=True, slots=True)
class Options:
    """One run.

    Attributes:
        seconds: how long faults go on, at least; each of them strikes once in any case.
        seed: of the faults, their order, their lengths and the load.
        brokers: 1 or 3.
        faults: names of faults or of their subjects; empty: all that fit.
        control: what runs the controller.
        store: what the lake lies on.
        spark: whether consumers run real Spark, or Spark's part in their own process.
        bytes_per_s: mean of what is produced.
    """

    seconds: float
    seed: int
    brokers: int = 3
    faults: tuple[str, ...] = ()
    control: Control = "bare"
    store: Store = "disk"
    spark: bool = True
    bytes_per_s: float = 60_000.0

    @classmethod
    def of_seed(cls, seconds: float, seed: int, control: Control | None, store: Store | None, **more: object) -> Self:
        """What is not asked for is the seed's choice."""
        random = Random(f"options {seed}")
        chosen_control: Control = random.choice(("bare", "dagster"))
        chosen_store: Store = random.choice(("disk", "s3"))
        return cls(seconds, seed, control=control or chosen_control, store=store or chosen_store, **more)  # type: ignore[arg-type]

    def command(self) -> str:
        """What repeats the run."""
        named = {name: value for name, value in asdict(self).items() if name not in ("faults", "spark", "bytes_per_s")}
        words = [
            f"{name.upper()}={value:g}" if name == "seconds" else f"{name.upper()}={value}"
            for name, value in named.items()
        ]
        if self.faults:
            words.append(f"FAULTS={shlex.quote(','.join(self.faults))}")
        if not self.spark:
            words.append("SPARK=0")
        return " ".join(["make chaos", *words])
