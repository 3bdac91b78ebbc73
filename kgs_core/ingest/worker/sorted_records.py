"""Records of one topic, sorted: rows of the good ones, the bad ones apart, and what partitions are read up to."""

import contextlib
import importlib
from collections.abc import Callable, Container, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from kgs_core.accel.compiled import machine_code
from kgs_core.config import TopicRule
from kgs_core.config.registry import RegistrySettings
from kgs_core.config.rule.value_formats import FORMATS
from kgs_core.ingest.fetch.topic_records import TopicRecords
from kgs_core.ingest.formats import raw, texts  # noqa: F401 - not in the first batch
from kgs_core.ingest.formats.json import json_objects  # noqa: F401 - not in the first batch
from kgs_core.ingest.formats.parsed import NO_COLUMNS, Parsed, Parser, ValueBatch
from kgs_core.ingest.formats.record_columns import (
    header_columns,
    parse_keys,
    side_by_side,
    with_rescued,
    with_topic,
)
from kgs_core.lake.files.columns import lacking
from kgs_core.lake.files.layout import given_schema, unfit
from kgs_core.lake.files.row_schema import DEAD_LETTER_SCHEMA, parsed_schema, schema_of, value_schema
from kgs_core.lake.rule.error_codes import with_code
from kgs_core.model import TopicId

UNKNOWN_SCHEMA_S = 120.0
"""A registry that lags, has just started or was restored says of schemas that it has none: it is asked for so long."""


