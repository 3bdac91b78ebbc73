"""Records of one topic, sorted: rows of the good ones, the bad ones apart, and what partitions are read up to."""

import contextlib
from collections.abc import Container, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

import pyarrow as pa

from kgs_core.accel.compiled import machine_code
from kgs_core.config.rule.value_formats import FORMATS
from kgs_core.errors import PortError
from kgs_core.ingest.fetch.topic_records import TopicRecords
from kgs_core.ingest.formats import raw, texts  # noqa: F401 - not in the first batch
from kgs_core.ingest.formats.json import json_objects  # noqa: F401 - not in the first batch
from kgs_core.ingest.formats.parsed import NO_COLUMNS, Parsed, Parser, ValueBatch
from kgs_core.ingest.formats.record_columns import (
    header_columns,
    parse_changes,
    parse_keys,
    side_by_side,
    with_rescued,
    with_topic,
)
from kgs_core.ingest.worker.masks import withheld, without_bytes
from kgs_core.ingest.worker.topic_job import TopicPlan, load_hook
from kgs_core.lake.files.layout import unfit
from kgs_core.lake.files.row_schema import DEAD_LETTER_SCHEMA
from kgs_core.lake.rule.error_codes import with_code

UNKNOWN_SCHEMA_S = 120.0
"""A registry that lags, has just started or was restored says of schemas that it has none: it is asked for so long."""


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


@dataclass(slots=True)
class Sorted:
    """Records of one topic, the good ones as rows and the bad ones apart.

    Attributes:
        rows: value columns and origin columns of the good records.
        dead_letters: the bad ones that are not in the lake yet, in the columns of a dead-letter table.
        bad: how many are bad, whether their dead letters are new or not.
        cuts: what partitions are read up to.
        missing: columns that values have and the plan's columns lack.
        unsettled: partitions with dead letters that another reading might not find (`lake.rule.judgements`).
    """

    rows: pa.Table
    dead_letters: pa.Table
    bad: int
    cuts: Cuts
    missing: pa.Schema = NO_COLUMNS
    unsettled: frozenset[int] = frozenset()


def sort_records(plan: TopicPlan, records: TopicRecords, earlier: EarlierReading = NOTHING_EARLIER) -> Sorted:
    """Parse records; what comes of a record depends on that record alone, and on what a registry and the lake say."""
    parsed = parse_records(plan, records)
    origin = _origin(plan, records)
    places = _places(plan, records, parsed, earlier)
    judged = _judged(records, parsed, earlier, places)
    cuts = _cuts(plan, judged, places)
    bad, letters = {} if plan.spec.rule.on_error == "stop" else judged.bad, judged.letters
    rows, good, ends = parsed.table, parsed.good, cuts.by_partition
    if ends:
        before = {i for i in (*bad, *letters) if not _is_behind(places[i], ends)}
        bad, letters = {i: why for i, why in bad.items() if i in before}, letters & before
    if ends or records.faults or judged.done:
        kept = (i not in records.faults and i not in judged.done for i in good)
        at = zip(kept, records.places(good), strict=True)
        keep = [n for n, (is_kept, place) in enumerate(at) if is_kept and not _is_behind(place, ends)]
        rows, good = rows.take(pa.array(keep, pa.int64())), [good[n] for n in keep]
    rows = _beside(rows, origin if len(good) == len(records) else origin.take(pa.array(good, pa.int64())))
    unsettled = frozenset(places[i][0] for i in judged.unsettled & bad.keys())
    return Sorted(
        rows, _dead_letters(plan, records, bad, origin), len(bad) + len(letters), cuts, parsed.missing, unsettled
    )


