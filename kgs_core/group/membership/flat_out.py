"""What a consumer reads when it is flat out, by its last busy minutes. Pure.

Theory of operation. Packing needs to know what a consumer can read, and only one that has more to read than it can take
shows that. Such a one is flat out: its rounds are full, one after the other.

1. Only time between the ends of two full rounds in a row counts. A round that is not full has waited for records, so an
   idle consumer says nothing.
2. Counted time is cut into *spells* of `SPELL_S`. A spell of which more than `MOST_WAITED` was spent waiting (for Kafka
   or for the lake) is dropped: that is how fast these are, and more consumers are no cure. A consumer that gets too
   little of a processor does not wait in this sense: its work takes longer.
3. The reading is a median of spells, so a pause or a burst of some spells changes nothing.
4. *Fast down, slow up*: it is the lower of two medians, over the last `RECENT` spells and over the last `LONG`. Slower
   work shows when half of the recent spells are slow. Faster work shows when half of the long run is fast. A dip that
   is over leaves the long run as it was. So the reading never jumps up after a lucky minute, and never stays up.
5. Windows count busy time, not time: a quiet night neither ages nor erases what the day has taught. How long ago the
   last spell ended is part of the reading, and whoever compares consumers goes by it.
6. Fewer than `LEAST` spells are no reading.
7. *Since when* does it read so? A level is kept. While the reading stays within `SAME` of it, it stands; else the
   reading becomes the new level, from the first of the recent spells on that are nearer to it than to the old one.

The reading is a whole state in every report, no step: a report that is lost, doubled or late does no harm, and whoever
reads the reports (a controller that has just started, a run, `kgs status`) knows the same.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from statistics import median_low

from kgs_core.group.protocol import FlatOut

SPELL_S = 10.0
RECENT = 18
"""Spells of which the median may lower the reading: three busy minutes."""
LONG = 90
"""Spells of which the median may raise it: fifteen busy minutes."""
LEAST = 6
MOST_WAITED = 0.5
SAME = 0.1


@dataclass(frozen=True, slots=True)
class FullRound:
    """One full round after another one.

    Attributes:
        seconds: from the end of the one before to its own end.
        waited_s: of these, waiting for Kafka or the lake with nothing else to do.
        offsets: topic -> offsets that its positions moved by.
    """

    seconds: float
    waited_s: float
    consumed_bytes: int
    offsets: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Spell:
    """Full rounds added up; `began_ms` is wall clock."""

    seconds: float = 0.0
    waited_s: float = 0.0
    consumed_bytes: int = 0
    offsets: Mapping[str, int] = field(default_factory=dict)
    began_ms: int = 0

    @property
    def bytes_per_s(self) -> float:
        """Its rate."""
        return self.consumed_bytes / self.seconds

    def and_one(self, one: FullRound, time_ms: int) -> "Spell":
        """With one more round, which has just ended."""
        return Spell(
            self.seconds + one.seconds,
            self.waited_s + one.waited_s,
            self.consumed_bytes + one.consumed_bytes,
            Counter(self.offsets) + Counter(one.offsets),
            self.began_ms or max(0, time_ms - round(one.seconds * 1000)),
        )


@dataclass(frozen=True, slots=True)
class FlatOutMeter:
    """Meter of one incarnation; every call gives a new one.

    Attributes:
        hardware: what it runs on, part of every reading.
        spells: the last ones that count, the earliest first.
        ended_at: when the last one ended that counts, on the caller's steady clock.
        level: rate that the readings of late are the same as.
        since_ms: from when on, wall clock.
    """

    hardware: str = ""
    spells: tuple[Spell, ...] = ()
    current: Spell = field(default_factory=Spell)
    ended_at: float = 0.0
    level: float | None = None
    since_ms: int = 0

    def after(self, one: FullRound, now: float, time_ms: int) -> "FlatOutMeter":
        """With one more full round."""
        spell = self.current.and_one(one, time_ms)
        if spell.seconds < SPELL_S:
            return replace(self, current=spell)
        if spell.waited_s > MOST_WAITED * spell.seconds or not spell.consumed_bytes:
            return replace(self, current=Spell())
        spells = (*self.spells, spell)[-LONG:]
        return _with_level(replace(self, spells=spells, current=Spell(), ended_at=now))

    @property
    def bytes_per_s(self) -> float | None:
        """Consumed bytes/s flat out; None: too little is known."""
        if len(self.spells) < LEAST:
            return None
        rates = [spell.bytes_per_s for spell in self.spells]
        return min(median_low(rates), median_low(rates[-RECENT:]))

    def reading(self, now: float) -> FlatOut | None:
        """What goes into a report; None: too little is known."""
        if (rate := self.bytes_per_s) is None:
            return None
        recent = self.spells[-RECENT:]
        offsets: Counter[str] = Counter()
        for spell in recent:
            offsets.update(spell.offsets)
        return FlatOut(
            bytes_per_s=rate,
            busy_s=sum(spell.seconds for spell in self.spells),
            age_s=max(0.0, now - self.ended_at),
            since_ms=self.since_ms,
            consumed_bytes=sum(spell.consumed_bytes for spell in recent),
            offsets={topic: count for topic, count in sorted(offsets.items()) if count},
            hardware=self.hardware,
        )


def _with_level(meter: FlatOutMeter) -> FlatOutMeter:
    rate, level = meter.bytes_per_s, meter.level
    if rate is None or (level is not None and abs(rate - level) <= SAME * level):
        return meter
    if level is None:
        return replace(meter, level=rate, since_ms=meter.spells[0].began_ms)
    nearer = list(takewhile(lambda s: abs(s.bytes_per_s - rate) < abs(s.bytes_per_s - level), meter.spells[::-1]))
    return replace(meter, level=rate, since_ms=(nearer or meter.spells)[-1].began_ms)