@dataclass(frozen=True, slots=True)
class TopicJob:
    """Job of a worker on one topic. Picklable.

    Attributes:
        table: path under the lake's root; `dead_letters_table` likewise.
        schema: the table's columns: those after the transform, and those that the layout computes.
        dead_letter_marks: partition -> offset below which dead letters are in the lake already; None where there are
            none.
        leader_epochs: partition -> leader epoch of the record before its position; for the dataframe processor.
        columns: what a value becomes, before the transform; None: as the rule says.
        registry: where the schemas of values are.
        sides: value of the route's column, as text -> side table of its rows.
        side_marks: side table -> partition -> offset below which its rows are in the lake already.
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

    @property
    def given(self) -> pa.Schema:
        """The columns that come out of the transform."""
        return given_schema(self.rule, self.schema)


@dataclass(frozen=True, slots=True)
class EarlierReading:
    """What an earlier reading of the same offsets has left in the lake, where its batch was committed in part.

    Attributes:
        marks: partition that is read from below marks of dead letters or side tables -> the highest of these.
        letters: partition -> offsets of the dead letters that are there.
        rows: likewise, of rows in side tables.
    """

    marks: Mapping[int, int]
    letters: Mapping[int, AbstractSet[int]]
    rows: Mapping[int, AbstractSet[int]]


NOTHING_EARLIER = EarlierReading({}, {}, {})


@dataclass(frozen=True, slots=True)
class Cuts:
    """Records that partitions are read up to: such a record and what lies behind it is neither row nor dead letter.

    Attributes:
        stopped: partition -> (offset, reason) of the first bad record, where bad records stop the partition.
        waiting: partition -> (offset, reason) of the first record that cannot be judged yet. No partition is in both.
    """

    stopped: Mapping[int, tuple[int, str]] = field(default_factory=dict)
    waiting: Mapping[int, tuple[int, str]] = field(default_factory=dict)

    @property
    def by_partition(self) -> Mapping[int, tuple[int, str]]:
        """Offset and reason of each."""
        return {**self.stopped, **self.waiting}

    def with_others(self, others: "Cuts") -> "Cuts":
        """These, and those of other partitions."""
        return Cuts({**self.stopped, **others.stopped}, {**self.waiting, **others.waiting})


@dataclass(slots=True)
class Sorted:
    """Records of one topic, the good ones as rows and the bad ones apart.

    Attributes:
        rows: value columns and origin columns of the good records.
        dead_letters: the bad ones that are not in the lake yet, in the columns of a dead-letter table.
        bad: how many are bad, whether their dead letters are new or not.
        cuts: what partitions are read up to.
        missing: columns that values have and the job's columns lack.
        unsettled: partitions with dead letters that another reading might not find (`exactly_once.judgements`).
    """

    rows: pa.Table
    dead_letters: pa.Table
    bad: int
    cuts: Cuts
    missing: pa.Schema = NO_COLUMNS
    unsettled: frozenset[int] = frozenset()


def sort_records(job: TopicJob, records: TopicRecords, earlier: EarlierReading = NOTHING_EARLIER) -> Sorted:
    """Parse records; what comes of a record depends on that record alone, and on what a registry and the lake say."""
    parsed = parse_records(job, records)
    origin = records.with_topic(job.topic_id)
    judged = _judged(records, parsed, earlier)
    cuts = _cuts(job, records, judged.bad, judged.waiting)
    bad, letters = {} if job.rule.on_error == "stop" else judged.bad, judged.letters
    rows, good, ends = parsed.table, parsed.good, cuts.by_partition
    if ends:
        at = zip(both := [*bad, *letters], records.places(both), strict=True)
        before = {i for i, place in at if not _is_behind(place, ends)}
        bad, letters = {i: why for i, why in bad.items() if i in before}, letters & before
    if ends or records.faults or judged.done:
        places = records.places(good)
        kept = (i not in records.faults and i not in judged.done for i in good)
        keep = [n for n, is_kept in enumerate(kept) if is_kept and not _is_behind(places[n], ends)]
        rows, good = rows.take(pa.array(keep, pa.int64())), [good[n] for n in keep]
    chosen = origin if len(good) == len(records) else origin.take(pa.array(good, pa.int64()))
    columns = pa.schema([*rows.schema, *chosen.schema])
    rows = pa.Table.from_arrays([*rows.columns, *chosen.columns], schema=columns)
    unsettled = frozenset(p for p, _ in records.places(sorted(judged.unsettled & bad.keys())))
    return Sorted(rows, _dead_letters(records, bad, origin), len(bad) + len(letters), cuts, parsed.missing, unsettled)


@dataclass(slots=True)
class _Judged:
    """Records by position, where they are not simply good.

    Attributes:
        bad: with the reason.
        waiting: with what they wait for.
        letters: whose dead letters an earlier reading has left, whatever they would be now.
        done: these, and those whose rows it has left in side tables.
        unsettled: those of `bad` that another reading might find good.
    """

    bad: dict[int, str]
    waiting: dict[int, str]
    letters: AbstractSet[int] = frozenset()
    done: AbstractSet[int] = frozenset()
    unsettled: set[int] = field(default_factory=set)


def _judged(records: TopicRecords, parsed: Parsed, earlier: EarlierReading) -> _Judged:
    found = _Judged({**parsed.bad, **records.faults}, {})  # what no column took is lost in the dead letter, whatever
    found.waiting = {i: why for i, why in parsed.waiting.items() if i not in found.bad}
    if earlier.marks:
        places = list(enumerate(records.places(range(len(records)))))
        found.letters = {i for i, (p, offset) in places if offset in earlier.letters.get(p, ())}
        found.done = found.letters | {i for i, (p, offset) in places if offset in earlier.rows.get(p, ())}
        found.bad = {i: why for i, why in found.bad.items() if i not in found.done}
        found.waiting = {i: why for i, why in found.waiting.items() if i not in found.done}
    if not parsed.unknown and not earlier.marks:
        return found
    for i, (partition, offset) in zip(list(found.bad), records.places(list(found.bad)), strict=True):
        for_s = None if i in records.faults else parsed.unknown.get(i)
        if for_s is not None and for_s < UNKNOWN_SCHEMA_S:
            words = f"the registry is asked until it has said so for {UNKNOWN_SCHEMA_S:g} s"
            found.waiting[i] = f"{found.bad.pop(i)}: {words}"
        elif for_s is not None or offset < earlier.marks.get(partition, 0):
            found.unsettled.add(i)
    return found


def _cuts(job: TopicJob, records: TopicRecords, bad: Mapping[int, str], waiting: Mapping[int, str]) -> Cuts:
    stopped = _first(records, bad) if job.rule.on_error == "stop" else {}
    later = _first(records, waiting)
    return Cuts(
        {p: at for p, at in stopped.items() if p not in later or at < later[p]},
        {p: at for p, at in later.items() if p not in stopped or at < stopped[p]},
    )


def _first(records: TopicRecords, reasons: Mapping[int, str]) -> dict[int, tuple[int, str]]:
    """Partition -> offset and reason of the first of these records."""
    last_first = sorted(reasons, reverse=True)
    places = zip(last_first, records.places(last_first), strict=True)
    return {partition: (offset, reasons[i]) for i, (partition, offset) in places}


def parse_records(job: TopicJob, records: TopicRecords) -> Parsed:
    """What becomes of values, keys, headers and the topic's name, side by side; what the table cannot take is bad."""
    rule, headers = job.rule, records.origin["_headers"].combine_chunks()
    columns = value_schema(rule) if job.columns is None else job.columns
    rescue = rule.unknown_fields == "rescue"
    values = ValueBatch(records.values, columns, job.topic, rule, headers, job.registry, rescue=rescue)
    parts = [with_rescued(_parser(rule.format)(values), wanted=rescue)]
    if rule.key_columns:
        columns = schema_of(FORMATS[rule.key_format].columns or rule.key_fields)
        keys = records.origin["_key"].combine_chunks()
        batch = ValueBatch(keys, columns, job.topic, rule, headers, job.registry, is_key=True)
        parts.append(parse_keys(_parser(rule.key_format), batch, list(rule.key_columns)))
    if rule.headers:
        parts.append(header_columns(headers, rule.headers))
    return _without_unfit(job, with_topic(side_by_side(parts), job.topic, rule.topic_columns))


