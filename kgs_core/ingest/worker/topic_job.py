"""What a worker must know of a topic: what its rule wants of every batch, and how far its tables are."""

from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field
from importlib import import_module
from typing import Any

import pyarrow as pa

from kgs_core.config import TopicRule
from kgs_core.config.registry import RegistrySettings
from kgs_core.config.rule.value_formats import FORMATS
from kgs_core.errors import ProtocolError
from kgs_core.ingest.formats.parsed import NO_COLUMNS
from kgs_core.ingest.worker.masks import Masks
from kgs_core.lake.files.columns import lacking
from kgs_core.lake.files.layout import file_schema, given_schema
from kgs_core.lake.files.row_schema import parsed_schema, schema_of, value_schema
from kgs_core.model import TopicId


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """What a rule wants of each batch, worked out once, when the topic is opened. Picklable.

    Attributes:
        values: columns that a value becomes, before the transform.
        keys: columns that a key becomes.
        given: the table's columns that come out of the transform: all but those that the layout computes.
        in_file: the table's columns that its files hold: all but the partition columns.
        may_grow: the table may be given columns that values have and it lacks.
        taken: names that none of these may have, in lower case.
    """

    values: pa.Schema
    keys: pa.Schema
    given: pa.Schema
    in_file: pa.Schema
    may_grow: bool
    taken: frozenset[str]

    @classmethod
    def of(cls, rule: TopicRule, schema: pa.Schema, columns: pa.Schema | None = None) -> "TopicPlan":
        """Plan for a table of these columns.

        `columns`: what a value becomes, before the transform; None: as the rule says.
        """
        values = value_schema(rule) if columns is None else columns
        may_grow = rule.evolve != "none" and not rule.names_columns and columns is not None
        others = (*parsed_schema(rule, NO_COLUMNS).names, *schema.names) if may_grow else ()
        return cls(
            values,
            schema_of(FORMATS[rule.key_format].columns or rule.key_fields) if rule.key_columns else NO_COLUMNS,
            given_schema(rule, schema) if rule.partition_columns else schema,
            file_schema(rule, schema) if rule.partition_columns else schema,
            may_grow,
            frozenset(name.lower() for name in others) - {name.lower() for name in values.names},
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
        table: path under the lake's root; `dead_letters_table` likewise.
        dead_letter_marks: partition -> offset below which dead letters are in the lake already; None where there are
            none.
        leader_epochs: partition -> leader epoch of the record before its position; for the dataframe processor.
        columns: what a value becomes, before the transform; None: as the rule says.
        sides: value of the route's column, as text -> side table of its rows.
        side_marks: side table -> partition -> offset below which its rows are in the lake already.
        masks: what of the rule's fields is not to be seen; None: it has no `mask`.
        made: the plan of rule, schema and columns, where it is made already.
    """

    topic: str
    topic_id: TopicId
    rule: TopicRule
    table: str
    dead_letters_table: str
    schema: pa.Schema
    dead_letter_marks: Mapping[int, int | None]
    leader_epochs: Mapping[int, int] = field(default_factory=dict)
    columns: pa.Schema | None = None
    registry: RegistrySettings | None = None
    sides: Mapping[str, str] = field(default_factory=dict)
    side_marks: Mapping[str, Mapping[int, int | None]] = field(default_factory=dict)
    masks: Masks | None = None
    made: InitVar[TopicPlan | None] = None
    plan: TopicPlan = field(init=False)

    def __post_init__(self, made: TopicPlan | None) -> None:
        if self.rule.mask and self.masks is None:
            raise ProtocolError(f"topic {self.topic}: its fields would be written unmasked")
        object.__setattr__(self, "plan", made or TopicPlan.of(self.rule, self.schema, self.columns))


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
