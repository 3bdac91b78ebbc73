"""The section of kgs.yaml about the group: how soon silence counts, and how long a change may take."""

from typing import Annotated

from pydantic import Field

from kgs_core.config.rule.section import Own, Section

REPORT_RETENTION_H = 48
"""How long reports are kept: the bill of a day, which is made from them, may be made until the end of the next day."""


class MembershipSettings(Section):
    """Reports, suspicion, hand-over, and the topics through which controller and consumers speak."""

    suspect_after_s: Annotated[float, Field(ge=1, le=3600)] = 30.0
    strict_handover: Annotated[bool, Own()] = Field(default=False, description="give true or false")
    start_timeout_s: Annotated[float, Field(ge=1, le=3600), Own()] = 120.0
    start_attempts: Annotated[int, Field(ge=1, le=100), Own()] = 3

    @property
    def heartbeat_s(self) -> float:
        """How often a consumer says that it lives: a dozen late heartbeats make no suspect."""
        return min(2.0, self.suspect_after_s / 15)

    @property
    def group_management_timeout_s(self) -> float:
        """How long a change may take until the controller plans again: a start, and more for other ones and drains."""
        return 2.5 * self.start_timeout_s

    @property
    def start_backoff_s(self) -> float:
        """Pause before a failed consumer's second start; it doubles with every further one."""
        return min(5.0, self.suspect_after_s / 6)

    @property
    def max_measurement_age_s(self) -> float:
        """How old a measurement may be that a plan is made with: as old as the newest word of a consumer."""
        return self.suspect_after_s
