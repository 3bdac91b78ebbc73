"""Settings of the monitor."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from kgs_core.config.rule.section import Section


class MonitorSettings(Section):
    """Settings of how write speeds are measured and where they are published."""

    window_s: Annotated[float, Field(ge=2, le=3600, allow_inf_nan=False)] = 30.0
    min_span_s: Annotated[float, Field(ge=1, le=3600, allow_inf_nan=False)] = 10.0
    interval_s: Annotated[float, Field(ge=0.1, le=60, allow_inf_nan=False)] = 1.0
    measure: Literal["auto", "log_dirs", "offsets"] = "auto"
    topic_replication: Annotated[int, Field(ge=1, le=100)] | None = None
    topic_retention_h: Annotated[int, Field(ge=1, le=87_600)] = 168

    @model_validator(mode="after")
    def _the_window_holds_readings_enough(self) -> Self:
        if self.min_span_s >= self.window_s:
            raise ValueError(f"min_span_s ({self.min_span_s:g}) must be less than window_s ({self.window_s:g})")
        if 2 * self.interval_s > self.window_s - self.min_span_s:
            raise ValueError(
                f"interval_s ({self.interval_s:g}) must be at most half of window_s - min_span_s "
                f"({self.window_s - self.min_span_s:g}): a window with a gap would give no speed"
            )
        return self
