"""Capacity of a consumer as it is learnt from the reports of those that are flat out. Pure.

Theory of operation. Each consumer reports what it reads when it is flat out: robustly over its last busy minutes, fast
down and slow up (`group.membership.flat_out`). This module makes one figure for the group of these, and of that the two
capacities to pack by. It is a function of the newest reports and of the newest measurement alone; nothing is added up.
So a controller that was restarted, a rebalance run, the sensor, `kgs plan` and `kgs status` find the same.

1. *Unit.* Reports count consumed bytes, capacities stored ones. A reading says how many offsets of which topic its
   bytes were; the measurement says how many bytes an offset of the topic takes in the log. A reading of whose offsets
   less than `KNOWN_SHARE` have a known size is left out: unknown is not zero.
2. *Kind.* What other code, other rules or other machines read says nothing of these. Only consumers of the version and
   configuration count that most members have. Of these each kind of hardware is judged apart, and the slowest kind
   counts, since a plan does not know what a consumer will run on. Where kgs.yaml has classes of consumers, each class
   is judged apart; one of which nothing is learnt is as a known one, or as much more as its pods request processors.
3. *Over consumers* it is the median (of two: the lower one), of those that were flat out within `FRESH_S` of the latest
   that was. A few slow ones do not drag it down: they are slow, and not the class.
4. Less than `LEAST_BUSY_S` in all is too little to learn from.
5. *In use* are the capacities that are written down. Where none is, it is what the Target that stands was packed by,
   as long as the new figure is within `DEADBAND` of it: noise makes no plans. The same figure counts when nothing is
   learnt any more, since all consumers were started anew: one that reads less than it says is soon flat out.
6. *At first* nothing is learnt. Then a figure counts that a short measurement of the controller's machine gave
   (`system.first_capacity`). It stands in the Target without a configuration, and gives way to any that is learnt.
7. *Drift* is how far the learnt figure is from the one that is written down.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median_low
from typing import Literal

from kgs_core.config.packing import CONSUMER_SHARE, PackingSettings
from kgs_core.group.protocol import FlatOut, LearntCapacity, Report
from kgs_core.model import BytesPerSecond, ConsumerId

KNOWN_SHARE = 0.9
FRESH_S = 600.0
LEAST_BUSY_S = 120.0
DEADBAND = 0.05
DRIFT = 0.2
"""From here on a drift is an alarm: a consumer that is 13 % short just reads its `consumer_capacity` and no more."""

Source = Literal["configured", "learnt", "first", "unknown"]
"""Written down; from reports; from a short measurement of the controller's machine; only its controller knows."""
BytesPerOffset = Mapping[str, float]
_Reading = tuple[FlatOut, BytesPerSecond]
"""With what it is in stored bytes/s."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """What consumers of the group's class read flat out.

    Attributes:
        bytes_per_s: stored bytes/s; None: not known.
        version: of most members; config_hash likewise. Empty without members.
        hardware: that it is learnt on, the slowest kind.
        consumers: how many were flat out of late on that; busy_s: for how long in all.
        age_s: how long before its report the latest of them was.
        since_ms: from when on they have read about as fast as that, wall clock.
        each: consumer -> stored bytes/s, whoever has said it.
        classes: class -> stored bytes/s of its consumers, where that is known; the rest is about the first class.
    """

    bytes_per_s: BytesPerSecond | None = None
    version: str = ""
    config_hash: str = ""
    hardware: str = ""
    consumers: int = 0
    busy_s: float = 0.0
    age_s: float = 0.0
    since_ms: int = 0
    each: Mapping[ConsumerId, BytesPerSecond] = field(default_factory=dict)
    classes: Mapping[str, BytesPerSecond] = field(default_factory=dict)

    @property
    def memory(self) -> LearntCapacity | None:
        """What a Target that is packed by it remembers."""
        known = self.bytes_per_s
        return None if known is None else LearntCapacity(known, self.version, self.config_hash)


@dataclass(frozen=True, slots=True)
class Capacity:
    """Capacity to pack by, and the learnt one beside the configured one.

    Attributes:
        packing: the settings with the capacities in use.
        learnt: from the reports now.
        memory: that the capacities in use are made of, for the next Target; None: they are written down.
    """

    packing: PackingSettings
    learnt: Learnt
    memory: LearntCapacity | None

    @property
    def source(self) -> Source:
        """Where the capacities in use come from."""
        if self.memory is None:
            return "unknown" if self.packing.learns_capacity else "configured"
        return "learnt" if self.memory.config_hash else "first"

    @property
    def configured(self) -> BytesPerSecond | None:
        """`consumer_capacity` as written down, stored bytes/s; None: it is learnt."""
        return self.packing.consumer_capacity if self.source == "configured" else None

    @property
    def consumer_bytes_per_s(self) -> BytesPerSecond | None:
        """The learnt figure as a `consumer_capacity`; None: nothing is learnt."""
        known = self.learnt.bytes_per_s
        return None if known is None else known * CONSUMER_SHARE

    @property
    def drift(self) -> float | None:
        """How far that is from the configured one, as a share of it: -0.3 is 30 % less; None: one is not known."""
        known, configured = self.consumer_bytes_per_s, self.configured
        return None if known is None or configured is None else known / configured - 1.0

    @property
    def has_drifted(self) -> bool:
        """Whether consumers read so much less or more that somebody should know of it."""
        drift = self.drift
        return drift is not None and (drift <= -DRIFT or drift >= 1 / (1 - DRIFT) - 1)

    @property
    def falls_short(self) -> bool:
        """Whether they read so much less."""
        return self.has_drifted and (self.drift or 0.0) < 0


def learn(reports: Collection[Report], bytes_per_offset: BytesPerOffset, classes: Collection[str] = ()) -> Learnt:
    """What consumers of the group's class read flat out.

    Args:
        reports: the newest full one of each member that lives and is heard.
        bytes_per_offset: topic -> stored bytes of one offset.
        classes: of consumers; of each the slowest hardware counts.
    """
    kinds = Counter((one.version, one.config_hash) for one in reports)
    if not kinds:
        return Learnt()
    version, config_hash = kind = max(kinds, key=lambda kind: (kinds[kind], kind))
    each: dict[ConsumerId, BytesPerSecond] = {}
    by_hardware: dict[tuple[str, str], list[_Reading]] = {}
    first_class = next(iter(classes), "")
    for report in reports:
        found = report.flat_out
        stored = _stored(found, bytes_per_offset) if found is not None else None
        if found is None or stored is None:
            continue
        each[report.member.consumer] = stored
        if (report.version, report.config_hash) == kind:
            name = report.consumer_class if report.consumer_class in classes else first_class
            by_hardware.setdefault((name, found.hardware), []).append((found, stored))
    unknown = Learnt(version=version, config_hash=config_hash, each=each)
    slowest: dict[str, Learnt] = {}
    for name, hardware in sorted(by_hardware):
        one, known = _judged(by_hardware[name, hardware], unknown), slowest.get(name)
        if one is not None and (known is None or (one.bytes_per_s or 0.0) < (known.bytes_per_s or 0.0)):
            slowest[name] = one
    rates = {name: one.bytes_per_s for name, one in slowest.items() if one.bytes_per_s is not None}
    return replace(slowest.get(first_class, unknown), classes=rates if classes else {})


def capacity_of(
    packing: PackingSettings,
    learnt: Learnt,
    standing: LearntCapacity | None,
    first: BytesPerSecond | None = None,
    sizes: Mapping[str, float] | None = None,
) -> Capacity:
    """Capacity to pack by.

    Args:
        standing: what the Target that stands remembers.
        first: what a consumer is taken to read flat out before anything is learnt, stored bytes/s; None: not known.
        sizes: of the classes in the Target that stands, as `PackingSettings.size` has them.
    """
    if not packing.learns_capacity:
        return Capacity(packing, learnt, None)
    memory = _in_use(_as_first(learnt, packing, standing).memory, standing) or (
        None if first is None else LearntCapacity(first, "", "")
    )
    if memory is None:
        return Capacity(packing, learnt, None)
    found = {name: _size(packing, name, learnt, memory.bytes_per_s, sizes or {}) for name in packing.classes}
    return Capacity(packing.with_flat_out(memory.bytes_per_s, found), learnt, memory)


def _as_first(learnt: Learnt, packing: PackingSettings, standing: LearntCapacity | None) -> Learnt:
    """`learnt`; where nothing is, or stands, of the first class, it is taken from another one."""
    stands = standing is not None and _is_same(learnt, standing)
    if learnt.bytes_per_s is not None or not learnt.classes or stands:
        return learnt
    name, bytes_per_s = next(iter(learnt.classes.items()))
    return replace(learnt, bytes_per_s=bytes_per_s / _size(packing, name, Learnt(), bytes_per_s, {}))


def _size(
    packing: PackingSettings, name: str, learnt: Learnt, first: BytesPerSecond, standing: Mapping[str, float]
) -> float:
    """Size of a class where the first one reads so much: as set, as learnt, as it stands, else by its processors."""
    own = packing.classes[name].consumer_capacity_bytes_per_s
    if own is not None:
        return own / (first * CONSUMER_SHARE)
    if name == next(iter(packing.classes)):
        return 1.0
    was = standing.get(name)
    if name not in learnt.classes:
        return packing.size(name) if was is None else was
    size = learnt.classes[name] / first
    return was if was is not None and abs(size - was) <= DEADBAND * was else size


def _in_use(new: LearntCapacity | None, standing: LearntCapacity | None) -> LearntCapacity | None:
    if new is None or standing is None:
        return new or standing
    is_near = abs(new.bytes_per_s - standing.bytes_per_s) <= DEADBAND * standing.bytes_per_s
    return standing if _is_same(new, standing) and is_near else new


def _is_same(new: Learnt | LearntCapacity, standing: LearntCapacity) -> bool:
    """Whether both are of consumers of one version and configuration."""
    return (new.version, new.config_hash) == (standing.version, standing.config_hash)


def _stored(found: FlatOut, bytes_per_offset: BytesPerOffset) -> BytesPerSecond | None:
    """Stored bytes/s of a reading; None: not known."""
    if not found.consumed_bytes or not found.bytes_per_s:
        return None
    total = sum(found.offsets.values())
    sized = sum(count for topic, count in found.offsets.items() if topic in bytes_per_offset)
    if not total or sized < KNOWN_SHARE * total:
        return None
    stored = sum(count * bytes_per_offset[topic] for topic, count in found.offsets.items() if topic in bytes_per_offset)
    rate = found.bytes_per_s / found.consumed_bytes * stored * total / sized
    return rate if 0 < rate < math.inf else None  # no Target could be written with an infinite one


def _judged(every: Sequence[_Reading], unknown: Learnt) -> Learnt | None:
    """Consumers on hardware of one kind; None: too little is known."""
    latest = min(one.age_s for one, _ in every)
    fresh = [(one, stored) for one, stored in every if one.age_s <= latest + FRESH_S]
    busy_s = sum(one.busy_s for one, _ in fresh)
    if busy_s < LEAST_BUSY_S:
        return None
    return replace(
        unknown,
        bytes_per_s=median_low(stored for _, stored in fresh),
        hardware=fresh[0][0].hardware,
        consumers=len(fresh),
        busy_s=busy_s,
        age_s=latest,
        since_ms=median_low(one.since_ms for one, _ in fresh),
    )
