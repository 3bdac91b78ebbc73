"""Types of columns, from the JSON form that Delta and Spark share into the words of SQL and Hive. Pure."""

import re
from typing import Any

_SQL = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def sql_type(kind: Any) -> str:
    """The type as text: `bigint`, `array<struct<sku:string>>`."""
    if not isinstance(kind, dict):
        return _SQL.get(str(kind), str(kind))
    if kind["type"] == "array":
        return f"array<{sql_type(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{sql_type(kind['keyType'])},{sql_type(kind['valueType'])}>"
    fields = ",".join(f"{field['name']}:{sql_type(field['type'])}" for field in kind["fields"])
    return f"struct<{fields}>"


def type_name(kind: Any) -> str:
    """Its kind alone: `long`, `decimal`, `array`."""
    return str(kind["type"]) if isinstance(kind, dict) else str(kind).partition("(")[0]


def decimal_digits(kind: Any) -> tuple[int, int] | None:
    """Precision and scale of a decimal; None for other types."""
    found = _DECIMAL.fullmatch(kind) if isinstance(kind, str) else None
    return (int(found[1]), int(found[2])) if found else None
