"""The section of kgs.yaml that says how much a consumer reads, and by which algorithm partitions are packed."""

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, PlainValidator, StringConstraints, model_validator

from kgs_core.config.classes import CAPACITY_HELP, Capacity, ConsumerClass
from kgs_core.config.rule.section import Section, key_of, none_is_empty
from kgs_core.model import ConsumerId
from kgs_core.packing import Classes, Size
from kgs_core.packing.registry import ALGORITHMS, FEWEST, MAX_CONSUMER_WEIGHT, OWN

MAX_CONSUMERS = 10_000
MAX_RSCORE = 1_000_000
FIRST_FLAT_OUT = 20_000_000.0
"""What a consumer is taken to read flat out, stored bytes/s, where nobody has measured anything."""
CONSUMER_SHARE = 2.0 / 2.3
"""Of what a consumer reads flat out is its `consumer_capacity`: the rest is room to catch up.

Landau 2022, section VI, measured 2.3 MB/s; 2.0 beside it, and 1.5 to pack by, are this project's choice.
"""
PACKING_SHARE = 0.75
"""Of `consumer_capacity` is the capacity to pack by: a load that grows by a third moves nothing."""
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d"
_WINDOW = re.compile(rf"({_TIME})-({_TIME})")
_APPLY = re.compile(rf"auto|forced_only( {_TIME}-{_TIME}(, ?{_TIME}-{_TIME})*)?")


def _consumer_weight(value: object) -> float | str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and 0 < value <= MAX_CONSUMER_WEIGHT:  # type: ignore[operator]
        return float(value)  # type: ignore[arg-type]
    if value == FEWEST:
        return FEWEST
    raise ValueError(f"give a number above 0, at most {MAX_CONSUMER_WEIGHT:g}, or {FEWEST}")


def _apply(value: object) -> str:
    if isinstance(value, str) and _APPLY.fullmatch(value):
        return value
    raise ValueError("give auto, forced_only, or forced_only with times of day, as forced_only 07:30-20:00")


ConsumerWeight = Annotated[float | str, PlainValidator(_consumer_weight)]

Apply = Annotated[str, PlainValidator(_apply)]
"""What becomes of a plan that nothing forces: it is carried out, or waits for `kgs plan --apply`, or for the end of a
time of day.
"""

ClassName = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"),
    Field(description="name a class with a-z 0-9 and -"),
]


def _problems_of_classes(classes: Mapping[str, ConsumerClass], algorithm: str) -> list[str]:
    problems = [f"classes.{name}.price_per_hour must be above 0" for name, one in classes.items() if not one.price]
    if len({one.currency for one in classes.values()}) > 1:
        problems.append("classes: the prices must be in one currency")
    first = next(iter(classes), None)
    if first is not None and classes[first].consumer_capacity_bytes_per_s is not None:
        problems.append(
            f"classes.{first} is the first class: write its capacity as packing.consumer_capacity_bytes_per_s"
        )
    if classes and algorithm not in OWN:
        problems.append(f"algorithm '{algorithm}' cannot pack classes of consumers: use one of {', '.join(OWN)}")
    return problems


