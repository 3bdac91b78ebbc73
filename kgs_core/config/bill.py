"""The section of kgs.yaml about what consumers cost."""

import re
from typing import Annotated

from pydantic import BeforeValidator, Field

from kgs_core.config.rule.section import Section

MAX_PRICE = 1_000_000
_PRICE = re.compile(r"(\d+(?:\.\d+)?)(?: +(\S{1,10}))?")


def _price(value: object) -> object:
    found = None if isinstance(value, bool) else _PRICE.fullmatch(str(value))
    if value is not None and (found is None or float(found[1]) > MAX_PRICE):
        raise ValueError(f"give a price from 0 to {MAX_PRICE}, as 0.25 or 0.25 EUR")
    return value


PriceText = Annotated[float | str, BeforeValidator(_price)]
"""Price of a consumer for an hour, as in kgs.yaml."""


def price_of(text: float | str | None) -> tuple[float | None, str]:
    """Amount of a price, and its currency, empty where it is a number alone; None: no price is given."""
    found = _PRICE.fullmatch(str(text))
    return (float(found[1]), found[2] or "") if found else (None, "")


class BillSettings(Section):
    """Settings of the bill."""

    price_per_consumer_hour: PriceText | None = Field(
        default=None, description=f"give a price from 0 to {MAX_PRICE}, as 0.25 or 0.25 EUR, or null"
    )
