"""What an earlier reading of the same offsets has left in the lake, where its batch was committed in part."""

from collections.abc import Mapping

from kgs_core.adapters.ingest.sorted_records import EarlierReading, TopicJob
from kgs_core.adapters.lake.audit_snapshot import PartitionKey, offsets_in
from kgs_core.adapters.lake.factory import open_lake
from kgs_core.adapters.lake.storage import Storage
from kgs_core.config.settings import LakeSettings
from kgs_core.errors import PortError, TransientError, one_line
from kgs_core.exactly_once import NO_OFFSETS
from kgs_core.model import OffsetRange


def earlier_reading(storage: Storage, job: TopicJob, ranges: Mapping[int, OffsetRange]) -> EarlierReading:
    """What of these ranges is there; the lake is asked only where a mark is above a start, as after a kill.

    Raises:
        TransientError: the dead letters could not be read.
    """
    marks = job.side_marks.values()
    ahead = frozenset(p for p, r in ranges.items() if any((each.get(p) or 0) > r.start for each in marks))
    spans = {p: OffsetRange(r.start, job.dead_letter_marks.get(p) or 0) for p, r in ranges.items()}
    spans = {p: span for p, span in spans.items() if span.end > span.start}
    if not spans:
        return EarlierReading({}, {}, ahead)
    within = OffsetRange(min(span.start for span in spans.values()), max(span.end for span in spans.values()))
    try:
        lake = open_lake(LakeSettings(root=storage.root, storage_options=dict(storage.options)))
        found = offsets_in(lake.pin(job.dead_letters_table), within)
    except PortError:
        raise
    except Exception as e:
        raise TransientError(f"table {job.dead_letters_table}: cannot be read: {one_line(e)}") from e
    there = {p: found.get(PartitionKey(job.topic_id, p), NO_OFFSETS).tolist() for p in spans}
    letters = {p: frozenset(o for o in there[p] if o in range(*span)) for p, span in spans.items()}
    return EarlierReading({p: span.end for p, span in spans.items()}, letters, ahead)
