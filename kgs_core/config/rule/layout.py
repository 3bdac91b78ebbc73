"""Layout of a topic's table, as its rule says it in words: partition columns, some of them computed by kgs."""

import re
from dataclasses import dataclass
from typing import Literal

MOST_PARTITION_COLUMNS = 4
MOST_BYTES_OF_NAME = 240
"""Of a folder `column=value`. File systems take 255; it may not be cut, since some readers take the value from it."""
MOST_BYTES_OF_FOLDERS = 740
"""Of all folders of a value, one in the other."""
Unit = Literal["day", "hour"]
_COMPUTED = re.compile(r"(day|hour)\(\s*([^()]+?)\s*\)")


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """Column that a table is partitioned by.

    Attributes:
        source: the column that the values are taken from; `name` itself, where they are taken as they are.
        unit: what they are cut down to.
    """

    name: str
    source: str
    unit: Unit | None = None


def partition_column(text: str) -> PartitionColumn:
    """The column meant in `partition_by`, as `day(_timestamp)`: `_timestamp_day`. Raises `ValueError` if none is."""
    match = _COMPUTED.fullmatch(text)
    if match is not None:
        unit: Unit = "day" if match.group(1) == "day" else "hour"
        return PartitionColumn(f"{match.group(2)}_{unit}", match.group(2), unit)
    if not text.strip() or "(" in text or ")" in text:
        raise ValueError(f"'{text}' is not a partition column: write the name of a column, day(column) or hour(column)")
    return PartitionColumn(text, text)


def problem_of_partitions(words: tuple[str, ...]) -> str:
    """What is wrong with a rule's `partition_by`, as far as it can be told without the table; empty: nothing."""
    try:
        names = [partition_column(word).name.lower() for word in words]
    except ValueError as e:
        return str(e)
    if len(set(names)) < len(names):
        return "partition_by names a column twice"
    if len(names) > MOST_PARTITION_COLUMNS:
        return f"partition_by names more than {MOST_PARTITION_COLUMNS} columns"
    return ""
