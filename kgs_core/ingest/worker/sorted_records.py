"""Records of one topic, sorted: rows of the good ones, the bad ones apart, and what partitions are read up to."""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kgs_core.ingest.fetch.topic_records import TopicRecords
from kgs_core.ingest.formats.parsed import Parsed
from kgs_core.ingest.worker.earlier_reading import NOTHING_EARLIER, EarlierReading
from kgs_core.ingest.worker.topic_job import TopicJob, TopicPlan
from kgs_core.lake.files.row_schema import DEAD_LETTER_SCHEMA, ORIGIN_FIELDS
from kgs_core.lake.rule.batch import TopicBatch
from kgs_core.lake.rule.error_codes import with_code
from kgs_core.model import OffsetRange

UNKNOWN_SCHEMA_S = 120.0
"""A registry that lags, has just started or was restored says of schemas that it has none: it is asked for so long."""


class Cut(NamedTuple):
    """Record that a partition is read up to: it and what lies behind it is neither row nor dead letter.

    Attributes:
        waits: it cannot be judged yet; else it is bad, and bad records stop the partition.
    """

    offset: int
    reason: str
    waits: bool


@dataclass(frozen=True, slots=True)
class Sorted:
    """Records of one topic, the good ones as rows and the bad ones apart.

    Attributes:
        batch: what is told of them, without files; its ranges end at the cuts.
        rows: value columns and origin columns of the good records.
        dead_letters: the bad ones that are not in the lake yet, in the columns of a dead-letter table.
        cuts: by partition.
    """

    batch: TopicBatch
    rows: pa.Table
    dead_letters: pa.Table
    cuts: Mapping[int, Cut]


def sort_records(
    job: TopicJob,
    ranges: Mapping[int, OffsetRange],
    records: TopicRecords,
    parsed: Parsed,
    earlier: EarlierReading = NOTHING_EARLIER,
) -> Sorted:
    """What comes of the records of these ranges, each by itself: of what it was parsed to, and what the lake has."""
    plan, stops = job.plan, job.plan.spec.rule.on_error == "stop"
    partitions, offsets = records.partitions, records.offsets
    judged = _judged(records, parsed, earlier)
    ends = judged.waiting | judged.bad if stops else judged.waiting
    cuts = {int(partitions[i]): Cut(int(offsets[i]), ends[i], i in judged.waiting) for i in sorted(ends, reverse=True)}
    at = {p: cut.offset for p, cut in cuts.items()}
    read, behind = ranges_before(ranges, at), {*np.flatnonzero(records.are_behind(at)).tolist()}
    bad = {} if stops else {i: why for i, why in judged.bad.items() if i not in behind} if behind else judged.bad
    batch = TopicBatch(
        job.topic,
        plan.topic_id,
        read,
        (),
        dead_letter_marks=job.dead_letter_marks,
        records=len(records),
        consumed_bytes=records.consumed_bytes,
        oldest_ms=records.oldest_ms,
        bad_records=len(bad) + len(judged.letters - behind),
        leader_epochs=records.leader_epochs(read),
        unsettled=frozenset(int(partitions[i]) for i in judged.unsettled & bad.keys()),
    )
    rows = rows_of(plan, parsed, records, without=behind | judged.done | records.faults.keys())
    return Sorted(batch, rows, _dead_letters(plan, records, bad), cuts)


def ranges_before(ranges: Mapping[int, OffsetRange], ends: Mapping[int, int]) -> dict[int, OffsetRange]:
    """The ranges without what lies at or behind these ends; those that keep nothing are left out."""
    shorter = {p: r._replace(end=min(r.end, ends.get(p, r.end))) for p, r in ranges.items()}
    return {p: r for p, r in shorter.items() if r.end > r.start}


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


def _judged(records: TopicRecords, parsed: Parsed, earlier: EarlierReading) -> _Judged:
    found = _Judged({**parsed.bad, **records.faults}, {})  # what no column took is lost in the dead letter, whatever
    found.waiting = {i: why for i, why in parsed.waiting.items() if i not in found.bad}
    if not parsed.unknown and not earlier.marks:
        return found
    places = list(zip(records.partitions.tolist(), records.offsets.tolist(), strict=True))
    if earlier.marks:
        found.letters = {i for i, (p, offset) in enumerate(places) if offset in earlier.letters.get(p, ())}
        found.done = found.letters | {i for i, (p, offset) in enumerate(places) if offset in earlier.rows.get(p, ())}
        found.bad = {i: why for i, why in found.bad.items() if i not in found.done}
        found.waiting = {i: why for i, why in found.waiting.items() if i not in found.done}
    for i in list(found.bad):
        partition, offset = places[i]
        for_s = None if i in records.faults else parsed.unknown.get(i)
        if for_s is not None and for_s < UNKNOWN_SCHEMA_S:
            words = f"the registry is asked until it has said so for {UNKNOWN_SCHEMA_S:g} s"
            found.waiting[i] = f"{found.bad.pop(i)}: {words}"
        elif for_s is not None or offset < earlier.marks.get(partition, 0):
            found.unsettled.add(i)
    return found


def rows_of(plan: TopicPlan, parsed: Parsed, records: TopicRecords, without: Collection[int]) -> pa.Table:
    """Rows of the good records, before a transform, but for those at the positions `without`."""
    values, good = parsed.table, parsed.good
    if without:
        keep = [n for n, i in enumerate(good) if i not in without]
        values, good = values.take(pa.array(keep, pa.int64())), [good[n] for n in keep]
    origin = _origin(plan, records, good)
    return pa.Table.from_arrays([*values.columns, *origin.columns], schema=pa.schema([*values.schema, *origin.schema]))


def _origin(plan: TopicPlan, records: TopicRecords, which: Sequence[int]) -> pa.Table:
    found = records.origin if len(which) == len(records) else records.origin.take(pa.array(which, pa.int64()))
    topic_ids = pa.repeat(pa.scalar(plan.topic_id, pa.string()), len(which))
    return plan.masks.masked(found.add_column(0, ORIGIN_FIELDS[0], topic_ids))


def _dead_letters(plan: TopicPlan, records: TopicRecords, bad: Mapping[int, str]) -> pa.Table:
    if not bad:
        return DEAD_LETTER_SCHEMA.empty_table()
    which = sorted(bad)
    values = plan.masks.values(records.values.take(pa.array(which, pa.int64())))
    columns = [values, pa.array([with_code(bad[i]) for i in which], pa.string())]
    return pa.Table.from_arrays([*columns, *_origin(plan, records, which).columns], schema=DEAD_LETTER_SCHEMA)
