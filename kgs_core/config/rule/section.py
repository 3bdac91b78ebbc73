"""Base of all sections of kgs.yaml."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)

_ADDRESS = Field(description="give http(s)://host:port")
HttpAddress = Annotated[str, StringConstraints(pattern=r"^https?://[^\s@?#]+$"), _ADDRESS]
OptionalHttpAddress = Annotated[HttpAddress | None, _ADDRESS]
FINGERPRINT = "fingerprint"
"""Context of a dump that holds what all consumers must agree in."""


@dataclass(frozen=True, slots=True)
class Own:
    """Mark of a setting that is one process's own, a consumer's or the controller's: others may have another.

    Attributes:
        of: which keys, where the setting is a mapping; by default all of it is.
    """

    of: Callable[[str], bool] | None = None


@dataclass(frozen=True, slots=True)
class Secret:
    """Mark of a setting whose value stays out of the fingerprint, though not that it is given; `of` as in `Own`."""

    of: Callable[[str], bool] | None = None


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


def _agreed(value: Any, mark: Any) -> Any:
    """What a mark leaves of a setting's value."""
    match mark:
        case Own(of) if of is not None:
            return {key: found for key, found in value.items() if not of(key)}
        case Secret(of) if of is not None:
            return {key: "" if of(key) else found for key, found in value.items()}
        case Secret():
            return ""
        case _:
            return value


class Section(BaseModel):
    """Base of every section: no unknown keys, no guessing of types, no change after start."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, hide_input_in_errors=True)

    @model_serializer(mode="wrap")
    def _agreed_only(self, dump: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        tree: dict[str, Any] = dump(self)
        if info.context != FINGERPRINT:
            return tree
        fields = type(self).model_fields
        shared = {name: value for name, value in tree.items() if Own() not in fields[name].metadata}
        found = {name: reduce(_agreed, fields[name].metadata, value) for name, value in shared.items()}
        # A section that is None by default is on when it is there, be it empty
        return {name: value for name, value in found.items() if value != {} or fields[name].default is None}

    @model_validator(mode="before")
    @classmethod
    def _none_is_all_defaults(cls, data: Any) -> Any:
        return none_is_empty(data)
