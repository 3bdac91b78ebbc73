"""Whose a table is, told from the application ids in its log, and how it changes hands. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from kgs_core.errors import UnsafeError
from kgs_core.lake.rule.positions import CLOSED, AppIds, ParsedAppId, parse_app_id
from kgs_core.model import TopicId

STARTS = "kgs/starts"
"""Application id of a count that every fixing of starts raises, and every change of hands: of two groups that begin at
once, one is refused; and no partition begins under a name whose tables change hands."""
REDRIVES = "kgs/redrives"
"""Application id of a number that every commit of redriven dead letters raises, and every change of hands: of two at
once, one is refused, and looks again at what has become a row, and whose the table is."""
MASKED = "kgs/masked"
"""Application id of a number that tells the secret that fields are hashed with from others; never changed."""
_OURS = re.compile(r"([^/@]+)/([^/@]+@[^/@]+/.+)")


def refuse_other_secret(table: str, stored: int | None, token: int | None) -> None:
    """Refuse a secret that a table's hashes were not made with: equal values would become unlike.

    Args:
        stored: version of `MASKED`; None: the table has no hashes yet.
        token: the secret's; None: nothing is hashed.

    Raises:
        UnsafeError: it is another one.
    """
    if None not in (stored, token) and stored != token:
        raise UnsafeError(
            f"table {table}: its fields were hashed with another lake.mask_secret: write that, or name another table"
        )


def owners(stored: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Group -> the topics that it fills the table from; a group that has handed all of them over is absent.

    `stored`: every application id of the table's log with its version.
    """
    found: dict[str, set[str]] = {}
    for _, position, _ in _open_positions(stored):
        found.setdefault(position.group, set()).add(position.topic)
    return {group: tuple(sorted(topics)) for group, topics in sorted(found.items())}


@dataclass(frozen=True, slots=True)
class OwnershipTransfer:
    """One compare-and-set commit that moves all that a group has in a table's log to another group.

    Attributes:
        expected: application id -> version that must be stored; None: none.
        new: the versions afterwards. No batch of the old group can be committed against its positions any more.
    """

    expected: Mapping[str, int | None]
    new: Mapping[str, int]
    positions: int


def hand_over(stored: Mapping[str, int], old: str, new: str, known: Collection[str] = ()) -> OwnershipTransfer | None:
    """How what `old` has becomes `new`'s; None where `old` has nothing (any more).

    `known`: positions that `old` could write under; those that are not stored count as 0, and are closed, too.
    """
    absent = dict.fromkeys((app for app in known if app not in stored), 0)
    seen = {**stored, **absent}
    if old not in owners(seen):
        return None
    apps = {app: f"{new}/{match.group(2)}" for app in seen if (match := _OURS.fullmatch(app)) and match[1] == old}
    positions = open_positions(seen, old)
    expected: dict[str, int | None] = {app: stored.get(app) for app in apps}
    expected |= {theirs: stored.get(theirs) for theirs in apps.values()}
    # Whoever takes up a first route meanwhile has another side table, and is seen by nothing else
    expected |= {route: stored.get(route) for route in (f"{app}/route" for app in positions)}
    # What was closed stays so for the heir, who may have got it open a moment ago, by a change that was not finished
    moved = {app: theirs for app, theirs in apps.items() if seen[app] != CLOSED or theirs not in stored}
    versions = {theirs: seen[app] for app, theirs in moved.items()} | dict.fromkeys(positions, CLOSED)
    for count in (STARTS, REDRIVES):
        expected[count] = stored.get(count)
        versions[count] = (stored.get(count) or 0) + 1
    return OwnershipTransfer(expected, versions, len(positions))


def open_positions(stored: Mapping[str, int], group: str) -> tuple[str, ...]:
    """Application ids of positions that a group has in a table's log, and has not handed over."""
    return tuple(app for app, position, _ in _open_positions(stored) if position.group == group)


def open_lives(stored: Mapping[str, int], group: str, topic: str) -> dict[TopicId, dict[int, int]]:
    """Topic id -> partition -> position, of the lives of a topic whose positions may still move."""
    lives: dict[TopicId, dict[int, int]] = {}
    for _, position, version in _open_positions(stored):
        if (position.group, position.topic) == (group, topic):
            lives.setdefault(position.topic_id, {})[position.partition] = version
    return lives


def _open_positions(stored: Mapping[str, int]) -> Iterator[tuple[str, ParsedAppId, int]]:
    """Application id, its parts, and version of each position that was not handed over."""
    for app, version in stored.items():
        if version != CLOSED and (parsed := parse_app_id(app)) and parsed.is_position:
            yield app, parsed, version


def is_over(stored: Mapping[str, int], ids: AppIds) -> bool:
    """Whether a life of a topic has ended, or is another group's now: no partition of it begins any more."""
    closed = (parsed for app, version in stored.items() if version == CLOSED and (parsed := parse_app_id(app)))
    return any((each.group, each.topic, each.topic_id) == (ids.group, ids.topic, ids.topic_id) for each in closed)


def close_life(
    stored: Mapping[str, int], ids: AppIds, ends: Mapping[int, int | None]
) -> tuple[dict[str, int | None], dict[str, int]]:
    """What must be stored, and what is stored afterwards, so that a life of a topic ends where it stands.

    `ends`: partition -> where it must stand; None: at nothing. Those that are closed already are left alone.
    """
    expected: dict[str, int | None] = {}
    new: dict[str, int] = {}
    for partition, end in ends.items():
        position = ids.position(partition)
        if stored.get(position) != CLOSED:
            expected[position], new[position] = end, CLOSED
            if end is not None:
                new[ids.end(partition)] = end
    return expected, new
