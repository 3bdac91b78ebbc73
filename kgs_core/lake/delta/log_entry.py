"""The log entry of one commit: what it adds, the versions that it moves, and words for who reads the log."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kgs_core.lake.rule.combining import CommitIntent
from kgs_core.lake.rule.positions import CLOSED, parse_app_id
from kgs_core.ports import FileWritten

ENDS = "ends"
"""In an entry's words: how many rows end by it."""
NO_VERSIONS: Mapping[str, int] = {}
MOST_RANGES = 50
"""Partitions of one batch whose offsets an entry's words give; how many more there are is said."""
MOST_RANGES_OF_ENTRY = 1_000


@dataclass(frozen=True, slots=True)
class FileReplaced:
    """One file of a table, some of whose rows end.

    Attributes:
        path: as the log has it.
        size: bytes.
        partition_values: in Delta's form.
        ended: how many of its rows.
        left: a file with its other rows; None: there are none.
    """

    path: str
    size: int
    partition_values: Mapping[str, str | None]
    ended: int
    left: FileWritten | None


def entry_of(batches: Sequence[CommitIntent], maker: str) -> bytes:
    """A log entry that adds the files of these batches and moves their versions.

    Args:
        batches: with none, or one without files, it moves versions alone.
        maker: the writer, for those who read the log; nothing is decided by it.
    """
    info = {"operation": "WRITE", "operationParameters": {"mode": "Append"}, "isBlindAppend": True}
    ours = {"writer": maker, "batches": max(len(batches), 1), "committed": _words_of(batches)}
    versions = {app: version for batch in batches for app, version in batch.versions.items()}
    return _entry(info, ours, (), versions, [file for batch in batches for file in batch.files])


def metadata_entry(metadata: Mapping[str, Any], added: Sequence[str], maker: str) -> bytes:
    """A log entry that replaces a table's metadata and does nothing else.

    `added`: names of the columns that are new in it, or new inside, for those who read the log; none: it has the same
    columns, and other properties.
    """
    named = {"operation": "ADD COLUMNS", "operationParameters": {"columns": json.dumps(added)}}
    info = named if added else {"operation": "SET TBLPROPERTIES", "operationParameters": {}}
    ours = {"writer": maker, "batches": 0} | ({} if added else {ENDS: 0})
    return _entry({**info, "isBlindAppend": False}, ours, [{"metaData": metadata}])


def removal_entry(files: Sequence[FileReplaced], versions: Mapping[str, int], maker: str) -> bytes:
    """A log entry by which rows end: files go, and those with what is left of their rows come in their place."""
    info = {"operation": "DELETE", "operationParameters": {}, "isBlindAppend": False}
    ours = {"writer": maker, "batches": 0, ENDS: sum(file.ended for file in files)}
    left = [file.left for file in files if file.left is not None]
    return _entry(info, ours, [_remove(file) for file in files], versions, left)


def adds_no_record(actions: Sequence[Mapping[str, Any]]) -> bool:
    """Whether kgs made this entry to end rows, or before or after it: it has no row that was not there before."""
    made = next((a["commitInfo"].get("kgs") or {} for a in actions if "commitInfo" in a), {})
    return ENDS in made


def changes_entry(
    operation: str, actions: Sequence[Mapping[str, Any]], versions: Mapping[str, int], *, written: Sequence[FileWritten]
) -> bytes:
    """A log entry of any actions, with files beside them, that moves versions; of a table that is not append-only.

    `operation`: in Delta's words; a file that `OPTIMIZE` adds has no new rows.
    """
    info = {"operation": operation, "operationParameters": {}, "isBlindAppend": False}
    return _entry(info, {}, actions, versions, written)


def _entry(
    info: Mapping[str, Any],
    ours: Mapping[str, Any],
    actions: Sequence[Mapping[str, Any]],
    versions: Mapping[str, int] = NO_VERSIONS,
    written: Sequence[FileWritten] = (),
) -> bytes:
    lines: list[Mapping[str, Any]] = [
        {"commitInfo": {"timestamp": _now_ms(), **info, "engineInfo": "kgs", "kgs": ours}},
        *actions,
        *(_add(file, data_change=info["operation"] != "OPTIMIZE") for file in written),
        *({"txn": {"appId": app, "version": version}} for app, version in sorted(versions.items())),
    ]
    return "\n".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in lines).encode()


def _now_ms() -> int:
    return int(time.time() * 1000)


def _add(file: FileWritten, *, data_change: bool) -> dict[str, Any]:
    add = {
        "path": quote(file.path, safe="/=-_.~"),  # a URI in Delta's log; names of folders may have a % of their own
        "partitionValues": dict(file.partition_values),
        "size": file.size,
        "modificationTime": _now_ms(),
        "dataChange": data_change,
        "stats": file.stats,
    }
    return {"add": add}


def _remove(file: FileReplaced) -> dict[str, Any]:
    remove = {
        "path": file.path,
        "deletionTimestamp": _now_ms(),
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": dict(file.partition_values),
        "size": file.size,
    }
    return {"remove": remove}


def _words_of(batches: Sequence[CommitIntent]) -> list[dict[str, Any]]:
    """Each batch's consumer, group, topic and offsets [first, behind the last]; of bounded size."""
    room = MOST_RANGES_OF_ENTRY
    found: list[dict[str, Any]] = []
    for batch in batches:
        words = _words(batch.expected, batch.new, min(room, MOST_RANGES))
        room -= len(words.get("offsets", ()))
        found.append({"consumer": batch.consumer, **words} if batch.consumer else words)
    return [words for words in found if words]


def _words(expected: Mapping[str, int | None], new: Mapping[str, int], most: int) -> dict[str, Any]:
    moved = []
    for app, end in new.items():
        parsed, start = parse_app_id(app), expected.get(app)
        if parsed is not None and parsed.is_position and start is not None and end != CLOSED:
            moved.append((parsed, start, end))
    if not moved:
        return {}
    moved.sort(key=lambda move: move[0].partition)
    first = moved[0][0]
    words: dict[str, Any] = {"group": first.group, "topic": first.topic, "topicId": first.topic_id}
    words["offsets"] = {str(parsed.partition): [start, end] for parsed, start, end in moved[:most]}
    return words | ({"morePartitions": len(moved) - most} if len(moved) > most else {})
