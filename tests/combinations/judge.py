"""The judge: a plain loop over all records, and what the tables have, read by deltalake alone."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError

from tests.combinations.case import FIELD_FORMATS, REGISTRY_FORMATS, Rule
from tests.combinations.rules import newest_key, sides_of
from tests.combinations.stand_ins import MemoryKafka
from tests.combinations.values import Message, is_good, masked, row_of

ORIGIN = ("_topic_id", "_partition", "_offset", "_timestamp", "_key", "_headers")
Place = tuple[str, int, int]
"""Topic id, partition, offset."""


@dataclass
class Tables:
    """What the tables have.

    Attributes:
        rows: place -> each row with the table that it is in.
        letters: place -> each dead letter.
        columns: of the own table.
        newest: all rows of the derived table.
        holding: rows of its history that hold now.
    """

    rows: dict[Place, list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    letters: dict[Place, list[dict[str, Any]]] = field(default_factory=dict)
    columns: frozenset[str] = frozenset()
    newest: list[dict[str, Any]] = field(default_factory=list)
    holding: list[dict[str, Any]] = field(default_factory=list)


def tables_in(root: Path) -> Tables:
    found = Tables()
    for name in ("t", "t_a", "t_b"):
        rows = _rows(root / name)
        if name == "t" and rows is not None:
            found.columns = frozenset(rows.column_names)
        for row in rows.to_pylist() if rows is not None else ():
            found.rows.setdefault(_place(row), []).append((name, _plain(row)))
    letters = _rows(root / "t_dead_letters")
    for row in letters.to_pylist() if letters is not None else ():
        found.letters.setdefault(_place(row), []).append(_plain(row))
    for name, rows_found in (("newest", found.newest), ("history", found.holding)):
        rows = _rows(root / name)
        for row in map(_plain, rows.to_pylist() if rows is not None else ()):
            row.pop("_valid_from", None)
            rows_found.extend([row] if row.pop("_valid_to", None) is None else [])
    return found


def _rows(path: Path) -> pa.Table | None:
    try:
        table = DeltaTable(str(path))
    except TableNotFoundError:
        return None
    if table.protocol().reader_features:  # with deletion vectors, which its other reader refuses
        return pa.table(QueryBuilder().register("t", table).execute("select * from t").read_all())
    return table.to_pyarrow_table()


def _place(row: dict[str, Any]) -> Place:
    return row["_topic_id"], row["_partition"], row["_offset"]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """With values that can be compared."""
    out = dict(row)
    if row.get("_timestamp") is not None:
        out["_timestamp"] = round(row["_timestamp"].timestamp() * 1000)
    if isinstance(row.get("_rescued"), str):
        out["_rescued"] = json.loads(row["_rescued"])
    if isinstance(row.get("c"), list) and row["c"] and isinstance(row["c"][0], tuple):
        out["c"] = dict(row["c"])
    return out


class Judge:
    """Compares the tables with what was sent.

    Args:
        editions: of the rule, under which records may have been read.
        erased: keys of records that are to be in no table.
    """

    def __init__(self, kafka: MemoryKafka, editions: set[int], erased: Collection[bytes] = ()) -> None:
        self._kafka, self._editions, self._erased = kafka, sorted(editions), erased
        self._rule: Rule = kafka.rule

    def faults(self, found: Tables, *, may_be_redriven: bool, is_redriven: bool = False) -> list[str]:
        """What is wrong with rows and letters.

        Args:
            may_be_redriven: a letter may have become a row.
            is_redriven: every letter that passes by the last edition is a row.
        """
        faults = []
        read, ends = {}, _ends(found)
        for message, is_last in self._messages():
            place = message.topic_id, message.partition, message.offset
            rows, letters = found.rows.get(place, []), found.letters.get(place, [])
            read[place] = message
            if message.key in self._erased:
                # Nobody knows of a topic that was deleted whether its letters will be read again
                if is_last and (rows or letters):
                    faults.append(f"{_named(message)}: was erased")
                continue
            if not rows and not letters:
                # A topic that was deleted may have been read up to some record
                if is_last or message.offset < ends.get(place[:2], 0):
                    faults.append(f"{_named(message)}: in no table")
                continue
            problems = list(self._of_record(message, rows, letters, found.columns, may_be_redriven=may_be_redriven))
            if is_redriven and letters and not rows and is_good(message, self._editions[-1]):
                problems.append("a dead letter that passes was not redriven")
            faults += [f"{_named(message)}: {problem}" for problem in problems]
        strange = (found.rows.keys() | found.letters.keys()) - read.keys()
        return [*faults, *(f"{place}: was never sent" for place in sorted(strange))]

    def _of_record(
        self,
        message: Message,
        rows: list[tuple[str, dict[str, Any]]],
        letters: list[dict[str, Any]],
        columns: frozenset[str],
        *,
        may_be_redriven: bool,
    ) -> Iterator[str]:
        if len(rows) > 1 or len(letters) > 1:
            yield f"{len(rows)} rows, {len(letters)} dead letters"
        if rows and letters and not may_be_redriven:
            yield "is a row and a dead letter"
        goods = {edition: is_good(message, edition) for edition in self._editions}
        if rows and not any(good is not False for good in goods.values()):
            yield "is a row, and bad"
        if letters:
            if self._rule.format not in REGISTRY_FORMATS and all(goods.values()):
                yield f"is a dead letter, and good: {letters[0]['error']}"
            yield from self._of_letter(message, letters[0])
        if rows and None not in goods.values():
            wanted = [row_of(message, edition, columns) for edition, good in goods.items() if good]
            yield from self._of_row(message, *rows[0], wanted)

    def _of_letter(self, message: Message, letter: dict[str, Any]) -> Iterator[str]:
        value = b"" if self._rule.mask and message.value is not None else message.value
        whole = masked({"value": value, "_key": message.key, "_timestamp": message.timestamp}, self._rule)
        if {name: letter[name] for name in whole} != whole:
            yield f"has another dead letter: {letter}"

    def _of_row(self, message: Message, table: str, row: dict[str, Any], wanted: list[dict[str, Any]]) -> Iterator[str]:
        value = {"s": message.record.s, "key": message.record.key, "": None}[self._rule.column]
        column, is_routed = self._rule.column, self._rule.route and value is not None
        places = {sides_of(column, edition).get(value, "t") if is_routed else "t" for edition in self._editions}
        if table not in places:
            yield f"lies in {table}, not in {' or '.join(places)}"
        for each in wanted:
            if self._rule.partitioned and each.get(self._rule.column) == "":
                each[self._rule.column] = None  # Delta has no empty text there
        if not any(_is_row(row, each) for each in wanted):
            yield f"is {row}, not {' nor '.join(map(str, wanted))}"

    def faults_of_newest(self, found: Tables) -> list[str]:
        """What is wrong with the derived tables."""
        return [*self._faults_of_newest(found, found.newest), *self._faults_of_newest(found, found.holding)]

    def _faults_of_newest(self, found: Tables, rows: list[dict[str, Any]]) -> list[str]:
        wanted, have = self._newest(found), {}
        for row in rows:
            key = tuple(row[name] for name in newest_key(self._rule))
            if key in have:
                return [f"newest of {key}: twice"]
            have[key] = row
        both = {key: (have.get(key), wanted.get(key)) for key in sorted(wanted.keys() | have.keys(), key=str)}
        return [
            f"newest of {key}: is {one}, not {other}"
            for key, (one, other) in both.items()
            if one is None or other is None or not _is_row(one, other)
        ]

    def _newest(self, found: Tables) -> dict[tuple[Any, ...], dict[str, Any]]:
        """Key -> row, by a loop over all records."""
        rule = self._rule
        changes: list[tuple[int, tuple[Any, ...], dict[str, Any], bool]] = []
        state: dict[tuple[Any, ...], dict[str, Any]] = {}
        for message, _ in self._messages():
            place = message.topic_id, message.partition, message.offset
            letters = found.letters.get(place, []) if message.value is None and newest_key(rule) == ["_key"] else []
            row = next((row for _, row in found.rows.get(place, [])), letters[0] if letters else None)
            if row is None or (message.value is None and rule.newest == "ignore"):
                continue
            row = {name: value for name, value in row.items() if not self._is_left_out(name)}
            row |= {"_headers": None} if letters else {}
            if None not in (key := tuple(row[name] for name in newest_key(rule))):
                order = message.timestamp if rule.order == "timestamp" else message.offset
                changes.append((order, key, row, message.value is None))
        for _, key, row, is_delete in sorted(changes, key=lambda change: change[0]):
            origin = {name: value for name, value in row.items() if name in ORIGIN}
            mark = {"_deleted": is_delete} if rule.newest == "column" else {}
            former = state.get(key) if is_delete else None
            state[key] = {**(row if former is None else former), **origin, **mark}
            if is_delete and rule.newest == "remove":
                del state[key]
        return state

    def _is_left_out(self, name: str) -> bool:
        """Whether the derived table has no such column, though rows or dead letters have it."""
        of_record = ("key", "key_k", "_rescued") if self._rule.changes else ()
        return name == "error" or name in of_record or (name == "value" and self._rule.format in FIELD_FORMATS)

    def _messages(self) -> Iterator[tuple[Message, bool]]:
        """Every record, and whether its topic is still there."""
        for lives in self._kafka.lives.values():
            for number, logs in enumerate(lives.values(), 1):
                for log in logs:
                    for message in log:
                        yield message, number == len(lives)


def _ends(found: Tables) -> dict[tuple[str, int], int]:
    """Last offset of each partition in the own table; side tables and dead letters of a batch come before its rows."""
    ends: dict[tuple[str, int], int] = {}
    for (topic_id, partition, offset), rows in found.rows.items():
        if any(table == "t" for table, _ in rows):
            ends[topic_id, partition] = max(offset, ends.get((topic_id, partition), 0))
    return ends


def _is_row(row: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(row.get(name) == wanted.get(name) for name in row.keys() | wanted.keys())


def _named(message: Message) -> str:
    return f"record {message.number}, {message.topic_id}:{message.partition} at {message.offset}, {message.record!r}"
