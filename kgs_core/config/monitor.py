"""Settings of the monitor."""

from typing import Annotated

from pydantic import Field

from kgs_core.config.rule.section import Section

RETENTION_H = 168
"""How long the topic of measurements keeps them where kgs makes it: bills and replays reach back as far."""


class MonitorSettings(Section):
    """Settings of how write speeds are measured."""

    window_s: Annotated[float, Field(ge=2, le=3600, allow_inf_nan=False)] = 30.0

    @property
    def min_span_s(self) -> float:
        """How far a partition's readings lie apart before they give a speed: a third of the window is steady enough."""
        return self.window_s / 3

    @property
    def interval_s(self) -> float:
        """Time between two readings: a second, or less where the window would hold too few."""
        return min(1.0, self.window_s / 12)