def rows_of(parsed: Parsed, records: TopicRecords, topic_id: TopicId, without: Container[int]) -> pa.Table:
    """Rows of the good records, before a transform, but for those at the positions `without`."""
    keep = [n for n, i in enumerate(parsed.good) if i not in without]
    values = parsed.table.take(pa.array(keep, pa.int64()))
    origin = records.with_topic(topic_id).take(pa.array([parsed.good[n] for n in keep], pa.int64()))
    columns = pa.schema([*values.schema, *origin.schema])
    return pa.Table.from_arrays([*values.columns, *origin.columns], schema=columns)


def load_parsers(rules: Iterable[TopicRule]) -> None:
    """Load what the formats of these need, which may take seconds, before the records wait for it."""
    for name in {name for rule in rules for name in (rule.format, rule.key_format)}:
        with contextlib.suppress(Exception):  # the topic's own affair, once there are records
            _parser(name)
            if FORMATS[name].loops:
                machine_code(FORMATS[name].loops)


def _parser(name: str) -> Parser:
    parser: Parser = load_hook(FORMATS[name].parser)
    return parser


def _without_unfit(job: TopicJob, parsed: Parsed) -> Parsed:
    """Values that no partition can have are bad, where they are the record's own and not a transform's."""
    if job.rule.transform or job.rule.transform_arrow or not (bad := unfit(job.rule, parsed.table)):
        return parsed
    keep = [n for n in range(len(parsed.good)) if n not in bad]
    good = [parsed.good[n] for n in keep]
    reasons = {**parsed.bad, **{parsed.good[n]: reason for n, reason in bad.items()}}
    return replace(parsed, table=parsed.table.take(pa.array(keep, pa.int64())), good=good, bad=reasons)


def _is_behind(at: tuple[int, int], ends: Mapping[int, tuple[int, str]]) -> bool:
    partition, offset = at
    end = ends.get(partition)
    return end is not None and offset >= end[0]


def _dead_letters(records: TopicRecords, bad: Mapping[int, str], origin: pa.Table) -> pa.Table:
    if not bad:
        return DEAD_LETTER_SCHEMA.empty_table()
    which = pa.array(sorted(bad), pa.int64())
    columns = [records.values.take(which), pa.array([with_code(bad[i]) for i in sorted(bad)], pa.string())]
    return pa.Table.from_arrays([*columns, *origin.take(which).columns], schema=DEAD_LETTER_SCHEMA)


def load_hook(name: str) -> Callable[..., Any]:
    """The function that `module:function` names.

    Raises:
        ImportError, AttributeError: there is none.
    """
    module, _, function = name.partition(":")
    hook: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return hook


class MoreColumnsError(Exception):
    """Good values have columns that their table lacks and may be given.

    Attributes:
        columns: what it lacks.
    """

    def __init__(self, columns: pa.Schema) -> None:
        super().__init__(f"columns {', '.join(columns.names)}")
        self.columns = columns


def more_columns(job: TopicJob, missing: pa.Schema) -> list[pa.Field]:
    """What the table is to be given; empty where it may not, and where nothing of it can be added."""
    rule = job.rule
    if rule.evolve == "none" or rule.names_columns or job.columns is None:
        return []
    taken = {name.lower() for name in (*parsed_schema(rule, NO_COLUMNS).names, *job.schema.names)}
    taken -= {name.lower() for name in job.columns.names}
    own = [f for f in missing if not f.name.startswith("_") and f.name.lower() not in taken]
    return lacking(job.columns, own)
