"""What single definitions of an Avro schema say."""

from collections.abc import Mapping
from typing import Any

MAX_PRECISION = 38


def name_of(schema: Any) -> str | None:
    """Full name of a definition of a named type, as fastavro has filled it in."""
    name = schema.get("name") if isinstance(schema, dict) and isinstance(schema.get("type"), str) else None
    return name if isinstance(name, str) else None


def digits_of(schema: Mapping[str, Any]) -> tuple[int, int] | None:
    """Precision and scale of a decimal that Arrow and Delta have, too; None: it stays bytes, as Avro says."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if schema.get("logicalType") != "decimal" or not isinstance(precision, int) or not isinstance(scale, int):
        return None
    return (precision, scale) if 0 < precision <= MAX_PRECISION and 0 <= scale <= precision else None


def is_empty(physical: Any) -> bool:
    """Whether values of a type, as polars is told of it, take no byte: a number of them costs nothing to write."""
    if not isinstance(physical, dict):
        return False
    if physical["type"] == "record":
        return all(is_empty(each["type"]) for each in physical["fields"])
    return physical.get("size") == 0
