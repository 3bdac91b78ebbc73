"""The rule that makes a table of a topic: its part of kgs.yaml."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, ValidationInfo, field_validator, model_validator

from kgs_core.config.rule.complete_hours import CompleteHours
from kgs_core.config.rule.field_types import canonical_type, has_other_map_keys, parse_type, problem_of_names
from kgs_core.config.rule.layout import PartitionColumn, partition_column, problem_of_partitions
from kgs_core.config.rule.masking import (
    MaskWords,
    hides_rows,
    mask_path,
    problem_of_mask,
    problems_beside,
    problems_in_events,
)
from kgs_core.config.rule.newest_rows import KAFKA_KEY, NewestRows, fields_of_key
from kgs_core.config.rule.routing import Route, problems_of_route, text_of
from kgs_core.config.rule.section import Own, Section, key_of, none_is_empty
from kgs_core.config.rule.start import start_timestamp_ms
from kgs_core.config.rule.topic_names import IN_BRACES, TablePath, check_pattern, compiled, is_topic_name
from kgs_core.config.rule.value_formats import FORMATS, problem_of_key, problem_of_schema

HOOK = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"

HookName = Annotated[str, StringConstraints(pattern=HOOK)]
Columns = Annotated[dict[str, Annotated[str, BeforeValidator(canonical_type)]], BeforeValidator(none_is_empty)]
"""Column -> its type in the canonical text of `kgs_core.config.rule.field_types`."""
KEY_COLUMN = "key"
_KEEP = re.compile(r"([1-9]\d{0,4}) (day|hour)s?")


def _one_is_a_list(value: Any) -> Any:
    return [] if value is None else [value] if isinstance(value, str) else value


MASKED_ORIGIN = {KAFKA_KEY: "binary", "_headers": "array<struct<key:string,value:binary>>"}
"""Columns of the record itself that can be masked -> type."""


def _kept(text: Any) -> Any:
    match = _KEEP.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError("write a number of days or hours, as 30 days")
    return f"{int(match[1])} {match[2]}s"


class TopicRule(Section):
    """Rule by which a topic, or every topic that matches a pattern, becomes a table. The first that fits counts."""

    topic: str | None = None
    pattern: str | None = None
    excluded: Annotated[tuple[str, ...], Field(alias="not", strict=False), BeforeValidator(_one_is_a_list)] = ()
    table: TablePath = "{topic}"
    format: Annotated[str, key_of(FORMATS)] = "raw"
    fields: Columns = Field(default_factory=dict, alias="schema")
    avro_schema: str | None = None
    unknown_fields: Literal["ignore", "rescue"] = "ignore"
    key_format: Annotated[str, key_of(FORMATS)] = "raw"
    key_fields: Columns = Field(default_factory=dict, alias="key_schema")
    key_prefix: str = "key_"
    headers: Annotated[dict[str, str], BeforeValidator(none_is_empty)] = Field(default_factory=dict)
    topic_column: str | None = None
    transform: HookName | None = Field(default=None, description="write module:function")
    transform_arrow: HookName | None = Field(default=None, description="write module:function")
    rows: Literal["one_to_one", "filter", "any"] = "one_to_one"
    evolve: Literal["none", "add_columns", "widen"] = "none"
    on_error: Literal["dead_letter", "stop"] = "dead_letter"
    start: str = "earliest"
    partition_by: Annotated[tuple[str, ...], Field(strict=False)] = ()
    sort_by: Annotated[tuple[str, ...], Field(strict=False)] = ()
    description: str | None = None
    comments: Annotated[dict[str, str], BeforeValidator(none_is_empty)] = Field(default_factory=dict)
    newest_rows: NewestRows | None = None
    route: Route | None = None
    complete_hours: Annotated[CompleteHours | None, Own()] = None
    mask: MaskWords = Field(default_factory=dict)
    keep: Annotated[str | None, BeforeValidator(lambda text: None if text is None else _kept(text)), Own()] = None

    @field_validator("topic")
    @classmethod
    def _topic_is_legal(cls, topic: str | None) -> str | None:
        if topic is not None and not is_topic_name(topic):
            raise ValueError("not a legal topic name; use 1 to 249 of a-z A-Z 0-9 . _ -")
        return topic

    @field_validator("pattern", "excluded")
    @classmethod
    def _patterns_compile(cls, patterns: Any) -> Any:
        for pattern in _one_is_a_list(patterns):
            check_pattern(pattern)
        return patterns

    @field_validator("fields", "key_fields", "headers")
    @classmethod
    def _columns_leave_the_underscore_to_kgs(cls, columns: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        for name in columns:
            own = name.startswith("_") and not name.startswith("__")
            if not name or (own and info.field_name != "key_fields"):
                raise ValueError(f"field '{name}': names must not be empty or begin with '_' (kgs adds such columns)")
        if problem := problem_of_names(columns):
            raise ValueError(problem)
        return columns

    @field_validator("start")
    @classmethod
    def _start_is_known(cls, start: str) -> str:
        if start not in ("earliest", "latest", "committed"):
            start_timestamp_ms(start)
        return start

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        columns, latest, route = self._problems_of_columns(), self._problems_of_latest(), self._problems_of_route()
        found = (self._problems_of_topic(), self._problems_of_formats(), columns, latest, route)
        if problems := [*chain(*found, self._problems_of_transform(), self._problems_of_mask())]:
            raise ValueError("; ".join(problems))
        return self

    def _problems_of_topic(self) -> Iterator[str]:
        if (self.topic is None) == (self.pattern is None):
            yield "give either 'topic' or 'pattern'"
        if self.excluded and self.pattern is None:
            yield "'not' leaves topics out of a 'pattern': drop it"
        paths = [self.table, *(self.newest_rows.tables if self.newest_rows is not None else ())]
        paths += self.route.tables.values() if self.route is not None else ()
        known = {"topic", *(compiled(self.pattern).groupindex if self.pattern is not None else ())}
        for path in paths:
            if unknown := sorted(set(IN_BRACES.findall(path)) - known):
                words = (
                    f"table '{path}': {', '.join(f'{{{name}}}' for name in unknown)}: neither {{topic}} nor a group "
                )
                yield f"{words}(?P<name>...) of 'pattern'"

    def _problems_of_formats(self) -> Iterator[str]:
        yield from filter(None, [problem_of_schema(self.format, has_schema=bool(self.fields))])
        if self.avro_schema is not None and self.format != "avro":
            yield "'avro_schema' is for format avro alone"
        yield from filter(None, [problem_of_key(self.key_format, has_schema=bool(self.key_fields))])
        for name, columns in ((self.format, self.fields), (self.key_format, self.key_fields)):
            for column, kind in columns.items():
                if FORMATS[name].text_map_keys and has_other_map_keys(parse_type(kind)):
                    yield f"column {column}: the keys of a JSON object are texts: write map<string,...>"
        if self.unknown_fields == "rescue" and not FORMATS[self.format].rescues:
            yield f"format '{self.format}' keeps no fields without a column: drop 'unknown_fields'"

    def _problems_of_columns(self) -> Iterator[str]:
        kept = "must not be empty or begin with '_' (kgs adds such columns)"
        if any(not name or name.startswith("_") for name in self.key_columns):
            yield f"key_prefix '{self.key_prefix}': columns {kept}"
        if any(not name or name.startswith("_") for name in self.topic_columns):
            yield f"topic_column '{self.topic_column}': {kept}"
        if alike := problem_of_names([*self.value_columns, *self.key_columns, *self.headers, *self.topic_columns]):
            cure = "change 'key_prefix', 'topic_column', or the header's column"
            yield f"of schema, key, headers and topic, {alike}: {cure}"
        yield from filter(None, [problem_of_partitions(self.partition_by)])

    def _problems_of_latest(self) -> Iterator[str]:
        latest = self.newest_rows
        if latest is None:
            return
        known = {KAFKA_KEY, *self.value_columns, *self.key_columns, *self.headers, *self.topic_columns}
        unknown = [name for name in self.newest_key if name not in known]
        if latest.changes is not None and latest.key is None and not self.key_fields:
            yield "newest_rows: changes need the columns of a key: give key: [id], or key_format and key_schema"
        if unknown and self.names_columns and not self.has_transform and latest.changes is None:
            yield f"newest_rows: key: no column {', '.join(unknown)} of value, key or headers"
        if latest.changes is not None and FORMATS[self.format].columns is not None and not self.has_transform:
            yield f"newest_rows: changes are read of fields, and format '{self.format}' has none: write json or avro"
        yield from latest.problems_beside(self.table, self.keep)
        if self.rows == "any":
            yield "newest_rows: with rows: any a record has several rows, of which none is the newest"
        if latest.deletes != "ignore" and self.has_transform and self.null_is_a_row:
            yield "newest_rows: after a transform no row tells that its value was null: deletes: ignore"

    def _problems_of_route(self) -> Iterator[str]:
        if self.route is None:
            return
        is_all = self.names_columns and not self.has_transform
        texts = dict.fromkeys([*self.headers, *self.topic_columns], "string")
        known = {} if self.has_transform else {**self.value_columns, **self.key_columns, **texts}
        yield from problems_of_route(self.route, self.table, known, is_all=is_all)
        if self.newest_rows is not None:
            yield "route: a derived table has the rows of one table: drop 'newest_rows'"
        if self.rows == "any":
            yield "route: with rows: any a missing row could not be detected: set rows: filter"

    def _problems_of_transform(self) -> Iterator[str]:
        if self.transform and self.transform_arrow:
            yield "give 'transform' (DataFrame) or 'transform_arrow' (Arrow table), not both"
        if self.evolve != "none" and self.has_transform:
            yield "with a transform the columns are what that gives: drop 'evolve', or the transform"
        if self.evolve != "none" and FORMATS[self.format].columns is not None:
            yield f"format '{self.format}' never has other columns: drop 'evolve'"

    def _problems_of_mask(self) -> Iterator[str]:
        yield from problems_beside(self.mask, self.key_columns, self.headers)
        if self.names_columns:
            yield from self.problems_of_mask(self.value_columns)
        if self.newest_rows and (lost := hides_rows(self.mask, self.newest_key, is_in_events=self.has_changes)):
            yield f"newest_rows: key '{lost}' is masked so that keys become alike: write hash"
        if self.route is not None and self.route.column in {mask_path(path)[0] for path in self.mask}:
            yield f"route: column '{self.route.column}' is masked, and has none of these values: take another one"

    def problems_of_mask(self, values: Mapping[str, str]) -> Iterator[str]:
        """Why fields cannot be masked as the rule says, where a value becomes these columns: column -> type."""
        ours = {"_rescued": "string"} if self.unknown_fields == "rescue" else {}
        kinds = {**values, **self.key_columns, **dict.fromkeys(self.headers, "string"), **ours, **MASKED_ORIGIN}
        # Topics of a pattern need not all have the field, unless it would be kept aside in clear
        must_exist = self.pattern is None or self.names_columns or bool(ours)
        columns = {name: parse_type(kind) for name, kind in kinds.items()}
        found = (problem_of_mask(columns, path, how, must_exist=must_exist) for path, how in self.mask.items())
        yield from filter(None, found)
        if (newest := self.newest_rows) is not None and newest.changes is not None:
            yield from problems_in_events(columns, self.mask, self.newest_key, self.key_prefix, newest.types)

    @property
    def has_transform(self) -> bool:
        """Whether a function of the user's makes its rows."""
        return bool(self.transform or self.transform_arrow)

    @property
    def null_is_a_row(self) -> bool:
        """Whether a record without a value is a row, of nulls; else it is a dead letter."""
        return FORMATS[self.format].takes_null or self.has_changes

    @property
    def has_changes(self) -> bool:
        """Whether its values are the changes of a database."""
        return self.newest_rows is not None and self.newest_rows.changes is not None

    @property
    def newest_key(self) -> tuple[str, ...]:
        """Key columns of the derived table."""
        if self.newest_rows is None or self.newest_rows.key is None:
            return (self.has_changes and fields_of_key(self.key_fields)) or (KAFKA_KEY,)
        return tuple(self.newest_rows.key)

    @property
    def value_columns(self) -> Mapping[str, str]:
        """Column -> type of what a record's value becomes, before a transform."""
        columns = FORMATS[self.format].columns
        return self.fields if columns is None else columns

    @property
    def key_columns(self) -> Mapping[str, str]:
        """Column -> type of what a record's key becomes beside `_key`: fields behind the prefix, or one `key`."""
        columns = FORMATS[self.key_format].columns
        if columns is None:
            return {f"{self.key_prefix}{name}": kind for name, kind in self.key_fields.items()}
        return {} if self.key_format == "raw" else dict.fromkeys([KEY_COLUMN], *columns.values())

    @property
    def topic_columns(self) -> tuple[str, ...]:
        """The column with the topic's name, or none."""
        return () if self.topic_column is None else (self.topic_column,)

    @property
    def partition_columns(self) -> tuple[PartitionColumn, ...]:
        """The columns that the table is partitioned by, in this order; none: it is not partitioned."""
        return tuple(partition_column(word) for word in self.partition_by)

    @property
    def needs_registry(self) -> str:
        """Which of its formats needs a schema registry, and the way out; empty: none."""
        if FORMATS[self.format].columns_of is not None and self.avro_schema is None:
            without = ", or the rule an 'avro_schema'" if self.format == "avro" else ""
            return f"format: '{self.format}' needs a registry: give registry.url{without}"
        if FORMATS[self.key_format].columns_of is not None:
            return f"key_format: '{self.key_format}' needs a registry: give registry.url"
        return ""

    @property
    def names_columns(self) -> bool:
        """Whether the value columns are exactly those that the rule says; else a registry, and the table, say them."""
        return bool(self.fields) or FORMATS[self.format].columns_of is None

    def matches(self, topic: str) -> bool:
        """Whether this rule is meant for `topic`."""
        if self.pattern is None:
            return topic == self.topic
        found = compiled(self.pattern).fullmatch(topic) is not None
        return found and not any(compiled(pattern).fullmatch(topic) for pattern in self.excluded)

    def table_of(self, topic: str) -> str:
        """The table's path relative to the lake's root."""
        return self.filled(self.table, topic)

    def side_tables_of(self, topic: str) -> dict[str, str]:
        """Value of the route's column, as text -> path of the table of its rows; empty where the rule has no route."""
        return {text_of(v): self.filled(path, topic) for v, path in (self.route.tables if self.route else {}).items()}

    def filled(self, path: str, topic: str) -> str:
        """A path of the rule with its names; nothing stands for a group that takes no part in the match."""
        match = compiled(self.pattern).fullmatch(topic) if self.pattern is not None else None
        names = {"topic": topic, **(match.groupdict() if match is not None else {})}
        return IN_BRACES.sub(lambda name: names.get(name[1]) or "", path)
