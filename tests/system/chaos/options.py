"""What one run of chaos is: everything that repeating it needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, Self, TypeVar, get_args

Control = Literal["bare", "dagster"]
Store = Literal["disk", "s3"]
T = TypeVar("T")


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
    def of_words(cls, words: Sequence[str], seed: int) -> Self:
        """Of `NAME=value`; what is not said of controller and store is the seed's choice.

        Raises:
            ValueError: a word that means nothing.
        """
        given = dict(word.split("=", 1) for word in words)
        if unknown := given.keys() - {"SECONDS", "SEED", "BROKERS", "FAULTS", "CONTROL", "STORE", "SPARK"}:
            raise ValueError(f"nothing is called {', '.join(sorted(unknown))}")
        number = int(given.get("SEED", seed))
        chosen = Random(f"options {number}")
        controls: tuple[Control, ...] = get_args(Control)
        stores: tuple[Store, ...] = get_args(Store)
        return cls(
            float(given.get("SECONDS", 300)),
            number,
            int(given.get("BROKERS", 3)),
            tuple(name for name in given.get("FAULTS", "").split(",") if name),
            _one_of(controls, given.get("CONTROL") or chosen.choice(controls)),
            _one_of(stores, given.get("STORE") or chosen.choice(stores)),
            given.get("SPARK", "1") != "0",
        )

    def command(self) -> str:
        """What repeats the run."""
        words = [f"SECONDS={self.seconds:g}", f"SEED={self.seed}", f"BROKERS={self.brokers}"]
        words += [f"FAULTS={','.join(self.faults)}"] if self.faults else []
        words += [f"CONTROL={self.control}", f"STORE={self.store}", *([] if self.spark else ["SPARK=0"])]
        return " ".join(["make chaos", *words])


def _one_of(known: tuple[T, ...], word: object) -> T:
    for each in known:
        if each == word:
            return each
    raise ValueError(f"{word}: give one of {', '.join(map(str, known))}")
