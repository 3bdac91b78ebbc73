"""Layout of a table's rows in files: one file for each value of the partition columns, sorted where the rule says so.

1. Partition columns are not in the files. Their values stand in the log, in Delta's form, and in the name of the
   file's folder: Delta reads the log, but there are readers (polars) that take them from the name.
2. Only types whose values every reader and writer takes for the same: text, whole numbers, booleans and dates. Floats
   have values that are not equal to themselves. deltalake's compaction writes timestamps without their zone, which
   Spark reads in its own, and writes -1.5 as "-1.-5".
3. Delta has no empty text as a partition value: it becomes null, as with Spark. So does the text that folders of null
   are called by, which some readers take for null and others do not.
4. A computed column (`day(column)`) is filled by kgs like any other: Delta's generated columns need writer version 4,
   which many writers refuse.
"""

import random
from collections.abc import Mapping
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.config import TopicRule
from kgs_core.config.rule.layout import MOST_BYTES_OF_FOLDERS, MOST_BYTES_OF_NAME, PartitionColumn
from kgs_core.ports import TableLayout

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, in days since 1970
_US_OF_DAY, _US_OF_HOUR = 86_400_000_000, 3_600_000_000
PartitionValues = dict[str, str | None]
MOST_FILES = 20
"""Of a batch, one for each value of the partition columns; with more values it ends sooner."""


def table_schema(rule: TopicRule, given: pa.Schema) -> pa.Schema:
    """The table's columns: those that are given, and those that the layout computes.

    Raises:
        ValueError: the rule's layout, or its route, does not fit the columns; it says why.
    """
    found = given
    problems = [_problem_of_route(rule, given), *(_problem_of(column, given) for column in rule.partition_columns)]
    if any(problems):
        raise ValueError(next(filter(None, problems)))
    for column in rule.partition_columns:
        if column.unit is not None:
            found = found.append(pa.field(column.name, pa.date32() if column.unit == "day" else pa.string()))
    partitions = {column.name for column in rule.partition_columns}
    for key, names in (("sort_by", rule.sort_by), ("comments", rule.comments)):
        for name in names:
            if name not in found.names:
                raise ValueError(f"{key}: there is no column '{name}'; there are {', '.join(found.names)}")
            if key != "comments" and (name in partitions or pa.types.is_nested(found.field(name).type)):
                raise ValueError(f"{key}: column '{name}' has no order inside a file")
    return found


def _problem_of(column: PartitionColumn, given: pa.Schema) -> str:
    if column.source not in given.names:
        return f"partition_by: there is no column '{column.source}'; there are {', '.join(given.names)}"
    kind = given.field(column.source).type
    if column.unit is not None:
        return _problem_of_computed(column, kind, given)
    if column.source == "_offset":
        return "partition_by: _offset would make a folder for each record: take day(_timestamp)"
    if pa.types.is_timestamp(kind):
        return f"partition_by: '{column.source}' is a timestamp: say day({column.source}) or hour({column.source})"
    if is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date32(kind):
        return ""
    return f"partition_by: '{column.source}' is {kind}: take a column of text, whole numbers, booleans or dates"


def _problem_of_computed(column: PartitionColumn, kind: pa.DataType, given: pa.Schema) -> str:
    if column.name.lower() in (name.lower() for name in given.names):
        return f"partition_by: a column '{column.name}' exists already: rename it"
    is_time = pa.types.is_timestamp(kind) or (column.unit == "day" and pa.types.is_date32(kind))
    return "" if is_time else f"partition_by: {column.unit}({column.source}): the column is not a timestamp but {kind}"


