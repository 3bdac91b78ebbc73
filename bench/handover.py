"""Time between two commits of a partition, within one consumer and from one to the next, by a lake's own history."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from deltalake import DeltaTable

from kgs_core.errors import ConfigError
from kgs_core.model import TopicPartition


class Handed(NamedTuple):
    """A partition that another consumer committed next.

    Attributes:
        gap_s: from the last commit of the one to the first of the other.
        usual_s: median between two commits of one consumer, of this partition.
    """

    partition: TopicPartition
    before: str
    after: str
    gap_s: float
    usual_s: float


class _Committed(NamedTuple):
    time_s: float
    consumer: str


def handovers(lake: Path) -> list[Handed]:
    """Handovers of all partitions of the tables below a folder, by their time between commits, longest first.

    Raises:
        ConfigError: no table is there.
    """
    logs = sorted(lake.rglob("_delta_log"))
    if not logs:
        raise ConfigError(
            [f"{lake}: no Delta table below it: name the lake of a group, as in DIRECTORY/lake of kgs demo"]
        )
    commits = _commits(entry for log in logs for entry in DeltaTable(log.parent).history())
    return sorted(_handed(commits), key=lambda each: -each.gap_s)


def _commits(history: Iterable[Mapping[str, Any]]) -> dict[TopicPartition, list[_Committed]]:
    found: dict[TopicPartition, list[_Committed]] = defaultdict(list)
    for entry in history:
        for one in entry.get("kgs", {}).get("committed", ()):
            for partition, (start, end) in one.get("offsets", {}).items():
                if end > start:
                    place = TopicPartition(one["topic"], int(partition))
                    found[place].append(_Committed(entry["timestamp"] / 1000, one["consumer"]))
    return found


def _handed(commits: Mapping[TopicPartition, list[_Committed]]) -> Iterable[Handed]:
    for partition, series in commits.items():
        pairs = list(pairwise(sorted(series)))
        usual = [b.time_s - a.time_s for a, b in pairs if a.consumer == b.consumer]
        for a, b in pairs:
            if a.consumer != b.consumer and usual:
                yield Handed(partition, a.consumer, b.consumer, b.time_s - a.time_s, median(usual))
