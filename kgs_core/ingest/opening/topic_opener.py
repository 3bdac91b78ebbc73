"""Finding the topics that a consumer reads, and opening their tables: ids, schemas, start positions."""

import logging
import threading
from collections.abc import Callable, Mapping

import pyarrow as pa

from kgs_core.config import Settings, TableSpec
from kgs_core.config.rule.field_types import problem_of_names
from kgs_core.config.rule.masking import PARTS_OF_EVENTS, mask_path
from kgs_core.config.rule.sharing import may_be_shared
from kgs_core.config.rule.start import start_timestamp_ms
from kgs_core.config.rule.value_formats import FORMATS, require_packages
from kgs_core.errors import ConfigError, UnsafeError
from kgs_core.ingest.formats.parsed import NO_COLUMNS, ColumnsOf, NoColumnsError
from kgs_core.ingest.round.reasons import recreated
from kgs_core.ingest.worker.masks import masks_of
from kgs_core.ingest.worker.process_batch import TransformError
from kgs_core.ingest.worker.topic_job import load_hook
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.committed_offsets import GroupOffsets
from kgs_core.lake.files.layout import layout_of, table_schema
from kgs_core.lake.files.row_schema import ORIGIN_FIELDS, column_types, parsed_schema, value_schema
from kgs_core.lake.rule.first_start import BEGINS_ANEW, offsets_read, second_start
from kgs_core.lake.rule.positions import AppIds
from kgs_core.lake.topics.shared_table import refuse_unlike_columns
from kgs_core.lake.topics.topic_table import TopicTable, earlier_topic_ids, has_started, value_columns
from kgs_core.model import TopicId, TopicPartition
from kgs_core.ports import Lake

_log = logging.getLogger(__name__)
DataFrameSchema = Callable[[str, str, pa.Schema], pa.Schema]


def columns_of(spec: TableSpec, lake: Lake) -> pa.Schema:
    """What values of a topic become: as its rule says or, where that leaves it to a registry, as that says.

    Where the registry's newest schema makes no columns, those of the table stay: its records are judged one by one, and
    an earlier schema's go on to be rows. Where it has none, or one of another kind, registry or rule may be wrong, and
    every record would be bad.

    Raises:
        ConfigError: the registry has no schema for the topic, or one that no columns can be made of, and there is no
            table yet, or a transform wants to know them. Or a format needs an extra that is not installed.
        PortError: the registry does not answer, or the lake.
    """
    rule = spec.rule
    for name in (rule.format, rule.key_format):
        require_packages(name, spec.topic)
    hook = FORMATS[rule.format].columns_of
    if rule.fields or hook is None:
        return value_schema(rule)
    find: ColumnsOf = load_hook(hook)
    try:
        return find(spec.topic, rule, spec.registry)
    except NoColumnsError as e:
        if rule.has_transform or not lake.table(spec.table, NO_COLUMNS).exists():
            raise
        _log.warning("table=%s keeps its columns: %s", spec.table, "; ".join(e.problems))
        return value_columns(rule, lake.columns(spec.table, pa.schema(ORIGIN_FIELDS), layout=layout_of(rule)))


def refuse_unmaskable(spec: TableSpec, columns: pa.Schema) -> None:
    """Refuse a mask of fields that values do not have, or not with such a type.

    Raises:
        ConfigError: all of them.
    """
    wanted = {mask_path(path)[0] for path in spec.rule.mask} | {*PARTS_OF_EVENTS, *spec.rule.newest_key}
    named = [f for f in columns if f.name in wanted]
    if problems := list(spec.rule.problems_of_mask(column_types(pa.schema(named)))):
        raise ConfigError([f"topic {spec.topic}: {problem}" for problem in problems])


