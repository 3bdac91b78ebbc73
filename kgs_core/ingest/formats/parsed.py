"""What a parser of values, or of keys, is given and gives. Whether a record is good never depends on its neighbours.

A parser is a function from a `ValueBatch` to `Parsed`. Which formats there are, and which function parses each, says
`kgs_core.config.rule.value_formats`.

Keys are parsed by the same functions: a `ValueBatch` with `is_key` holds keys, none of them null, and `columns` are
those of `key_schema`. A parser that asks a registry looks under `ValueBatch.subject`.

Unknown fields: where `ValueBatch.rescue` is set, a parser says in `Parsed.rescued` what of each good value had no
column, as the text of one JSON object: names as they stand in the value, inner objects within theirs, null for an item
of an array that leaves nothing. Values that JSON has no form for: bytes as base64, times as in `2026-01-31T12:00:00Z`,
decimals as numbers, NaN and infinities as Python's `json` writes them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from kgs_core.config import TopicRule
from kgs_core.config.registry import RegistrySettings
from kgs_core.errors import ConfigError, PermanentError
from kgs_core.registry.wire_format import HEADER, KEY_HEADER

MAX_REASON = 300
NO_COLUMNS = pa.schema([])


@dataclass(frozen=True, slots=True)
class ValueBatch:
    """Values of one topic, to be parsed at once.

    Attributes:
        values: binary; null where a record has none.
        columns: what they become: the table's value columns or, where there is a transform, what that is given.
        headers: those of each record, as `row_schema.HEADERS`.
        registry: where the schemas are; None where the settings name no registry.
        rescue: whether `Parsed.rescued` is wanted.
        is_key: whether these are keys.
    """

    values: pa.Array
    columns: pa.Schema
    topic: str
    rule: TopicRule
    headers: pa.Array | None = None
    registry: RegistrySettings | None = None
    rescue: bool = False
    is_key: bool = False

    @property
    def schema_header(self) -> str:
        """The header that names the schema of each of these, where it does not stand in front of them."""
        return KEY_HEADER if self.is_key else HEADER

    @property
    def subject(self) -> str:
        """The name under which a registry has the schemas of these, by Confluent's default."""
        return f"{self.topic}-{'key' if self.is_key else 'value'}"


@dataclass(frozen=True, slots=True)
class Parsed:
    """Columns of the good values, and why the others are bad.

    Attributes:
        table: one row a good value, in order.
        good: positions (in the input) of the rows, ascending.
        bad: position -> reason.
        unknown: position -> seconds for which the registry has said that it lacks what the value is to be judged by;
            such a value is in `bad`, too, and another reading may find it good.
        waiting: position -> what cannot be had for now and is needed to judge the value (a registry that does not
            answer): neither good nor bad. Its partition is read up to there, and tried again.
        missing: columns that good values have and `ValueBatch.columns` lacks, all nullable.
        rescued: strings, one a row: JSON text of what had no column, null where nothing is left; None: not asked for.
    """

    table: pa.Table
    good: Sequence[int]
    bad: Mapping[int, str]
    waiting: Mapping[int, str] = field(default_factory=dict)
    missing: pa.Schema = NO_COLUMNS
    rescued: pa.Array | None = None
    unknown: Mapping[int, float] = field(default_factory=dict)


class UnusableSchemaError(PermanentError):
    """A schema that no columns, or not the wanted ones, can be made of; says why."""


class NoColumnsError(ConfigError):
    """The registry has a schema of the rule's kind for a topic, of which a new table's columns cannot be made."""


Parser = Callable[[ValueBatch], Parsed]
"""What parses the values of one format; each is good, bad or waiting by itself."""
ColumnsOf = Callable[[str, TopicRule, RegistrySettings | None], pa.Schema]
"""What tells the value columns, all nullable, of a topic whose rule has no `schema`, from its registry; None: the rule
itself has the values' schema. Where the registry has none, or one of another kind, it raises ConfigError; where no
columns can be made of its newest, NoColumnsError."""