def _problem_of_route(rule: TopicRule, given: pa.Schema) -> str:
    route = rule.route
    if route is None:
        return ""
    if route.column not in given.names:
        return f"route: there is no column '{route.column}'; there are {', '.join(given.names)}"
    kind = given.field(route.column).type
    if is_text(kind):
        return route.problem_of("string")
    if pa.types.is_boolean(kind):
        return route.problem_of("boolean")
    return route.problem_of("long" if pa.types.is_integer(kind) else str(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def given_schema(rule: TopicRule, schema: pa.Schema) -> pa.Schema:
    """A table's columns without those that the layout computes: what a transform gives."""
    computed = {column.name for column in rule.partition_columns if column.unit is not None}
    return pa.schema([field for field in schema if field.name not in computed])


class Partitioned:
    """Rows of a batch, none of them `unfit`, each with its partition values.

    Attributes:
        rows: with all the columns that are given.
    """

    def __init__(self, rule: TopicRule, rows: pa.Table) -> None:
        self._rule, self.rows = rule, rows
        self._names = [column.name for column in rule.partition_columns]
        codes = np.zeros(rows.num_rows, np.int64)
        found: list[tuple[str | None, ...]] = [()]
        for column in rule.partition_columns:
            texts = pc.dictionary_encode(_texts(column, rows[column.source]).combine_chunks(), null_encoding="encode")
            ours = texts.dictionary.to_pylist()
            both = codes * len(ours) + texts.indices.to_numpy().astype(np.int64)
            kept, codes = np.unique(both, return_inverse=True)
            found = (
                [(*found[int(code) // len(ours)], ours[int(code) % len(ours)]) for code in kept] if len(ours) else []
            )
        self._codes: npt.NDArray[np.int64] = codes
        self._found = found

    def cut(self) -> dict[int, int] | None:
        """Where to end so that the batch has `MOST_FILES` values: Kafka partition -> first offset left for later.

        One record is always taken, whatever values its rows have. Whose turn is first among Kafka's partitions is
        left to chance, so that none waits for ever.

        Returns:
            None: nothing needs to be left.
        """
        if len(self._found) <= MOST_FILES:
            return None
        partition = self.rows["_partition"].to_numpy().astype(np.int64)
        offset = self.rows["_offset"].to_numpy()
        names, of = np.unique(partition, return_inverse=True)
        by_partition = np.lexsort((offset, of))
        starts = np.searchsorted(of[by_partition], np.arange(len(names)))
        rank = np.empty(len(of), np.int64)
        rank[by_partition] = np.arange(len(of)) - starts[of[by_partition]]
        turn = np.array(random.sample(range(len(names)), len(names)))
        order = np.lexsort((turn[of], rank))
        first = order[0]
        allowed = set(self._codes[(of == of[first]) & (offset == offset[first])].tolist())
        distinct, at = np.unique(self._codes[order], return_index=True)
        for code in distinct[np.argsort(at)].tolist():
            if len(allowed) >= MOST_FILES:
                break
            allowed.add(code)
        left = ~np.isin(self._codes, list(allowed))
        if not left.any():
            return None
        ends: dict[int, int] = {}
        for number, at_offset in zip(partition[left].tolist(), offset[left].tolist(), strict=True):
            ends[number] = min(at_offset, ends.get(number, at_offset))
        return ends

    def files(self) -> list[tuple[PartitionValues, pa.Table]]:
        """The rows of each value in the columns of its file, sorted as the rule says."""
        if not self.rows.num_rows:
            return []
        rows = self.rows.select([name for name in self.rows.column_names if name not in self._names])
        if len(self._found) == 1:
            return [(dict(zip(self._names, self._found[0], strict=True)), _in_order(self._rule, rows))]
        order = np.argsort(self._codes, kind="stable")
        bounds = np.searchsorted(self._codes[order], np.arange(len(self._found) + 1))
        return [
            (
                dict(zip(self._names, values, strict=True)),
                _in_order(self._rule, rows.take(pa.array(order[bounds[n] : bounds[n + 1]]))),
            )
            for n, values in enumerate(self._found)
        ]


def unfit(rule: TopicRule, rows: pa.Table) -> dict[int, str]:
    """Rows that have a value that no partition can have, and why: that depends on the row alone.

    It does not matter whether the origin columns are there: they, and all that is no text, count as long as null.
    """
    found: dict[int, str] = {}
    together = np.full(rows.num_rows, len(rule.partition_columns) - 1)
    for column in rule.partition_columns:
        values = rows[column.source] if column.source in rows.column_names and column.unit is None else None
        of = f"value of partition column {column.name}"
        sizes = np.full(rows.num_rows, len(NULL_FOLDER))
        if values is not None and is_text(values.type) and column.source != "_topic_id":
            sizes = _escaped_sizes(values)
        elif values is not None and pa.types.is_date32(values.type):
            days = values.cast(pa.int32())
            outside = pc.or_(pc.less(days, _FIRST_DAY), pc.greater(days, _LAST_DAY)).fill_null(False)  # noqa: FBT003
            found |= dict.fromkeys(np.flatnonzero(outside).tolist(), f"{of}: a date outside the years 1 to 9999")
        sizes = sizes + len(_escaped(column.name)) + 1
        found |= dict.fromkeys(np.flatnonzero(sizes > MOST_BYTES_OF_NAME).tolist(), f"{of}: too long for a folder")
        together += sizes
    names = ", ".join(column.name for column in rule.partition_columns)
    too_long = f"value of partition columns {names}: too long for a path"
    return dict.fromkeys(np.flatnonzero(together > MOST_BYTES_OF_FOLDERS).tolist(), too_long) | found


def _escaped_sizes(values: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Bytes of each text in the name of its folder."""
    if not len(values):
        return np.zeros(0, np.int64)
    texts = values.cast(pa.string()).combine_chunks()
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    grown = np.cumsum(_GROWTH[np.frombuffer(data or b"", np.uint8)[: ends[-1]]])
    sizes = np.diff(np.concatenate([[0], grown])[ends])
    return np.where(sizes > 0, sizes, len(NULL_FOLDER))


def _in_order(rule: TopicRule, rows: pa.Table) -> pa.Table:
    if rule.sort_by:
        return rows.sort_by([(name, "ascending") for name in rule.sort_by])
    return rows


def _texts(column: PartitionColumn, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Partition values in Delta's form; null for null, and for what cannot be told."""
    kind = values.type
    if column.unit is not None:
        return _computed(column.unit, values)
    if is_text(kind):
        texts = values.cast(pa.string())
        is_none = pc.is_in(texts, pa.array(["", NULL_FOLDER]))
        return pc.if_else(is_none, pa.scalar(None, pa.string()), texts)
    return values.cast(pa.string())


def as_kept(rule: TopicRule, rows: pa.Table) -> pa.Table:
    """The rows as they are read from the table: texts that no partition can have are null."""
    for column in rule.partition_columns:
        if column.unit is None and is_text(rows[column.source].type):
            at = rows.column_names.index(column.source)
            rows = rows.set_column(at, rows.field(at), _texts(column, rows[column.source]))
    return rows


def _computed(unit: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Day or hour in UTC; null where the time lies outside the years 1 to 9999: no form of a date has room for it."""
    if pa.types.is_date32(values.type):
        us = pc.multiply(values.cast(pa.int32()).cast(pa.int64()), _US_OF_DAY)
    else:
        us = values.cast(pa.timestamp("us", values.type.tz), safe=False).cast(pa.int64())
    outside = pc.or_(pc.less(us, _FIRST_DAY * _US_OF_DAY), pc.greater_equal(us, (_LAST_DAY + 1) * _US_OF_DAY))
    us = pc.if_else(outside, pa.scalar(None, pa.int64()), us)
    step = _US_OF_DAY if unit == "day" else _US_OF_HOUR
    known = us.combine_chunks()
    floor = known.fill_null(0).to_numpy(zero_copy_only=False) // step * step
    texts = pa.chunked_array([pa.array(floor, pa.int64(), mask=known.is_null().to_numpy(zero_copy_only=False))])
    texts = texts.cast(pa.timestamp("us")).cast(pa.string())  # 2026-01-31 13:00:00.000000
    return pc.utf8_slice_codeunits(texts, 0, 10) if unit == "day" else _hours(texts)


def _hours(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.replace_substring(pc.utf8_slice_codeunits(texts, 0, 13), " ", "T")


def folder_of(values: Mapping[str, str | None]) -> str:
    """The folder of partition values under the table's: `a=1/b=x`; empty where there are none."""
    return "/".join(f"{_escaped(name)}={NULL_FOLDER if v is None else _escaped(v)}" for name, v in values.items())


def _escaped(text: str) -> str:
    """With %XX as Hive does it, and for all but plain ASCII.

    deltalake's compaction does not find a folder with `~` or `$`, nor polars on S3 a key with a blank or an umlaut.
    """
    return quote(text, safe="").replace("~", "%7E")


_GROWTH = np.array([3 if byte > 127 or len(_escaped(chr(byte))) > 1 else 1 for byte in range(256)])  # noqa: PLR2004


def layout_of(rule: TopicRule) -> TableLayout:
    """The layout of a rule's table."""
    names = tuple(column.name for column in rule.partition_columns)
    return TableLayout(names, rule.description, rule.comments)
