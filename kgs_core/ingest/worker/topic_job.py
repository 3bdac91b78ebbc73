"""What a worker must know of a topic: what its rule wants of every batch, and how far its tables are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pyarrow as pa

from kgs_core.config import TableSpec
from kgs_core.config.rule.value_formats import FORMATS
from kgs_core.ingest.formats.parsed import NO_COLUMNS
from kgs_core.ingest.worker.masks import Masks, masks_of
from kgs_core.lake.files.columns import lacking
from kgs_core.lake.files.layout import given_schema
from kgs_core.lake.files.row_schema import parsed_schema, schema_of, value_schema
from kgs_core.model import TopicId


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """What is the same for each batch of a topic, worked out once, when that is opened. Picklable.

    Attributes:
        schema: the table's columns.
        values: columns that a value becomes, before the transform.
        keys: columns that a key becomes.
        given: the table's columns that come out of the transform: all but those that the layout computes.
        may_grow: the table may be given columns that values have and it lacks.
        taken: names that none of these may have, in lower case.
        masks: what of the rule's fields is not to be seen.
    """

    spec: TableSpec
    topic_id: TopicId
    schema: pa.Schema
    values: pa.Schema
    keys: pa.Schema
    given: pa.Schema
    may_grow: bool
    taken: frozenset[str]
    masks: Masks

    @classmethod
    def of(cls, spec: TableSpec, topic_id: TopicId, schema: pa.Schema, columns: pa.Schema | None = None) -> "TopicPlan":
        """Plan for a table of these columns.

        `columns`: what a value becomes, before the transform; None: as the rule says.

        Raises:
            PermanentError: as `masks_of`.
        """
        rule = spec.rule
        values = value_schema(rule) if columns is None else columns
        may_grow = rule.evolve != "none" and not rule.names_columns and columns is not None
        others = (*parsed_schema(rule, NO_COLUMNS).names, *schema.names) if may_grow else ()
        return cls(
            spec,
            topic_id,
            schema,
            values,
            schema_of(FORMATS[rule.key_format].columns or rule.key_fields) if rule.key_columns else NO_COLUMNS,
            given_schema(rule, schema),
            may_grow,
            frozenset(name.lower() for name in others) - {name.lower() for name in values.names},
            masks_of(spec),
        )

    def more_columns(self, missing: pa.Schema) -> list[pa.Field]:
        """Columns that values have and the table is to be given; none where it may not, or nothing can be added."""
        if not self.may_grow:
            return []
        own = [f for f in missing if not f.name.startswith("_") and f.name.lower() not in self.taken]
        return lacking(self.values, own)


@dataclass(frozen=True, slots=True)
class TopicJob:
    """Job of a worker on one topic. Picklable.

    Attributes:
        dead_letter_marks: partition -> offset below which dead letters are in the lake already; None where there are
            none.
        leader_epochs: partition -> leader epoch of the record before its position, where it is known.
        side_marks: side table -> partition -> offset below which its rows are in the lake already.
    """

    plan: TopicPlan
    dead_letter_marks: Mapping[int, int | None]
    leader_epochs: Mapping[int, int] = field(default_factory=dict)
    side_marks: Mapping[str, Mapping[int, int | None]] = field(default_factory=dict)

    @property
    def topic(self) -> str:
        """Its name."""
        return self.plan.spec.topic


class MoreColumnsError(Exception):
    """Good values have columns that their table lacks and may be given."""

    def __init__(self, columns: pa.Schema) -> None:
        super().__init__(f"columns {', '.join(columns.names)}")
        self.columns = columns


def load_hook(name: str) -> Callable[..., Any]:
    """The function that `module:function` names.

    Raises:
        ImportError, AttributeError: there is none.
    """
    module, _, function = name.partition(":")
    hook: Callable[..., Any] = getattr(import_module(module), function)
    return hook
