"""What consumers cost, and the classes that they may be of."""

import re
from typing import Annotated

from pydantic import BeforeValidator, Field

from kgs_core.config.kubernetes import LabelKey, LabelValue, Resources
from kgs_core.config.rule.section import Section, none_is_empty

MAX_CAPACITY = 1_000_000_000_000
CAPACITY_HELP = f"give bytes/s, from 1 to {MAX_CAPACITY}, or null"
Capacity = Annotated[float, Field(ge=1, le=MAX_CAPACITY)]

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


class ConsumerClass(Section):
    """One class: `resources` and `node_selector` stand in for those of the section `kubernetes`, where they are set."""

    price_per_hour: PriceText
    consumer_capacity_bytes_per_s: Capacity | None = Field(default=None, description=CAPACITY_HELP)
    resources: Resources = Field(default_factory=dict)
    node_selector: Annotated[dict[LabelKey, LabelValue], BeforeValidator(none_is_empty)] = Field(default_factory=dict)

    @property
    def price(self) -> float:
        """Price of one consumer for an hour."""
        return price_of(self.price_per_hour)[0] or 0.0

    @property
    def currency(self) -> str:
        """What the price is in, for people."""
        return price_of(self.price_per_hour)[1]

    @property
    def cpu(self) -> float | None:
        """Processors that its pod requests; None: not said."""
        text = self.resources.get("requests", {}).get("cpu")
        if text is None:
            return None
        return float(text[:-1]) / 1000 if text.endswith("m") else float(text)
