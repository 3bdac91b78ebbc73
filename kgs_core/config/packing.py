"""The section of kgs.yaml that says how much a consumer reads, and by which algorithm partitions are packed."""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, PlainValidator, model_validator

from kgs_core.config.rule.section import Section, key_of
from kgs_core.packing.registry import ALGORITHMS, FEWEST, MAX_CONSUMER_WEIGHT

MAX_CONSUMERS = 10_000
MAX_CAPACITY = 1_000_000_000_000
MAX_RSCORE = 1_000_000
_WINDOW = re.compile(r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d")


def _consumer_weight(value: object) -> float | str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value == FEWEST or (is_number and 0 < value <= MAX_CONSUMER_WEIGHT):  # type: ignore[operator]
        return value if isinstance(value, str) else float(value)  # type: ignore[arg-type]
    raise ValueError(f"give a number above 0, at most {MAX_CONSUMER_WEIGHT:g}, or {FEWEST}")


def _window(value: object) -> str:
    if isinstance(value, str) and _WINDOW.fullmatch(value):
        return value
    raise ValueError("give two times of day, as 07:30-20:00")


ConsumerWeight = Annotated[float | Literal["fewest"], PlainValidator(_consumer_weight)]

Apply = Literal["auto", "forced_only"]
"""What becomes of a plan that nothing forces: it is carried out, or waits for `kgs plan --apply`."""

Capacity = Annotated[float, Field(ge=1, le=MAX_CAPACITY)]


class PackingSettings(Section):
    """Settings of packing partitions into consumers, and of when a better packing is looked for."""

    packing_capacity_bytes_per_s: Capacity = 1_500_000.0
    consumer_capacity_bytes_per_s: Capacity = 2_000_000.0
    capacity: Literal["measured", "learnt"] = "measured"
    learnt_capacity_min_percent: Annotated[float, Field(gt=0, le=100)] = 50.0
    learnt_capacity_max_percent: Annotated[float, Field(ge=100, le=1000)] = 150.0
    algorithm: Annotated[str, key_of(ALGORITHMS)] = "search"
    consumer_weight: ConsumerWeight = 1.3
    max_extra_consumers_percent: Annotated[float, Field(ge=0, le=1000)] | None = Field(
        default=None, description="give a percentage from 0 to 1000, or null"
    )
    max_rscore_per_hour: Annotated[float, Field(ge=0, le=MAX_RSCORE)] | None = Field(
        default=None, description=f"give consumers' capacities moved an hour, 0 to {MAX_RSCORE}, or null"
    )
    min_consumers: Annotated[int, Field(ge=1, le=MAX_CONSUMERS)] = 1
    max_consumers: Annotated[int, Field(ge=1, le=MAX_CONSUMERS)] | None = Field(
        default=None, description=f"give a whole number from 1 to {MAX_CONSUMERS}, or null"
    )
    spare_consumers: Annotated[int, Field(ge=0, le=100)] = 1
    catch_up_s: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    sentinel_timeout_s: Annotated[float, Field(ge=1, le=86_400)] = 300.0
    apply: Apply = "auto"
    forced_moves_only_utc: list[Annotated[str, PlainValidator(_window)]] = Field(default_factory=list)

    @model_validator(mode="after")
    def _capacities_are_in_order(self) -> Self:
        problems = []
        if self.packing_capacity_bytes_per_s > self.consumer_capacity_bytes_per_s:
            problems.append(
                f"packing_capacity_bytes_per_s ({self.packing_capacity_bytes_per_s:.15g}) must be at most "
                f"consumer_capacity_bytes_per_s ({self.consumer_capacity_bytes_per_s:.15g})"
            )
        if self.max_consumers is not None and self.min_consumers > self.max_consumers:
            problems.append(
                f"min_consumers ({self.min_consumers}) must be at most max_consumers ({self.max_consumers})"
            )
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def weight(self) -> float | None:
        """What one consumer less is worth, in Rscore; None: any."""
        return None if self.consumer_weight == FEWEST else self.consumer_weight

    def moves_are_forced_only(self, time_ms: int) -> bool:
        """Whether this moment is in one of the windows in which nothing moves that need not; `time_ms` since 1970."""
        minute = time_ms // 60_000 % 1440
        for window in self.forced_moves_only_utc:
            begins, ends = (int(time[:2]) * 60 + int(time[3:]) for time in window.split("-"))
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
