"""The rule's section for hours of a table that are complete."""

from datetime import date
from typing import Annotated

from pydantic import Field

from kgs_core.config.rule.section import Section

LATENESS_S = 60.0
"""A replica that lags for longer (`replica.lag.time.max.ms`, 30 s) holds up nobody."""


class CompleteHours(Section):
    """Hours of a table, which Dagster shows as partitions of an asset once all their records are there.

    Attributes:
        since: first day, UTC.
        lateness_s: how much later than its timestamp a record may come.
    """

    since: Annotated[date, Field(strict=False, description="give a day, as 2026-11-01")]
    lateness_s: Annotated[float, Field(ge=0, le=604_800, allow_inf_nan=False)] = LATENESS_S
