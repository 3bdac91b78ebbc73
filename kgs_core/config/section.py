"""Base of all sections of kgs.yaml."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator, model_validator


def _scalar(value: object) -> str | int | bool:
    if not isinstance(value, str | int):  # a union of types would report each of its members
        raise ValueError("give text, a whole number, true or false")  # noqa: TRY004 - pydantic takes no TypeError
    return value


def none_is_empty(value: object) -> object:
    """An empty mapping for `settings:` with every line below it commented out."""
    return {} if value is None else value


def key_of(table: Mapping[str, object]) -> PlainValidator:
    """Validator of a name: a key of `table` as it is when the name is checked, for tables grow."""

    def check(value: object) -> str:
        if isinstance(value, str) and value in table:
            return value
        *others, last = (f"'{name}'" for name in table)
        raise ValueError(f"give one of {', '.join(others)} or {last}" if others else f"give {last}, there is no other")

    return PlainValidator(check)


Passthrough = Annotated[dict[str, Annotated[str | int | bool, PlainValidator(_scalar)]], BeforeValidator(none_is_empty)]


class Section(BaseModel):
    """Base of every section: no unknown keys, no guessing of types, no change after start."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _none_is_all_defaults(cls, data: Any) -> Any:
        return none_is_empty(data)
