"""Problems that pydantic found, in words that name the field, the value (never a secret) and what is allowed."""

import difflib
import re
from collections.abc import Mapping

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from kgs_core.config.gone import gone
from kgs_core.config.passthrough import is_secret
from kgs_core.config.settings import Settings

Location = tuple[int | str, ...]

MAX_SHOWN = 80
MAX_DECIMAL_BITS = 128
_HIDDEN = ("client", "settings", "storage_options")
_RULES = ("topics",)
"""Where a key is a record's, and nothing a secret."""
_UNITS = {
    "_bytes": " (bytes)",
    "_bytes_per_s": " (bytes/s)",
    "_s": " (seconds)",
    "_h": " (hours)",
    "_percent": " (per cent)",
}
_WITH_ADDRESSES = ("kafka", "lake", "spark", "registry", "catalog")
_USER_PART = re.compile(r"[^/\s,]*@")
_KINDS = {
    "model_type": "give a mapping of key: value",
    "dict_type": "give a mapping of key: value",
    "tuple_type": "give a list",
    "list_type": "give a list",
    "too_short": "give one at least",
    "string_type": "give text, in quotes if it looks like something else",
    "invalid_key": "keys are text: put it in quotes",
}


def describe(error: ErrorDetails, origins: Mapping[Location, str]) -> str:
    """One line about one error.

    Args:
        origins: location -> the environment variables a value came from; it is not shown then.
    """
    loc = tuple(part for part in error["loc"] if part != "[key]")
    where = f"{dotted(loc)}: " if loc else ""
    if (now := gone(dotted(loc), error["input"])) is not None:
        return f"{where}gone since 0.2: {now}"
    if error["type"] == "extra_forbidden":
        return f"{where}unknown key{_nearest(loc)}"
    if error["type"] == "missing":
        return f"{where}missing: {_allowed(error, loc)}"
    return f"{where}{_shown(error, loc, origins)}{_allowed(error, loc)}"


def dotted(loc: Location) -> str:
    """A location as `topics[0].schema.price`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).removeprefix(".")


def _shown(error: ErrorDetails, loc: Location, origins: Mapping[Location, str]) -> str:
    value = error["input"]
    if loc in origins:
        return f"the value of {origins[loc]}: "
    if loc[:1] != _RULES and any(is_secret(str(part)) or part in _HIDDEN for part in loc):
        return "(value not shown): "
    if isinstance(value, str):
        shown = _USER_PART.sub("...@", value) if loc[0] in _WITH_ADDRESSES else value
        return f"{shown[:MAX_SHOWN]!r}: "
    if isinstance(value, bool) or value is None:
        return f"{'null' if value is None else str(value).lower()}: "
    if isinstance(value, int):  # Python refuses to write out decimals of more than 4300 digits
        return f"{value if value.bit_length() <= MAX_DECIMAL_BITS else hex(value)[:MAX_SHOWN]}: "
    return f"{value}: " if isinstance(value, float) else ""


def _allowed(error: ErrorDetails, loc: Location) -> str:
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] == "literal_error":
        return f"give one of {error['ctx']['expected']}"
    _, info = _model_at(loc)
    if error["type"] in _KINDS and (info is None or error["type"] != "string_type"):
        return _KINDS[error["type"]]
    if info is None:
        return "see `kgs example --all`"
    if error["type"] == "string_type" and isinstance(error["input"], int | float):
        return _KINDS["string_type"]
    return info.description or _range(loc, info) or _KINDS.get(error["type"], "see `kgs example --all`")


def _range(loc: Location, info: FieldInfo) -> str | None:
    low = next((m.ge for m in info.metadata if getattr(m, "ge", None) is not None), None)
    high = next((m.le for m in info.metadata if getattr(m, "le", None) is not None), None)
    noun = "a whole number" if info.annotation is int else "a number" if info.annotation is float else None
    unit = next((unit for suffix, unit in _UNITS.items() if str(loc[-1]).endswith(suffix)), "")
    if noun is None or low is None or high is None:
        return None
    return f"give {noun} from {low} to {high}{unit}"


def _model_at(loc: Location) -> tuple[type[BaseModel], FieldInfo | None]:
    """The model and field a location points at; the field is None where it is no model's field."""
    model: type[BaseModel] = Settings
    info: FieldInfo | None = None
    for part in loc:
        if isinstance(part, int):
            continue
        info = next((f for n, f in model.model_fields.items() if part == (f.alias or n)), None)
        if info is None:
            break
        kinds = (info.annotation, *getattr(info.annotation, "__args__", ()))
        model = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), model)
    return model, info


def _nearest(loc: Location) -> str:
    model, _ = _model_at(loc[:-1])
    names = [f.alias or n for n, f in model.model_fields.items()]
    close = difflib.get_close_matches(str(loc[-1]), names, n=1)
    return f": did you mean '{close[0]}'?" if close else f": the keys here are {', '.join(names)}"
