"""Records that end by `keep` of their table's rule.

1. A table that is partitioned by a day or an hour ends by it: whole partitions go, and no file is written anew. Any
   other ends by `_timestamp`, down to whole days (hours, where `keep` is in hours): a file is written anew once a day.
2. A row without the time stays: nobody knows how old it is.
3. A dead letter ends by its `_timestamp`, but not before the row that was made of it.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.config import TableSpec, TopicRule
from kgs_core.lake.files.places import Places, count_of, joined, offsets_in, offsets_of, span_of, without
from kgs_core.lake.files.row_schema import IDENTITY, TIMESTAMP
from kgs_core.lake.topics.ending import KEEP, end_records, row_tables, settled
from kgs_core.model import OffsetRange
from kgs_core.ports import Lake, PinnedTable

_HOUR = timedelta(hours=1)
_BEGIN_MS = -(2**62) // 1000


def end_aged(lake: Lake, group: str, specs: Sequence[TableSpec], now: datetime, *, dry_run: bool = False) -> int:
    """End what is older than `keep` of the rule; how many records ended, or would end.

    Args:
        specs: topics of one table, whose rule has `keep`.

    Raises:
        PortError: run it again.
        Exception: the store did not answer, or files went away while they were read.
    """
    own = lake.pin(specs[0].table)
    if own is None:
        return 0
    stored = lake.all_versions(specs[0].table)
    places = settled(_aged(lake, group, specs, cut_off(specs[0].rule.keep or "", now)), group, stored)
    if places and not dry_run:
        end_records(lake, group, specs, KEEP, places)
    return count_of(places)


def cut_off(keep: str, now: datetime) -> datetime:
    """The first moment that stays: UTC, a whole day or hour."""
    number, unit = keep.split()
    is_days = unit == "days"
    kept = now.astimezone(UTC) - int(number) * (24 * _HOUR if is_days else _HOUR)
    return kept.replace(hour=0 if is_days else kept.hour, minute=0, second=0, microsecond=0)


def _aged(lake: Lake, group: str, specs: Sequence[TableSpec], first: datetime) -> Places:
    tables = [pinned for name in row_tables(lake, group, specs) if (pinned := lake.pin(name)) is not None]
    rows = joined(*(_older(table, *_bound(specs[0].rule, first)) for table in tables))
    letters = lake.pin(specs[0].dead_letters_table)
    if letters is None:
        return rows
    of_letters = joined(_older(letters, "_timestamp", first))
    others = without(joined(*(offsets_in(table, span_of(of_letters)) for table in tables)), rows) if of_letters else {}
    return joined(rows, without(of_letters, others))


def _bound(rule: TopicRule, first: datetime) -> tuple[str, datetime | str]:
    """The column by which rows end, and its first value that stays."""
    for column in rule.partition_columns:
        if column.unit is not None:
            return column.name, first.strftime("%Y-%m-%d" if column.unit == "day" else "%Y-%m-%dT%H")
    return "_timestamp", first


def _older(table: PinnedTable, column: str, first: datetime | str) -> Places:
    """Places of the rows with a lower value of the column, in no order."""
    stamps_ms = None if isinstance(first, str) else OffsetRange(_BEGIN_MS, round(first.timestamp() * 1000))
    parts = []
    for file in table.files(stamps_ms=stamps_ms):
        rows = table.read(file, [*IDENTITY, column])
        values = rows[column].cast(pa.string() if isinstance(first, str) else TIMESTAMP)
        is_older = pc.fill_null(pc.less(values, pa.scalar(first, values.type)), fill_value=False)
        parts.append(offsets_of(rows.filter(is_older)))
    return joined(*parts)