@dataclass(slots=True)
class _Judged:
    """Records by position, where they are not simply good.

    Attributes:
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


def _places(
    plan: TopicPlan, records: TopicRecords, parsed: Parsed, earlier: EarlierReading
) -> Mapping[int, tuple[int, int]]:
    """Position -> partition and offset of records that are not simply good; of none where it is not asked for."""
    odd: Iterable[int] = ()
    if earlier.marks:
        odd = range(len(records))
    elif parsed.waiting or parsed.unknown or plan.spec.rule.on_error == "stop":
        odd = sorted({*parsed.bad, *parsed.waiting, *records.faults})
    which = list(odd)
    return dict(zip(which, records.places(which), strict=True)) if which else {}


def _judged(
    records: TopicRecords, parsed: Parsed, earlier: EarlierReading, places: Mapping[int, tuple[int, int]]
) -> _Judged:
    found = _Judged({**parsed.bad, **records.faults}, {})  # what no column took is lost in the dead letter, whatever
    found.waiting = {i: why for i, why in parsed.waiting.items() if i not in found.bad}
    if earlier.marks:
        found.letters = {i for i, (p, offset) in places.items() if offset in earlier.letters.get(p, ())}
        found.done = found.letters | {i for i, (p, offset) in places.items() if offset in earlier.rows.get(p, ())}
        found.bad = {i: why for i, why in found.bad.items() if i not in found.done}
        found.waiting = {i: why for i, why in found.waiting.items() if i not in found.done}
    if not parsed.unknown and not earlier.marks:
        return found
    for i in list(found.bad):
        partition, offset = places[i]
        for_s = None if i in records.faults else parsed.unknown.get(i)
        if for_s is not None and for_s < UNKNOWN_SCHEMA_S:
            words = f"the registry is asked until it has said so for {UNKNOWN_SCHEMA_S:g} s"
            found.waiting[i] = f"{found.bad.pop(i)}: {words}"
        elif for_s is not None or offset < earlier.marks.get(partition, 0):
            found.unsettled.add(i)
    return found


def _cuts(plan: TopicPlan, judged: _Judged, places: Mapping[int, tuple[int, int]]) -> Cuts:
    stopped = _first(judged.bad, places) if plan.spec.rule.on_error == "stop" else {}
    later = _first(judged.waiting, places)
    return Cuts(
        {p: at for p, at in stopped.items() if p not in later or at < later[p]},
        {p: at for p, at in later.items() if p not in stopped or at < stopped[p]},
    )


def _first(reasons: Mapping[int, str], places: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, str]]:
    """Partition -> offset and reason of the first of these records."""
    return {places[i][0]: (places[i][1], reasons[i]) for i in sorted(reasons, reverse=True)}


def parse_records(plan: TopicPlan, records: TopicRecords) -> Parsed:
    """What becomes of values, keys, headers and the topic's name, side by side; what the table cannot take is bad.

    All that it gives, words included, is masked.

    Raises:
        PortError: the registry did not answer.
    """
    masks = plan.masks
    if masks is None:
        return _without_unfit(plan, _parsed(plan, records))
    try:
        parsed = _parsed(plan, records)
        parsed = _without_unfit(plan, replace(parsed, table=masks.masked(parsed.table)))
    except PortError:
        raise
    except Exception as e:  # noqa: BLE001 - whatever it is, its words may quote a value
        raise RuntimeError(f"{type(e).__name__}, not told, since the rule masks fields") from None
    return replace(parsed, bad={i: withheld(reason, parsed.table.column_names) for i, reason in parsed.bad.items()})


def _parsed(plan: TopicPlan, records: TopicRecords) -> Parsed:
    spec, headers = plan.spec, records.origin["_headers"].combine_chunks()
    rule = spec.rule
    rescue = rule.unknown_fields == "rescue"
    values = ValueBatch(records.values, plan.values, spec.topic, rule, headers, spec.registry, rescue=rescue)
    is_changes = rule.newest_rows is not None and rule.newest_rows.changes is not None
    parsed = parse_changes(_parser(rule.format), values) if is_changes else _parser(rule.format)(values)
    parts = [with_rescued(parsed, wanted=rescue)]
    if rule.key_columns:
        keys = records.origin["_key"].combine_chunks()
        batch = ValueBatch(keys, plan.keys, spec.topic, rule, headers, spec.registry, is_key=True)
        parts.append(parse_keys(_parser(rule.key_format), batch, list(rule.key_columns)))
    if rule.headers:
        parts.append(header_columns(headers, rule.headers))
    return with_topic(side_by_side(parts), spec.topic, rule.topic_columns)


def rows_of(plan: TopicPlan, parsed: Parsed, records: TopicRecords, without: Container[int]) -> pa.Table:
    """Rows of the good records, before a transform, but for those at the positions `without`."""
    keep = [n for n, i in enumerate(parsed.good) if i not in without]
    origin = _origin(plan, records).take(pa.array([parsed.good[n] for n in keep], pa.int64()))
    return _beside(parsed.table.take(pa.array(keep, pa.int64())), origin)


def _origin(plan: TopicPlan, records: TopicRecords) -> pa.Table:
    origin = records.with_topic(plan.topic_id)
    return origin if plan.masks is None else plan.masks.masked(origin)


def _beside(values: pa.Table, origin: pa.Table) -> pa.Table:
    return pa.Table.from_arrays([*values.columns, *origin.columns], schema=pa.schema([*values.schema, *origin.schema]))


def load_parsers(formats: Iterable[str]) -> None:
    """Load what these need, which may take seconds, before the records wait for it."""
    for name in formats:
        with contextlib.suppress(Exception):  # the topic's own affair, once there are records
            _parser(name)
            if FORMATS[name].loops:
                machine_code(FORMATS[name].loops)


def _parser(name: str) -> Parser:
    parser: Parser = load_hook(FORMATS[name].parser)
    return parser


def _without_unfit(plan: TopicPlan, parsed: Parsed) -> Parsed:
    """Values that no partition can have are bad, where they are the record's own and not a transform's."""
    if plan.spec.rule.has_transform or not (bad := unfit(plan.spec.rule, parsed.table)):
        return parsed
    keep = [n for n in range(len(parsed.good)) if n not in bad]
    good = [parsed.good[n] for n in keep]
    reasons = {**parsed.bad, **{parsed.good[n]: reason for n, reason in bad.items()}}
    return replace(parsed, table=parsed.table.take(pa.array(keep, pa.int64())), good=good, bad=reasons)


def _is_behind(at: tuple[int, int], ends: Mapping[int, tuple[int, str]]) -> bool:
    return at[0] in ends and at[1] >= ends[at[0]][0]


def _dead_letters(plan: TopicPlan, records: TopicRecords, bad: Mapping[int, str], origin: pa.Table) -> pa.Table:
    if not bad:
        return DEAD_LETTER_SCHEMA.empty_table()
    which = pa.array(sorted(bad), pa.int64())
    values = records.values.take(which)
    values = values if plan.masks is None else without_bytes(values)
    columns = [values, pa.array([with_code(bad[i]) for i in sorted(bad)], pa.string())]
    return pa.Table.from_arrays([*columns, *origin.take(which).columns], schema=DEAD_LETTER_SCHEMA)