class PackingSettings(Section):
    """Settings of packing partitions into consumers, and of when a better packing is looked for."""

    packing_capacity_bytes_per_s: Capacity | None = Field(default=None, description=CAPACITY_HELP)
    consumer_capacity_bytes_per_s: Capacity | None = Field(default=None, description=CAPACITY_HELP)
    algorithm: Annotated[str, key_of(ALGORITHMS)] = "search"
    consumer_weight: ConsumerWeight = 1.3
    max_rscore_per_hour: Annotated[float, Field(ge=0, le=MAX_RSCORE)] | None = Field(
        default=None, description=f"give consumers' capacities moved an hour, 0 to {MAX_RSCORE}, or null"
    )
    min_consumers: Annotated[int, Field(ge=1, le=MAX_CONSUMERS)] = 1
    max_consumers: Annotated[int, Field(ge=1, le=MAX_CONSUMERS)] | None = Field(
        default=None, description=f"give a whole number from 1 to {MAX_CONSUMERS}, or null"
    )
    cross_zone_weight: Annotated[float, Field(ge=0, le=1000)] = 0.0
    spare_consumers: Annotated[int, Field(ge=0, le=100)] = 1
    idle_after_s: Annotated[float, Field(ge=1, le=86_400)] | None = Field(
        default=None, description="give seconds, 1 to 86400, or null"
    )
    sentinel_timeout_s: Annotated[float, Field(ge=1, le=86_400)] = 300.0
    apply: Apply = "auto"
    classes: Annotated[dict[ClassName, ConsumerClass], BeforeValidator(none_is_empty)] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _capacities_are_in_order(self) -> Self:
        problems = []
        if self.packing_capacity > self.consumer_capacity:
            problems.append(
                f"packing_capacity_bytes_per_s ({self.packing_capacity:.15g}) must be at most "
                f"consumer_capacity_bytes_per_s ({self.consumer_capacity:.15g})"
            )
        if self.max_consumers is not None and self.min_consumers > self.max_consumers:
            problems.append(
                f"min_consumers ({self.min_consumers}) must be at most max_consumers ({self.max_consumers})"
            )
        problems += _problems_of_classes(self.classes, self.algorithm)
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def learns_capacity(self) -> bool:
        """Whether the group learns its capacity, since no number is written down."""
        return self.packing_capacity_bytes_per_s is None and self.consumer_capacity_bytes_per_s is None

    @property
    def consumer_capacity(self) -> float:
        """Write speed that a consumer can read, bytes/s; above it the partitions are packed anew."""
        if self.consumer_capacity_bytes_per_s is not None:
            return self.consumer_capacity_bytes_per_s
        packing = self.packing_capacity_bytes_per_s
        return FIRST_FLAT_OUT * CONSUMER_SHARE if packing is None else packing / PACKING_SHARE

    @property
    def packing_capacity(self) -> float:
        """C, the write speed that a consumer is given at most when partitions are packed, bytes/s."""
        packing = self.packing_capacity_bytes_per_s
        return self.consumer_capacity * PACKING_SHARE if packing is None else packing

    def with_flat_out(self, bytes_per_s: float, sizes: Mapping[str, float]) -> "PackingSettings":
        """The settings for consumers that read so much when they are flat out; `sizes`: see `size`."""
        capacity = bytes_per_s * CONSUMER_SHARE
        known = {
            name: one.model_copy(update={"consumer_capacity_bytes_per_s": capacity * sizes[name]})
            for name, one in self.classes.items()
        }
        return self.model_copy(update={"consumer_capacity_bytes_per_s": capacity, "classes": known})

    def size(self, name: str) -> float:
        """Capacity of a class, in those of the first one: as set, else by the processors that both request, else 1."""
        first, one = next(iter(self.classes.values())), self.classes[name]
        if one is first:
            return 1.0
        if one.consumer_capacity_bytes_per_s is not None:
            return one.consumer_capacity_bytes_per_s / self.consumer_capacity
        return one.cpu / first.cpu if one.cpu and first.cpu else 1.0

    def classes_of(self, consumers: Mapping[ConsumerId, str], quarantined: Collection[ConsumerId] = ()) -> Classes:
        """Classes to pack with, for consumers of these classes."""
        return Classes(
            {name: Size(self.packing_capacity * self.size(name), one.price) for name, one in self.classes.items()},
            consumers,
            frozenset(consumers[each] for each in quarantined if each in consumers),
        )

    @property
    def weight(self) -> float | None:
        """What one consumer less is worth, in Rscore; None: any."""
        return None if isinstance(self.consumer_weight, str) else self.consumer_weight

    def moves_are_forced_only(self, time_ms: int) -> bool:
        """Whether this moment is in a window of `apply`, in which only forced moves are made; ms since 1970."""
        minute = time_ms // 60_000 % 1440
        for window in _WINDOW.findall(self.apply):
            begins, ends = (int(time[:2]) * 60 + int(time[3:]) for time in window)
            if begins <= minute < ends or (ends <= begins and not ends <= minute < begins):
                return True
        return False

    def forced_only_until(self, time_ms: int) -> str:
        """When the windows that this moment lies in are over, as `20:00Z`; empty: it lies in none.

        `never` where they fill the whole day.
        """
        if not self.moves_are_forced_only(time_ms):
            return ""
        minute = time_ms // 60_000
        ends = (m for m in range(minute, minute + 1440) if not self.moves_are_forced_only(m * 60_000))
        end = next(ends, None)
        return "never" if end is None else f"{end // 60 % 24:02}:{end % 60:02}Z"
