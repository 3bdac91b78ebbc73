"""Values as JSON has them: null is "not known"."""

from collections.abc import Mapping
from typing import Any

from kgs_core.model import TopicPartition

_DIGITS = 3
"""Bytes/s are rounded to a thousandth of a byte, half to even; times likewise."""
_DIGITS_OF = {"rscore": 6, "drift": 6}


def plain(value: Any, digits: int = _DIGITS) -> Any:  # JSON
    """Partitions as `topic:0`, mappings in the order of their keys, numbers rounded."""
    match value:
        case float():
            return round(float(value), digits)
        case TopicPartition():
            return str(value)
        case Mapping():
            return {str(key): plain(each) for key, each in sorted(value.items())}
        case tuple():
            return [plain(each) for each in value]
        case _:
            return value


def picked(source: object, *names: str) -> dict[str, Any]:
    """Attributes of a value by their names."""
    return {name: plain(getattr(source, name), _DIGITS_OF.get(name, _DIGITS)) for name in names}
