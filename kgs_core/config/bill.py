"""The section of kgs.yaml about what consumers cost."""

from typing import Annotated

from pydantic import Field, StringConstraints

from kgs_core.config.rule.section import Section

MAX_PRICE = 1_000_000


class BillSettings(Section):
    """Settings of the bill."""

    price_per_consumer_hour: Annotated[float, Field(ge=0, le=MAX_PRICE)] | None = Field(
        default=None, description=f"give a price from 0 to {MAX_PRICE}, or null"
    )
    currency: Annotated[str, StringConstraints(max_length=10)] = ""
