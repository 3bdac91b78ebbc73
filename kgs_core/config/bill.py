"""The section of kgs.yaml about what consumers cost."""

import re

from pydantic import Field, field_validator

from kgs_core.config.rule.section import Section

MAX_PRICE = 1_000_000
_PRICE = re.compile(r"(\d+(?:\.\d+)?)(?: +(\S{1,10}))?")


class BillSettings(Section):
    """Settings of the bill."""

    price_per_consumer_hour: float | str | None = Field(
        default=None, description=f"give a price from 0 to {MAX_PRICE}, as 0.25 or 0.25 EUR, or null"
    )

    @field_validator("price_per_consumer_hour", mode="before")
    @classmethod
    def _is_a_price(cls, value: object) -> object:
        found = None if isinstance(value, bool) else _PRICE.fullmatch(str(value))
        if value is not None and (found is None or float(found[1]) > MAX_PRICE):
            raise ValueError(f"give a price from 0 to {MAX_PRICE}, as 0.25 or 0.25 EUR, or null")
        return value

    @property
    def price(self) -> float | None:
        """Price of one consumer for an hour; None: not known, and the bill is in hours only."""
        found = _PRICE.fullmatch(str(self.price_per_consumer_hour))
        return float(found[1]) if found else None

    @property
    def currency(self) -> str:
        """What the price is in, for people; empty where it is a number alone."""
        found = _PRICE.fullmatch(str(self.price_per_consumer_hour))
        return (found[2] or "") if found else ""
