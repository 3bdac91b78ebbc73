"""Input and output of a parser of values or keys. Whether a record is good never depends on its neighbours.

A parser is a function from a `ValueBatch` to `Parsed`. `kgs_core.config.rule.value_formats` names the parser of each
format.

The same functions parse keys: a `ValueBatch` with `is_key` holds keys, none of them null, and `columns` are those of
`key_schema`.

Unknown fields: if `ValueBatch.rescue` is set, `Parsed.rescued` has the fields of each good value that have no column,
as the text of one JSON object: names as in the value, inner objects within theirs, null for an item of an array that
leaves nothing. Values without a form in JSON: bytes as base64, times as in `2026-01-31T12:00:00Z`, decimals as numbers,
NaN and infinities as Python's `json` writes them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kgs_core.config import TopicRule
from kgs_core.config.registry import RegistrySettings
from kgs_core.errors import ConfigError, PermanentError
from kgs_core.lake.files.columns import lacking
from kgs_core.lake.files.row_schema import RESCUED
from kgs_core.registry.wire_format import HEADER, KEY_HEADER

MAX_REASON = 300
NO_COLUMNS = pa.schema([])
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ValueBatch:
    """Values of one topic, to be parsed at once.

    Attributes:
        values: binary; null for a record without a value.
        columns: the columns to make: the table's value columns or, with a transform, its input.
        headers: those of each record, as `row_schema.HEADERS`.
        registry: where the schemas are; None without a registry in the settings.
        avro_schema: of all values, if the rule gives it.
        rescue: whether `Parsed.rescued` is wanted.
        is_key: whether these are keys.
    """

    values: pa.Array
    columns: pa.Schema
    headers: pa.Array | None = None
    registry: RegistrySettings | None = None
    avro_schema: str | None = None
    rescue: bool = False
    is_key: bool = False

    @property
    def schema_header(self) -> str:
        """The header that names the schema of each value, if the schema's id does not precede the value."""
        return KEY_HEADER if self.is_key else HEADER

    def at(self, positions: Positions) -> "ValueBatch":
        """Those at these positions alone."""
        which = pa.array(positions, pa.int64())
        headers = None if self.headers is None else self.headers.take(which)
        return replace(self, values=self.values.take(which), headers=headers)


@dataclass(frozen=True, slots=True)
class Parsed:
    """Columns of the good values, and why the others are bad.

    Attributes:
        table: one row for each good value, in order.
        good: positions (in the input) of the rows, ascending.
        bad: position -> reason; `lake.rule.error_codes` gives each reason its code.
        unknown: position -> seconds for which the registry has answered that it lacks the value's schema; such a value
            is also in `bad`, and another reading may find it good.
        waiting: position -> what is unavailable and needed to judge the value (a registry that does not answer): the
            value is neither good nor bad, and its partition stops before it and retries.
        missing: columns that good values have and `ValueBatch.columns` lacks, all nullable.
        rescued: strings, one for each row: JSON text of fields without a column, null without any; None: not wanted.
    """

    table: pa.Table
    good: Sequence[int]
    bad: Mapping[int, str]
    waiting: Mapping[int, str] = field(default_factory=dict)
    missing: pa.Schema = NO_COLUMNS
    rescued: pa.Array | None = None
    unknown: Mapping[int, float] = field(default_factory=dict)


class UnusableSchemaError(PermanentError):
    """A schema that gives no columns, or not the wanted ones; says why."""


class NoColumnsError(ConfigError):
    """The registry's schema for a topic is of the rule's kind, but gives no columns for a new table."""


Parser = Callable[[ValueBatch], Parsed]
"""Parses the values of one format; each is good, bad or waiting by itself."""
ColumnsOf = Callable[[str, TopicRule, RegistrySettings | None], pa.Schema]
"""Returns the value columns, all nullable, of a topic whose rule has no `schema`: by the registry, or (None) by the
rule's `avro_schema`. Raises ConfigError if the registry has no schema of the kind, NoColumnsError if the newest one
gives no columns."""


@dataclass(slots=True)
class Pieces:
    """What parsers have made so far of parts of a batch.

    Attributes:
        columns: the batch's.
        tables: rows of good values, with `positions` of them in the batch.
        bad: position -> reason.
        waiting: as in `Parsed`; `unknown`, too.
        rescued: of these rows, as in `Parsed`.
        missing: part after part the columns that the batch's lack.
    """

    columns: pa.Schema
    bad: dict[int, str] = field(default_factory=dict)
    waiting: dict[int, str] = field(default_factory=dict)
    unknown: dict[int, float] = field(default_factory=dict)
    tables: list[pa.Table] = field(default_factory=list)
    positions: list[Positions] = field(default_factory=list)
    rescued: list[pa.Array] = field(default_factory=list)
    missing: list[pa.Schema] = field(default_factory=list)

    def take(self, parsed: Parsed, positions: Positions, fields: pa.Schema = NO_COLUMNS) -> None:
        """Take in what a parser made of the values at these positions.

        `fields`: those that they have, where the parser does not say which of them are missing.
        """
        self.bad |= {int(positions[i]): reason for i, reason in parsed.bad.items()}
        self.waiting |= {int(positions[i]): reason for i, reason in parsed.waiting.items()}
        self.unknown |= {int(positions[i]): for_s for i, for_s in parsed.unknown.items()}
        if parsed.good:
            rows = len(parsed.good)
            self.rescued.append(pa.nulls(rows, RESCUED.type) if parsed.rescued is None else parsed.rescued)
            self.tables.append(parsed.table)
            is_all = len(parsed.good) == len(positions)
            self.positions.append(positions if is_all else positions[np.array(parsed.good, np.int64)])
            self.missing += [parsed.missing, pa.schema(lacking(self.columns, fields))]

    def fail(self, positions: Iterable[int], reason: str) -> None:
        """Take note that these are bad, for one reason."""
        self.bad.update(dict.fromkeys(positions, reason[:MAX_REASON]))

    def parsed(self) -> Parsed:
        """All of it, in the order of the batch."""
        if not self.tables:
            return Parsed(self.columns.empty_table(), [], self.bad, self.waiting, unknown=self.unknown)
        table, positions = pa.concat_tables(self.tables), np.concatenate(self.positions)
        rescued = pa.concat_arrays(self.rescued)
        if (np.diff(positions) < 0).any():
            order = np.argsort(positions, kind="stable")
            table, rescued, positions = table.take(pa.array(order)), rescued.take(pa.array(order)), positions[order]
        missing = _all_of(self.missing)
        return Parsed(table, positions.tolist(), self.bad, self.waiting, missing, rescued, self.unknown)


def _all_of(schemas: Sequence[pa.Schema]) -> pa.Schema:
    fields: dict[str, pa.Field] = {}
    for schema in schemas:
        for each in schema:
            fields.setdefault(each.name, each)
    return pa.schema(fields.values()) if fields else NO_COLUMNS
