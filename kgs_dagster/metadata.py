"""Metadata as Dagster shows it: numbers, lists and tables."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import dagster as dg

_MOST = 20


def three_digits(number: float) -> float:
    """As people read it: more digits say nothing of what is measured."""
    return float(f"{number:.3g}")


def bullets(lines: Sequence[str]) -> str:
    """Lines as a list in Markdown; a long one is cut."""
    more = [f"and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return "\n".join(f"- {line}" for line in [*lines[:_MOST], *more])


def table(
    rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str], about: Mapping[str, str] = MappingProxyType({})
) -> dg.TableMetadataValue:
    """Rows as a table; `columns`: name -> type, `about`: name -> words. What a row lacks and another has is empty."""
    found = [dict(row) for row in rows]
    names = list(dict.fromkeys(name for row in found for name in row))
    schema = dg.TableSchema([dg.TableColumn(name, kind, about.get(name)) for name, kind in columns.items()])
    return dg.MetadataValue.table([dg.TableRecord({name: row.get(name) for name in names}) for row in found], schema)
