"""The section of kgs.yaml about the group: how soon silence counts, and how long a change may take."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from kgs_core.config.rule.section import Own, Section


class MembershipSettings(Section):
    """Reports, suspicion, hand-over, and the topics through which controller and consumers speak."""

    heartbeat_s: Annotated[float, Field(ge=0.1, le=60)] = 2.0
    suspect_after_s: Annotated[float, Field(ge=1, le=3600)] = 30.0
    strict_handover: Annotated[bool, Own()] = Field(default=False, description="give true or false")
    group_management_timeout_s: Annotated[float, Field(ge=1, le=86_400), Own()] = 300.0
    start_timeout_s: Annotated[float, Field(ge=1, le=3600), Own()] = 120.0
    start_attempts: Annotated[int, Field(ge=1, le=100), Own()] = 3
    start_backoff_s: Annotated[float, Field(ge=0.1, le=3600), Own()] = 5.0
    max_measurement_age_s: Annotated[float, Field(ge=1, le=3600), Own()] = 30.0
    metadata_partitions: Annotated[int, Field(ge=2, le=10_000), Own()] = 64
    consumers_per_metadata_partition: Annotated[int, Field(ge=1, le=1000)] = 1
    topic_replication: Annotated[Annotated[int, Field(ge=1, le=100)] | None, Own()] = Field(
        default=None, description="give a whole number from 1 to 100, or null for the cluster's own default"
    )
    report_retention_h: Annotated[int, Field(ge=1, le=8760), Own()] = 48

    @property
    def highest_consumer(self) -> int:
        """The last consumer number that has a queue; partition 0 is the Target's."""
        return (self.metadata_partitions - 1) * self.consumers_per_metadata_partition

    @model_validator(mode="after")
    def _silence_is_longer_than_a_pause(self) -> Self:
        if self.suspect_after_s < 3 * self.heartbeat_s:
            raise ValueError(
                f"suspect_after_s ({self.suspect_after_s:g}) must be at least three times heartbeat_s "
                f"({self.heartbeat_s:g}): one late heartbeat would make a consumer a suspect"
            )
        return self
