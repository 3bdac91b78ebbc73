"""What an earlier reading of the same offsets has left in the lake, where its batch was committed in part."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from kgs_core.config.settings import LakeSettings
from kgs_core.errors import PortError, TransientError, one_line
from kgs_core.ingest.worker.topic_job import TopicJob
from kgs_core.lake.files.places import PartitionKey, offsets_in
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule import NO_OFFSETS
from kgs_core.lake.topics.factory import open_lake
from kgs_core.model import OffsetRange, TopicId


@dataclass(frozen=True, slots=True)
class EarlierReading:
    """What is there.

    Attributes:
        marks: partition that is read from below marks of dead letters or side tables -> the highest of these.
        letters: partition -> offsets of the dead letters that are there.
        rows: likewise, of rows in side tables.
    """

    marks: Mapping[int, int]
    letters: Mapping[int, AbstractSet[int]]
    rows: Mapping[int, AbstractSet[int]]


NOTHING_EARLIER = EarlierReading({}, {}, {})


def earlier_reading(storage: Storage, job: TopicJob, ranges: Mapping[int, OffsetRange]) -> EarlierReading:
    """What of these ranges is there; the lake is asked only where a mark is above a start, as after a kill.

    Raises:
        TransientError: dead letters or side tables could not be read.
    """
    letters_table = job.plan.spec.dead_letters_table
    marks: dict[int, int] = {}
    found: dict[str, dict[int, set[int]]] = {}
    for table, of_table in {letters_table: job.dead_letter_marks, **job.side_marks}.items():
        ends = {p: end for p, r in ranges.items() if (end := of_table.get(p) or 0) > r.start}
        if ends:
            marks |= {p: max(end, marks.get(p, 0)) for p, end in ends.items()}
            spans = {p: OffsetRange(ranges[p].start, end) for p, end in ends.items()}
            found[table] = _offsets(storage, job.plan.topic_id, table, spans)
    letters = found.pop(letters_table, {})
    rows = {p: set().union(*(each.get(p, ()) for each in found.values())) for p in marks}
    return EarlierReading(marks, letters, rows)


def _offsets(storage: Storage, topic_id: TopicId, table: str, spans: Mapping[int, OffsetRange]) -> dict[int, set[int]]:
    within = OffsetRange(min(span.start for span in spans.values()), max(span.end for span in spans.values()))
    try:
        lake = open_lake(LakeSettings(root=storage.root, storage_options=dict(storage.options)))
        there = offsets_in(lake.pin(table), within)
    except PortError:
        raise
    except Exception as e:
        raise TransientError(f"table {table}: cannot be read: {one_line(e)}") from e
    found = {p: there.get(PartitionKey(topic_id, p), NO_OFFSETS).tolist() for p in spans}
    return {p: {offset for offset in found[p] if offset in range(*span)} for p, span in spans.items()}
