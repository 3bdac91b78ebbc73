"""Audits values: the records that Kafka still has, parsed again by their rule, against the rows of their tables.

The log is read once more than by the audit of offsets. Rows and records are held as numbers: 16 bytes a row.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from kgs_core.config import Settings, TableSpec, resolve_tables
from kgs_core.errors import KgsError, PortError, TransientError, one_line
from kgs_core.ingest.fetch.topic_records import records_of
from kgs_core.ingest.opening.topic_opener import columns_of
from kgs_core.ingest.worker.parsed_records import parse_records
from kgs_core.ingest.worker.process_batch import TransformError, transform_arrow
from kgs_core.ingest.worker.sorted_records import rows_of
from kgs_core.ingest.worker.topic_job import TopicPlan
from kgs_core.kafka.admin import KafkaAdmin, admin_of
from kgs_core.kafka.records import Record
from kgs_core.lake.audit.audit_kafka_log import load_log
from kgs_core.lake.files.columns import as_wide_as_there, widened
from kgs_core.lake.files.layout import as_kept
from kgs_core.lake.files.places import READ_THREADS, offsets_of
from kgs_core.lake.files.row_digests import Digests, row_digests
from kgs_core.lake.rule import NO_OFFSETS, LakeAudit, Offsets, TableAudit
from kgs_core.lake.rule.audit import changed
from kgs_core.lake.rule.table_owner import MASKED, refuse_other_secret
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.side_tables import side_tables_of
from kgs_core.lake.topics.topic_table import value_columns
from kgs_core.model import OffsetRange, TopicId
from kgs_core.ports import Lake, PinnedTable

Progress = Callable[[str, int, int], None]
_Rows = Mapping[int, tuple[Offsets, Digests]]
"""By partition: offsets, and what their rows come to."""


def audit_values(settings: Settings, found: LakeAudit, progress: Progress | None = None) -> LakeAudit:
    """The audit of offsets, with what the values of rows say. Changes nothing.

    Raises:
        PortError: Kafka did not answer. A table whose values cannot be compared is a `problem` of its audit.
    """
    lake, admin = open_lake(settings.lake), admin_of(settings)
    tables = tuple(_audited(settings, lake, admin, table, progress) for table in found.tables)
    return LakeAudit(tables, found.derived)


def _audited(
    settings: Settings, lake: Lake, admin: KafkaAdmin, table: TableAudit, progress: Progress | None
) -> TableAudit:
    is_known = table.topic and not table.problem
    # One by one: a topic that is gone may have a name that no other one could have beside it
    spec = resolve_tables(settings, [table.topic]).get(table.topic) if is_known else None
    if spec is None:
        return table
    known = admin.describe([spec.topic]).get(spec.topic)
    if table.version is None or known is None or spec.rule.transform is not None:
        why = "made by a Spark transform" if spec.rule.transform is not None else "no table or no topic"
        return replace(table, notes=(*table.notes, f"values not compared: {why}"))
    ranges = {
        p.stored.partition: OffsetRange(p.stored.start, p.stored.position)
        for p in table.partitions
        if p.stored.topic_id == known.topic_id and p.stored.start is not None and p.stored.position is not None
    }
    wanted = {partition: span for partition, span in ranges.items() if partition < known.partitions}
    try:
        plan = _plan(lake, spec, known.topic_id)
        comparison = _Comparison(plan, _rows_in(lake, settings.group, plan))
        load_log(
            settings, admin, spec.topic, wanted, lambda done, total: progress and progress(spec.topic, done, total),
            comparison.take,
        )  # fmt: skip
    except (KgsError, TransformError) as e:
        return replace(table, problem=f"values not compared: {one_line(e)}")
    partitions = tuple(
        replace(p, findings=(*p.findings, *changed(comparison.changed_in(p.stored.partition))))
        if p.stored.topic_id == known.topic_id
        else p
        for p in table.partitions
    )
    left = f"values of {comparison.unjudged:,} rows not compared: the schema registry lacks their schemas: audit again"
    return replace(
        table, partitions=partitions, compared=comparison.compared, problem=left if comparison.unjudged else ""
    )


def _plan(lake: Lake, spec: TableSpec, topic_id: TopicId) -> TopicPlan:
    schema, rule = lake.open(spec.table).schema, spec.rule
    columns = value_columns(rule, schema)
    if rule.names_columns or rule.transform_arrow is not None:
        columns = columns_of(spec, lake)
        columns = as_wide_as_there(widened(columns), schema) if rule.evolve == "widen" else columns
    plan = TopicPlan.of(spec, topic_id, schema, columns)
    if plan.masks.fields:
        refuse_other_secret(spec.table, lake.all_versions(spec.table).get(MASKED), plan.masks.token)
    return plan


def _rows_in(lake: Lake, group: str, plan: TopicPlan) -> _Rows:
    """Of all rows of this topic id, in whatever table they are."""
    spec = plan.spec
    parts: dict[int, list[tuple[Offsets, Digests]]] = {}
    try:
        for name in (spec.table, *side_tables_of(lake, spec, group)):
            pinned = lake.pin(name)
            if pinned is not None:
                with ThreadPoolExecutor(READ_THREADS) as pool:
                    for found in pool.map(partial(_of_file, plan, pinned), pinned.files()):
                        for partition, rows in found.items():
                            parts.setdefault(partition, []).append(rows)
    except PortError:
        raise
    except Exception as e:
        raise TransientError(f"table {spec.table}: cannot be read: {one_line(e)}: audit again") from e
    return {partition: _of_each_offset(rows) for partition, rows in parts.items()}


def _of_file(plan: TopicPlan, pinned: PinnedTable, file: str) -> _Rows:
    """No more than numbers is kept of a file."""
    return _by_partition(plan, pinned.read(file, plan.given.names))


def _by_partition(plan: TopicPlan, rows: pa.Table) -> _Rows:
    """Of each row of this topic id, in no order."""
    given = pa.schema([field for field in plan.given if field.name in rows.column_names])
    rows = rows.select(given.names).cast(given)
    digests, offsets = row_digests(rows), rows["_offset"].to_numpy()
    places = rows.select(["_topic_id", "_partition"]).append_column("_offset", pa.array(np.arange(rows.num_rows)))
    return {
        key.partition: (offsets[at], digests[at])
        for key, at in offsets_of(places).items()
        if key.topic_id == plan.topic_id
    }


def _of_each_offset(parts: Iterable[tuple[Offsets, Digests]]) -> tuple[Offsets, Digests]:
    """The same row twice is another finding: it counts once."""
    both = np.concatenate([np.stack([offsets.view(np.uint64), digests]) for offsets, digests in parts], axis=1)
    both = np.unique(both, axis=1)
    offsets, firsts = np.unique(both[0].view(np.int64), return_index=True)
    return offsets, np.add.reduceat(both[1], firsts) if len(firsts) else both[1]


@dataclass
class _Comparison:
    """Of one topic's records with its rows, some records at a time.

    Attributes:
        compared: rows whose record has come.
        unjudged: rows whose record has come, and its schema not.
    """

    plan: TopicPlan
    rows: _Rows
    compared: int = 0
    unjudged: int = 0
    _changed: dict[int, list[Offsets]] = field(default_factory=dict)

    def take(self, messages: Sequence[Record]) -> None:
        """Compare what becomes of these."""
        records = records_of(messages)
        parsed = parse_records(self.plan, records)
        if parsed.waiting:
            raise TransientError(f"topic {self.plan.spec.topic}: {next(iter(parsed.waiting.values()))}: audit again")
        rows = rows_of(self.plan, parsed, records, without=records.faults)
        made = _by_partition(self.plan, as_kept(self.plan.spec.rule, transform_arrow(self.plan, rows)))
        partitions, offsets = records.partitions, records.offsets
        is_judged = ~np.isin(np.arange(len(records)), list(parsed.unknown))
        for partition in self.rows.keys() & {*partitions.tolist()}:
            is_here = partitions == partition
            self.unjudged += int(np.isin(self.rows[partition][0], offsets[is_here & ~is_judged]).sum())
            self._compare(partition, offsets[is_here & is_judged], made.get(partition))

    def _compare(self, partition: int, records: Offsets, made: tuple[Offsets, Digests] | None) -> None:
        there, digests = self.rows[partition]
        inside = np.isin(there, records)
        there, digests = there[inside], digests[inside]
        self.compared += len(there)
        offsets, wanted = _of_each_offset([made]) if made is not None else (NO_OFFSETS, np.empty(0, np.uint64))
        at = np.searchsorted(offsets, there)
        is_made = np.isin(there, offsets)
        is_equal = is_made.copy()
        is_equal[is_made] = wanted[at[is_made]] == digests[is_made]
        self._changed.setdefault(partition, []).append(there[~is_equal])

    def changed_in(self, partition: int) -> Offsets:
        """Offsets of rows that are not what their record becomes, ascending."""
        found = self._changed.get(partition, [])
        return np.unique(np.concatenate(found)) if found else NO_OFFSETS
