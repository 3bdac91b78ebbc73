"""The rule's section for a derived table with the newest row of each key."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from kgs_core.config.rule.field_types import StructType, canonical_type, parse_type
from kgs_core.config.rule.section import Section, none_is_empty
from kgs_core.config.rule.topic_names import TablePath

KAFKA_KEY = "_key"
UNAVAILABLE = "__debezium_unavailable_value"
"""What Debezium writes in place of a large value that has not changed, and was not sent to it."""
TIME_UNITS = {"timestamp_ms": 1000, "timestamp_us": 1_000_000, "timestamp_ns": 1_000_000_000}
"""Words for a time that is a number, since 1970 -> how many of it make a second."""


def _known_type(given: object) -> str:
    return given if isinstance(given, str) and given in TIME_UNITS else canonical_type(given)


EventType = Annotated[str, BeforeValidator(_known_type)]


class NewestRows(Section):
    """A derived table with the newest row of each key.

    Attributes:
        key: empty: fields of the records' key where `changes` is given and `key_schema` names them, else `_key`.
        history: path of the table in which each change of a key is a row; None: there is none.
        types: column of the followed table -> its type, or unit of time.
    """

    table: TablePath
    history: TablePath | None = None
    changes: Literal["debezium", "maxwell", "canal"] | None = None
    key: Annotated[list[str], Field(min_length=1)] | None = None
    deletes: Literal["remove", "column", "ignore"] = "remove"
    order: Literal["offset", "timestamp", "source"] = "offset"
    deletion_vectors: bool = False
    max_lag_s: Annotated[float, Field(ge=1, le=86_400)] = 30
    types: Annotated[dict[str, EventType], BeforeValidator(none_is_empty)] = Field(default_factory=dict)

    @property
    def tables(self) -> tuple[str, ...]:
        """Paths of its tables."""
        return (self.table,) if self.history is None else (self.table, self.history)

    def problems_beside(self, table: str, keep: str | None) -> Iterator[str]:
        """Why it cannot be in a rule for `table`."""
        taken = [table.lower(), f"{table.lower()}_dead_letters"]
        for path in self.tables:
            if path.lower() in taken:
                yield f"newest_rows: table '{path}' is the rule's own: give it another name"
            taken.append(path.lower())
        if keep is not None and self.history is not None:
            yield "newest_rows: history: it is made of all rows, of which 'keep' ends some: drop one of them"

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.key is not None and len({*self.key}) < len(self.key):
            raise ValueError(f"key: {', '.join(self.key)}: a column stands there twice")
        if self.changes is None:
            if self.deletes != "ignore" and self.key not in (None, [KAFKA_KEY]):
                raise ValueError(
                    "a tombstone has no value, so no field to recognise it by: set key: [_key], or deletes: ignore"
                )
            if self.types:
                raise ValueError("types are of events: say their producer (changes), or drop types")
        if self.order == "source":
            if self.changes != "debezium":
                raise ValueError(
                    "only Debezium's events say their place in the source: set order: offset, or timestamp"
                )
            if self.deletes == "remove":
                raise ValueError(
                    "order: source compares deletes too, so they must stay: set deletes: column, or ignore"
                )
        return self


def fields_of_key(key_fields: Mapping[str, str]) -> tuple[str, ...]:
    """Fields of records' keys, without the envelope that has their schema."""
    if {*key_fields} == {"payload"} and isinstance(kind := parse_type(key_fields["payload"]), StructType):
        return tuple(name for name, _ in kind.fields)
    return tuple(key_fields)
