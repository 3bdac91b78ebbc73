"""Values that name their schema in a registry: found out by schema, decoded schema by schema, put in order again."""

import time
from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

import pyarrow as pa

from kgs_core.config.registry import RegistrySettings
from kgs_core.config.rule.field_types import problem_of_names
from kgs_core.errors import ConfigError, TransientError
from kgs_core.ingest.formats.parsed import (
    MAX_REASON,
    NoColumnsError,
    Parsed,
    Pieces,
    UnusableSchemaError,
    ValueBatch,
)
from kgs_core.ports.registry import RegisteredSchema, SchemaKind, UnknownSchemaError
from kgs_core.registry.client import RegistryClient, open_registry
from kgs_core.registry.wire_format import FramedValues, SchemaGroup, unframe, unframed

ASKING_S = 10.0


Decode = Callable[[RegisteredSchema, SchemaGroup, FramedValues, Pieces], None]
ColumnsOfSchema = Callable[[RegisteredSchema], pa.Schema]


def parse_by_schema(
    batch: ValueBatch, kind: SchemaKind, decode: Decode, inline: RegisteredSchema | None = None
) -> Parsed:
    """Values of a batch to columns, by the schema of each.

    Args:
        kind: of schema that is wanted; a value that names another one is bad.
        decode: adds to `Pieces` what becomes of the values of one schema; UnusableSchemaError makes all of them bad.
        inline: the schema of all values, which then have no frame; None: each names its own.
    """
    if inline is None:
        framed = unframe(batch.values, batch.headers, batch.schema_header)
        ask = within_patience(registry_of(batch.registry))
    else:
        framed, ask = unframed(batch.values), lambda _: inline
    pieces = Pieces(batch.columns, dict(framed.bad))
    # By their first values: what is asked for first is what a partition would wait at first
    for group in sorted(framed.groups, key=lambda group: int(group.positions[0])):
        positions = group.positions.tolist()
        try:
            schema = ask(group)
        except TransientError as e:
            pieces.waiting.update(dict.fromkeys(positions, str(e)[:MAX_REASON]))
            continue
        except UnknownSchemaError as e:
            pieces.fail(positions, str(e))
            pieces.unknown.update(dict.fromkeys(positions, e.for_s))
            continue
        if schema.kind is not kind:
            pieces.fail(positions, f"schema {group.schema} is of kind {schema.kind}, not {kind}")
            continue
        try:
            decode(schema, group, framed, pieces)
        except UnusableSchemaError as e:
            pieces.fail(positions, f"schema {group.schema}: {e}")
    return pieces.parsed()


def within_patience(registry: RegistryClient) -> Callable[[SchemaGroup], RegisteredSchema]:
    """The schema that each group of one batch names, until asking has taken `ASKING_S`; other groups wait for the next.

    Values of another producer may name a schema each that nobody has, and a batch has a time that it must end in.
    """
    spent_s = 0.0

    def asked(group: SchemaGroup) -> RegisteredSchema:
        nonlocal spent_s
        if spent_s > ASKING_S:
            raise TransientError(f"the schema registry was asked for {ASKING_S:g} s: the next batch goes on from here")
        began = time.monotonic()
        try:
            named = group.schema
            return registry.by_guid(str(named)) if isinstance(named, UUID) else registry.by_id(named)
        finally:
            spent_s += time.monotonic() - began

    return asked


def registry_of(settings: RegistrySettings | None) -> RegistryClient:
    """The registry of the settings.

    Raises:
        ConfigError: there is none.
    """
    if settings is None:
        raise ConfigError(["registry: needed by a topic's format: give its url"])
    return open_registry(settings)


def newest_columns(
    topic: str, settings: RegistrySettings | None, kind: SchemaKind, columns_of: ColumnsOfSchema
) -> pa.Schema:
    """The columns of the newest schema of a topic's values; see `ColumnsOf`."""
    subject = f"{topic}-value"
    try:
        found = registry_of(settings).latest(subject)
    except UnknownSchemaError as e:
        raise ConfigError([f"topic {topic}: {e}: register one as subject {subject}, or give the rule a schema"]) from e
    if found.kind is not kind:
        raise ConfigError([f"topic {topic}: subject {subject} is of kind {found.kind}: give the rule another format"])
    return usable_columns(f"topic {topic}: subject {subject}", found, columns_of)


def usable_columns(where: str, schema: RegisteredSchema, columns_of: ColumnsOfSchema) -> pa.Schema:
    """The columns of a schema, if a table can have them beside those that kgs adds.

    Raises:
        NoColumnsError: the schema makes none, or their names are taken, or differ only in case.
    """
    try:
        columns = columns_of(schema)
    except UnusableSchemaError as e:
        raise NoColumnsError([f"{where}: {e}: give the rule a schema"]) from e
    taken = [name for name in columns.names if name.startswith("_") and not name.startswith("__")]
    problems = [f"field {name} begins with '_', as the columns that kgs adds" for name in taken]
    problems += [problem for each in structs(columns) if (problem := problem_of_names(each))]
    problems += [] if columns.names else ["its schema has no fields"]
    if problems:
        raise NoColumnsError([f"{where}: {problem}: give the rule a schema" for problem in problems])
    return columns


def structs(kind: pa.DataType | pa.Schema) -> Iterator[Sequence[str]]:
    """Names beside each other, of columns and of the fields of structs within."""
    if isinstance(kind, pa.Schema) or pa.types.is_struct(kind):
        yield [each.name for each in kind]
        inner = [each.type for each in kind]
    else:
        inner = [kind.field(n).type for n in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    for each in inner:
        yield from structs(each)