class TopicOpener:
    """Opens topics; may be used by several threads, and calls each function of the user's by one at a time."""

    def __init__(
        self,
        settings: Settings,
        lake: Lake,
        admin: KafkaAdmin,
        group_offsets: GroupOffsets,
        dataframe_schema: DataFrameSchema,
    ) -> None:
        self._settings = settings
        self._lake = lake
        self._admin = admin
        self._group_offsets = group_offsets
        self._dataframe_schema = dataframe_schema
        self._locks: dict[str, threading.Lock] = {}

    def open(self, spec: TableSpec, topic_id: TopicId, partitions: int) -> TopicTable:
        """The topic's table, made and started if need be.

        Raises:
            UnsafeError: the table breaks the guarantee, or holds rows of an earlier topic of this name; or it is
                another topic's, with other columns; or it is missing, though the group has read the topic.
            ConfigError: the transform cannot be loaded or drops the columns that must be kept.
        """
        ids = AppIds(self._settings.group, spec.topic, topic_id)
        columns = columns_of(spec, self._lake)
        schema = self.schema_of(spec, columns)
        is_shared = may_be_shared(spec.rule, self._settings.topics)
        if is_shared:
            refuse_unlike_columns(self._lake, spec, ids, schema, is_made=False)
        table = TopicTable(self._lake, spec, ids, schema, columns)
        if not table.exists():
            self._refuse_second_start(spec, ids, partitions)
        table.open()
        if is_shared:
            refuse_unlike_columns(self._lake, spec, ids, schema, is_made=True)
        masks = masks_of(spec)
        if masks.fields:
            refuse_unmaskable(spec, table.columns)
        if not table.is_started(partitions):
            earlier = earlier_topic_ids(self._lake, spec.table, ids)
            if earlier:
                raise UnsafeError(recreated(spec.topic, earlier, topic_id))
            self._refuse_second_start(spec, ids, partitions)
            table.fix_start(self._first_offsets(spec, topic_id, partitions))
            _log.info("started topic=%s id=%s table=%s start=%s", spec.topic, topic_id, spec.table, spec.rule.start)
        table.note_secret(masks.token)
        return table

    def note_positions(self, table: TopicTable, positions: Mapping[int, int]) -> None:
        """Have Kafka know how far a table is, also while no record comes: the group's offsets expire."""
        found = {TopicPartition(table.ids.topic, p): at for p, at in positions.items()}
        self._group_offsets.report(table.ids.topic_id, table.spec.table, found)

    def _refuse_second_start(self, spec: TableSpec, ids: AppIds, partitions: int) -> None:
        tps = [TopicPartition(spec.topic, p) for p in range(partitions)]
        read = offsets_read(self._group_offsets.committed(tps), ids.topic_id, spec.table, spec.rule.start)
        if read and not has_started(self._lake, spec.table, ids):
            raise UnsafeError(second_start(spec.table, ids.group, read))

    def schema_of(self, spec: TableSpec, columns: pa.Schema) -> pa.Schema:
        """Columns of the table of a topic whose values become `columns`.

        Raises:
            ConfigError: see `open`.
        """
        rule = spec.rule
        schema = parsed_schema(rule, columns)
        if problem := problem_of_names(schema.names):
            raise ConfigError([f"topic {spec.topic}: of value, key, headers and topic, {problem}: change the rule"])
        lock = self._locks.setdefault(rule.transform or rule.transform_arrow or "", threading.Lock())
        try:
            if rule.transform is not None:
                with lock:
                    schema = self._dataframe_schema(rule.transform, spec.topic, schema)
            elif rule.transform_arrow is not None:
                with lock:
                    schema = load_hook(rule.transform_arrow)(schema.empty_table(), spec.topic).schema
        except TransformError as e:
            raise ConfigError([f"topic {spec.topic}: {e}"]) from e
        except (Exception, SystemExit) as e:
            raise ConfigError(
                [f"topic {spec.topic}: transform_arrow {rule.transform_arrow}: {type(e).__name__}: {e}"]
            ) from e
        lost = [f.name for f in ORIGIN_FIELDS if f.name not in schema.names or schema.field(f.name).type != f.type]
        if lost:
            raise ConfigError(
                [f"topic {spec.topic}: its transform must keep the columns {', '.join(lost)} as they are"]
            )
        try:
            return table_schema(rule, pa.schema([pa.field(f.name, f.type) for f in schema]))
        except ValueError as e:
            raise ConfigError([f"topic {spec.topic}: {e}"]) from e

    def _first_offsets(self, spec: TableSpec, topic_id: TopicId, partitions: int) -> dict[int, int]:
        """Where reading begins. "latest" ends before an open transaction: its records are not read by anybody yet."""
        tps = [TopicPartition(spec.topic, p) for p in range(partitions)]
        start = spec.rule.start
        if start == "latest":
            found = self._admin.offsets(tps, "latest", committed_reads=True)
        elif start.startswith("timestamp:"):
            found = self._admin.offsets_at(tps, start_timestamp_ms(start), committed_reads=True)
        else:
            found = self._admin.offsets(tps, "earliest")
        if start == "committed":
            committed = self._group_offsets.committed(tps)
            found |= {tp: at.offset for tp, at in committed.items() if at.topic_id in (None, topic_id, BEGINS_ANEW)}
        return {tp.partition: offset for tp, offset in found.items()}
