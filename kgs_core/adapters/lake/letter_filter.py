"""Conditions that choose dead letters: `partition=3`, `offset>=1000`, `code=wrong_type`, `error~surrogate`."""

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.adapters.lake.error_codes import code_of
from kgs_core.errors import ConfigError

_CONDITION = re.compile(r"(\w+)\s*(<=|>=|!=|=|<|>|~)\s*(.+)", re.DOTALL)
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_MAX_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LetterCondition:
    """One condition: a column of dead letters, a comparison, a value of the column's type."""

    name: str
    comparison: str
    value: int | str | datetime

    def fits(self, letters: pa.Table) -> npt.NDArray[np.bool_]:
        """Which of the letters fulfil it; null fulfils none."""
        values = _COLUMNS[self.name].values(letters)
        if self.comparison == "~":
            found = [value is not None and str(self.value) in value for value in values]
        else:
            compare = _COMPARISONS[self.comparison]
            found = [value is not None and bool(compare(value, self.value)) for value in values]
        return np.array(found, np.bool_)


def parse_conditions(texts: Collection[str]) -> tuple[LetterCondition, ...]:
    """Conditions of `NAME OPERATOR VALUE`; a letter must fulfil all.

    Raises:
        ConfigError: all that cannot be understood.
    """
    problems: list[str] = []
    found = []
    for text in texts:
        try:
            found.append(_parsed(text))
        except ValueError as e:
            problems.append(f"--where '{text}': {e}")
    if problems:
        raise ConfigError(problems)
    return tuple(found)


def chosen(letters: pa.Table, conditions: Sequence[LetterCondition]) -> pa.Table:
    """The letters that fulfil all conditions."""
    if not conditions:
        return letters
    keep = np.logical_and.reduce([condition.fits(letters) for condition in conditions])
    return letters.filter(pa.array(keep))


def _parsed(text: str) -> LetterCondition:
    match = _CONDITION.fullmatch(text.strip())
    if match is None:
        raise ValueError("write NAME=VALUE, with one of = != < <= > >= ~ (contains), e.g. partition=3")
    name, comparison, value = match.groups()
    column = _COLUMNS.get(name)
    if column is None:
        raise ValueError(f"no such name: use one of {', '.join(_COLUMNS)}")
    if comparison not in column.comparisons:
        raise ValueError(f"{name} is compared by one of {' '.join(column.comparisons)}")
    return LetterCondition(name, comparison, column.parse(value.strip()))


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) > _MAX_OFFSET:
        raise ValueError("the value must be a whole number")
    return int(text)


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise ValueError("the value must be a time with its offset, e.g. 2026-01-31T00:00:00Z")
    return instant


@dataclass(frozen=True, slots=True)
class _Column:
    """A name of conditions: its values of letters, how one is written, how it is compared."""

    values: Callable[[pa.Table], Sequence[Any]]
    parse: Callable[[str], int | str | datetime]
    comparisons: tuple[str, ...]


def _stored(name: str) -> Callable[[pa.Table], Sequence[Any]]:
    def values(letters: pa.Table) -> Sequence[Any]:
        found: list[Any] = letters[name].to_pylist()
        return found

    return values


def _codes(letters: pa.Table) -> Sequence[str | None]:
    errors = pc.cast(letters["error"], pa.string()).to_pylist()
    return [None if error is None else code_of(error) for error in errors]


_ORDER = ("=", "!=", "<", "<=", ">", ">=")
_COLUMNS: Mapping[str, _Column] = {
    "partition": _Column(_stored("_partition"), _number, _ORDER),
    "offset": _Column(_stored("_offset"), _number, _ORDER),
    "timestamp": _Column(_stored("_timestamp"), _instant, _ORDER),
    "topic_id": _Column(_stored("_topic_id"), str, ("=", "!=")),
    "code": _Column(_codes, str, ("=", "!=")),
    "error": _Column(_stored("error"), str, ("=", "!=", "~")),
}
