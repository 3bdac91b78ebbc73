"""Chance of each fault. All randomness comes from one generator, which the caller passes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from kgs_core.packing import RandomSource

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class FaultRates:
    """Likelihood of each fault where it could happen; 0: never, 1: always. `storm.TROUBLE` has those of storms.

    Attributes:
        late: a reader sees only a part of what is there.
        doubled: a reader sees once more what it has seen.
        report_lost: a report is not appended, and the consumer gets an unknown outcome.
        report_unsure: it is appended, and the consumer gets an unknown outcome.
        write_lost: the controller's transaction is aborted, and it gets an unknown outcome.
        write_unsure: it is committed, and the controller gets an unknown outcome.
        write_hangs: it is decided, but ends only when the next controller fences; the outcome is unknown.
        write_torn: Kafka leaves it open in some partitions, and aborts it there later; the outcome is unknown.
        unanswered: Kafka does not answer a fence or a read.
        start_refused: the fleet starts nothing.
        start_fails: a process ends before it reports.
    """

    late: float = 0.0
    doubled: float = 0.0
    report_lost: float = 0.0
    report_unsure: float = 0.0
    write_lost: float = 0.0
    write_unsure: float = 0.0
    write_hangs: float = 0.0
    write_torn: float = 0.0
    unanswered: float = 0.0
    start_refused: float = 0.0
    start_fails: float = 0.0


NO_TROUBLE = FaultRates()


class Chance:
    """Draws from the generator; `trouble` can be changed at any time."""

    def __init__(self, random: RandomSource, trouble: FaultRates = NO_TROUBLE) -> None:
        self._random = random
        self.trouble = trouble

    def strikes(self, likelihood: float) -> bool:
        return likelihood > 0 and self._random.random() < likelihood

    def number(self, below: int) -> int:
        """A whole number, 0 or more and less than `below`."""
        return int(self._random.random() * below)

    def one_of(self, choices: Sequence[_T]) -> _T:
        return choices[self.number(len(choices))]

    def between(self, least: float, most: float) -> float:
        return least + (most - least) * self._random.random()
