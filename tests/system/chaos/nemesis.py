"""Random faults of a group, by seed: each begins, lasts a while, and is healed."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import psutil
from confluent_kafka import KafkaException

from kgs_core.errors import KgsError
from tests.system.chaos.journal import Journal
from tests.system.chaos.stage import Stage

APART_S = (0.3, 2.5)
AT_ONCE = 3
GIVEN_UP_S = 120.0
"""After all others have struck: a fault that still finds nothing to strike is left out of this round."""
Heal = Callable[[], object]
Strike = Callable[["Nemesis"], "Heal | None"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        strike: returns the function that ends it; None: it is over at once.
        subject: what it strikes, a name that several faults share.
        lasts_s: least and greatest duration, if `strike` returned an end.
        fits: whether it can happen on this stage.
        alone: faults with the same word here never overlap; empty: this one may overlap any.
        excused_s: unread partitions are no problem while it lasts, and for so long after it; None: they are.
    """

    strike: Strike
    subject: str
    lasts_s: tuple[float, float] = (1.0, 10.0)
    fits: Callable[[Stage], bool] = lambda _: True
    alone: str = ""
    excused_s: float | None = None

    @property
    def name(self) -> str:
        return self.strike.__name__


@dataclass
class Nemesis:
    """The faults of one run.

    Attributes:
        after_each: called after each fault.
        struck: how often each fault found something to strike.
    """

    random: Random
    stage: Stage
    journal: Journal
    after_each: Callable[[], object] = lambda: None
    struck: Counter[str] = field(default_factory=Counter)
    _lasting: list[tuple[float, Fault, Heal]] = field(default_factory=list)

    def run(self, faults: Sequence[Fault], seconds: float) -> None:
        """All of these, in an order of the seed, and then in others until so many seconds are over."""
        end = time.monotonic() + seconds
        self._play(faults)
        while time.monotonic() < end:
            self._play(faults)
        while self._lasting:  # the last ones have their time, too
            self.stage.control.keep()
            self.heal(due=time.monotonic())
            time.sleep(APART_S[0])

    def _play(self, faults: Sequence[Fault]) -> None:
        """Each of them once, a moment apart; one that finds nothing to strike has its turn again after the others."""
        turns = self.random.sample(faults, len(faults))
        gave_up = time.monotonic() + GIVEN_UP_S + len(turns) * sum(APART_S)
        while turns:
            self.stage.control.keep()
            self.heal(due=time.monotonic())
            if len(self._lasting) < AT_ONCE:
                fault = turns.pop(0)
                if not self.strike(fault) and time.monotonic() < gave_up:
                    turns.append(fault)
            time.sleep(self.random.uniform(*APART_S))

    def strike(self, fault: Fault) -> bool:
        """One fault; False where it finds nothing to strike."""
        if fault.alone and any(other.alone == fault.alone for _, other, _ in self._lasting):
            return False
        ended = (
            self.journal.excused(fault.name, fault.excused_s or 0.0) if fault.excused_s is not None else lambda: None
        )
        try:
            heal = fault.strike(self)
        except (psutil.Error, ProcessLookupError, LookupError, KgsError, KafkaException, OSError) as e:
            self.journal.tell(f"{fault.name}: not now", why=f"{type(e).__name__} {e}"[:120])
            ended()
            return False
        self.struck[fault.name] += 1
        self.after_each()
        if heal is None:
            ended()
            self.journal.tell(fault.name)
            return True

        def over() -> None:
            with suppress(psutil.Error):
                heal()
            ended()

        lasts = self.random.uniform(*fault.lasts_s)
        self._lasting.append((time.monotonic() + lasts, fault, over))
        self.journal.tell(fault.name, lasts_s=round(lasts, 1))
        return True

    def heal(self, due: float) -> None:
        """End the faults whose time is over."""
        for entry in sorted((each for each in self._lasting if each[0] <= due), key=lambda each: each[0]):
            if entry not in self._lasting:  # what was healed before it has ended it, too
                continue
            self._lasting.remove(entry)
            try:
                entry[2]()
            except (KgsError, KafkaException, OSError):
                # Brokers are away as well, or Toxiproxy cannot change a connection whose client, frozen perhaps, takes
                # nothing
                self._lasting.append((time.monotonic() + APART_S[1], entry[1], entry[2]))
            else:
                self.journal.tell(f"{entry[1].name} is over")

    def choose_consumer(self) -> int:
        """The number of one that lives.

        Raises:
            LookupError: there is none.
        """
        return self.random.choice(sorted(self.stage.consumers()))
