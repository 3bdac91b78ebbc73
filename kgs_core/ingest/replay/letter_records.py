"""Records of dead letters: as these have them or, where a rule masks fields and they do not, as Kafka has them."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kgs_core.config import Settings
from kgs_core.ingest.fetch.topic_records import NO_EPOCH, TopicRecords, origin_table, records_of
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.records import Record
from kgs_core.lake.audit.audit_kafka_log import load_log
from kgs_core.lake.files.row_schema import ORIGIN_FIELDS
from kgs_core.lake.rule.error_codes import LOST_METADATA, code_of
from kgs_core.model import OffsetRange, TopicId

GONE = "its record is no longer in Kafka, where that of a rule with a mask is read again"


def records_in(letters: pa.Table) -> TopicRecords:
    """Records as their dead letters have them."""
    values = letters["value"].combine_chunks()
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    origin = origin_table([letters[f.name] for f in ORIGIN_FIELDS[1:]])
    return TopicRecords(values, origin, np.full(len(values), NO_EPOCH, np.int32), letters.nbytes, None)


def incomplete(letters: pa.Table) -> dict[int, str]:
    """Letters that are without a part of their record: a row of one would look as if the part had never been."""
    found = {}
    for i, error in enumerate(letters["error"].to_pylist()):
        if code_of(error or "") in LOST_METADATA:
            found[i] = error or ""
    for without in np.flatnonzero(letters["_headers"].is_null().to_numpy()):
        found.setdefault(int(without), "header of the record: not in the dead letter")
    return found


def reread(
    settings: Settings, admin: KafkaAdmin, topic: str, topic_id: TopicId, letters: pa.Table
) -> tuple[TopicRecords, list[int]]:
    """Records that Kafka still has of some letters of one topic id, and the positions of these letters, in one order.

    Reads the log from the first of a partition's letters to the last.

    Raises:
        PortError: Kafka did not answer, or refused.
    """
    places = zip(letters["_partition"].to_pylist(), letters["_offset"].to_pylist(), strict=True)
    wanted = {place: i for i, place in enumerate(places)}
    spans: dict[int, OffsetRange] = {}
    for partition, offset in wanted:
        span = spans.get(partition, OffsetRange(offset, offset + 1))
        spans[partition] = OffsetRange(min(span.start, offset), max(span.end, offset + 1))
    found: dict[int, Record] = {}

    def take(messages: Sequence[Record]) -> None:
        for message in messages:
            if (i := wanted.get((message.partition(), message.offset()))) is not None:
                found[i] = message

    known = admin.describe([topic]).get(topic)
    if known is not None and known.topic_id == topic_id:
        load_log(settings, admin, topic, {p: s for p, s in spans.items() if p < known.partitions}, _nothing, take)
    there = sorted(found)
    return records_of([found[i] for i in there]), there


def _nothing(done: int, total: int) -> None:
    """Nobody watches."""
