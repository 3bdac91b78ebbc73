"""The section of kgs.yaml that says how much a consumer reads, and by which algorithm partitions are packed."""

from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from kgs_core.config.section import Section

AlgorithmName = Literal["nf", "ff", "bf", "wf", "nfd", "ffd", "bfd", "wfd", "mwf", "mbf", "mwfp", "mbfp"]
ALGORITHM_NAMES: tuple[AlgorithmName, ...] = get_args(AlgorithmName)
"""The names that `algorithm` takes; each is a key of `kgs_core.packing.ALGORITHMS`."""

MAX_CONSUMERS = 10_000
MAX_CAPACITY = 1_000_000_000_000

Capacity = Annotated[float, Field(ge=1, le=MAX_CAPACITY)]


class PackingSettings(Section):
    """How partitions are packed into consumers, and when a better packing is looked for."""

    packing_capacity_bytes_per_s: Capacity = 1_500_000.0
    consumer_capacity_bytes_per_s: Capacity = 2_000_000.0
    algorithm: AlgorithmName = "mwf"
    min_consumers: Annotated[int, Field(ge=1, le=MAX_CONSUMERS)] = 1
    max_consumers: Annotated[int, Field(ge=1, le=MAX_CONSUMERS)] | None = Field(
        default=None, description=f"give a whole number from 1 to {MAX_CONSUMERS}, or null"
    )
    spare_consumers: Annotated[int, Field(ge=0, le=100)] = 1
    catch_up_s: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    sentinel_timeout_s: Annotated[float, Field(ge=1, le=86_400)] = 300.0

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
