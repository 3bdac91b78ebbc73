"""Compares values: what producers were told, what the log holds at the end, and the rows of the tables.

Shares nothing with the product's audit nor with the libraries that it writes with; see `tests/system/ledger.py`.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from tests.system.chaos.journal import Journal
from tests.system.chaos.producers import OK, UNTOLD, digest, json_value
from tests.system.ledger import files_of


class Entry(NamedTuple):
    """One record, wherever it stands."""

    topic: str
    partition: int
    offset: int
    digest: str


Partition = tuple[str, int]
CRASHED = ("Fatal Python error", "# A fatal error has been detected by the Java Runtime")


@dataclass
class Values:
    """What was found.

    Attributes:
        acknowledged: to producers, by all.
        records: in the log at the end.
        rows: in tables and dead letters.
        lost: in the log, and no row.
        doubled: rows that stand more than once.
        foreign: rows of nothing in the log.
        lost_by_kafka: acknowledged, and not in the log.
        outdated: partitions whose log was truncated, with the rows of what is gone: to be found by the product.
    """

    acknowledged: int = 0
    records: int = 0
    rows: int = 0
    lost: list[Entry] = field(default_factory=list)
    doubled: list[Entry] = field(default_factory=list)
    foreign: list[Entry] = field(default_factory=list)
    lost_by_kafka: list[Entry] = field(default_factory=list)
    outdated: dict[Partition, list[Entry]] = field(default_factory=dict)


def judge(
    acknowledged: Mapping[Entry, int], log: set[Entry], rows: Counter[Entry], truncated: set[Partition]
) -> Values:
    """Compare them; of partitions with an unclean election the log at the end is what there is."""
    found = Values(len(acknowledged), len(log), rows.total())
    found.doubled = sorted(row for row, count in rows.items() if count > 1)
    values = {each._replace(offset=UNTOLD) for each in log}
    gone = acknowledged.keys() - log - values
    found.lost_by_kafka = sorted(each for each in gone if each[:2] not in truncated)
    for row in sorted(rows.keys() - log):
        if row[:2] in truncated:
            found.outdated.setdefault(row[:2], []).append(row)
        else:
            found.foreign.append(row)
    # Where rows of what is gone stand, the partition stands still as well: what came after it is not read
    found.lost = sorted(each for each in log - rows.keys() if each[:2] not in found.outdated)
    return found


def acknowledged_in(folder: Path, source: str = "*") -> dict[Entry, int]:
    """What producers, or one of them, were told is there, with the ms at which they were."""
    found = {}
    for file in sorted(folder.glob(f"acknowledged-{source}.log")):
        for line in file.read_text().splitlines():
            outcome, topic, partition, offset, of, ms = line.split()
            if outcome == OK:
                found[Entry(topic, int(partition), int(offset), of)] = int(ms)
    return found


def rows_in(tables: Path, topics: Iterable[str]) -> Counter[Entry]:
    """Every row of every topic's table and dead letters."""
    found: Counter[Entry] = Counter()
    for topic in topics:
        for table in (topic, f"{topic}_dead_letters"):
            for file in sorted(files_of(tables / table)):
                columns = pq.read_table(tables / table / file, partitioning=None).to_pydict()
                values = columns["value"] if "value" in columns else _values_of(columns)
                for partition, offset, value in zip(columns["_partition"], columns["_offset"], values, strict=True):
                    found[Entry(topic, partition, offset, digest(value))] += 1
    return found


def _values_of(columns: Mapping[str, list[Any]]) -> Iterator[bytes]:
    return (json_value(*each) for each in zip(columns["seq"], columns["crc"], columns["pad"], strict=True))


class Wait(NamedTuple):
    """How long an acknowledged record was in no table, without the times in which nobody could read."""

    seconds: float
    topic: str
    partition: int
    offset: int
    begin: float
    end: float


def waits(tables: Path, acknowledged: Mapping[Entry, int], journal: Journal) -> list[Wait]:
    """Of each commit, the wait of the first record that it took: from acknowledgement, or the commit before, to it."""
    at = {each[:3]: ms / 1000 for each, ms in acknowledged.items()}
    found = []
    commits = {topic: _commits(tables / topic) for topic in {each.topic for each in acknowledged}}
    for topic, partition in {each[:2] for each in acknowledged}:
        position, before = 0, 0.0
        for moved, next_offset in commits[topic][partition]:
            first = next(
                (at[topic, partition, o] for o in range(position, next_offset) if (topic, partition, o) in at), None
            )
            if first is not None and next_offset > position:
                begin = max(first, before)
                found.append(Wait(journal.unexcused_s(begin, moved), topic, partition, position, begin, moved))
            position, before = max(position, next_offset), moved
    return sorted(found, reverse=True)


def _commits(table: Path) -> dict[int, list[tuple[float, int]]]:
    """By partition: when its position moved, seconds since 1970, and to what."""
    found: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for entry in sorted((table / "_delta_log").glob("[0-9]*.json")):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        times = [action["commitInfo"]["timestamp"] / 1000 for action in actions if "commitInfo" in action]
        for action in actions:
            last = action["txn"]["appId"].rpartition("/")[2] if "txn" in action else ""
            if last.isdecimal() and times:
                found[int(last)].append((times[0], action["txn"]["version"]))
    return found


def by_partition(entries: Iterable[Entry]) -> dict[str, int]:
    """How many of each, for people."""
    counts: dict[str, int] = defaultdict(int)
    for each in entries:
        counts[f"{each.topic}:{each.partition}"] += 1
    return dict(counts)


def crashes(folder: Path) -> list[str]:
    """Processes that ended by an error of compiled code, which nobody had struck: their words are in their logs."""
    logs = [*folder.rglob("*.log"), *folder.rglob("*.err")]
    return [
        f"{file.relative_to(folder)}: {line.strip()}"
        for file in logs
        if not any(part.startswith("node-") or part == "load" for part in file.relative_to(folder).parts)
        for line in file.read_text(errors="replace").splitlines()
        if line.startswith(CRASHED)
    ]
