"""One file of a derived table: its rows, those of them that no longer count, and whether it may hold a key."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.lake.delta.table_changes import AddedFile
from kgs_core.lake.derived.deletion_vectors import Rows, read_vector
from kgs_core.lake.derived.versions import VALID_TO
from kgs_core.lake.files.storage import Storage

Bounds = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True)
class LiveFile:
    """A file as one version of the table has it; `add` is Delta's action."""

    storage: Storage
    table: str
    add: Mapping[str, Any] = field(repr=False)

    @cached_property
    def deleted(self) -> Rows:
        """Numbers of its rows that no longer count, sorted."""
        return read_vector(self.storage, self.table, self.add.get("deletionVector"))

    @cached_property
    def stats(self) -> dict[str, Any]:
        """Delta's statistics."""
        found: dict[str, Any] = json.loads(self.add.get("stats") or "{}")
        return found

    @property
    def is_closed(self) -> bool:
        """Whether it is one of a history, all of whose rows have ended."""
        return bool(self.stats.get("nullCount", {}).get(VALID_TO.name) == 0)

    @property
    def deleted_share(self) -> float:
        """Share of its rows that no longer count."""
        vector = self.add.get("deletionVector")
        return vector["cardinality"] / max(self.stats.get("numRecords", 1), 1) if vector else 0.0

    def with_vector(self, vector: Mapping[str, Any]) -> dict[str, Any]:
        """The `add` action that puts another deletion vector in the place of its own."""
        stats = json.dumps({**self.stats, "tightBounds": False})
        return {**self.add, "deletionVector": vector, "dataChange": True, "stats": stats}

    def all_rows(self, columns: pa.Schema) -> pa.Table:
        """All its rows, also those that no longer count."""
        return AddedFile(unquote(self.add["path"])).read(self.storage, self.table, columns)

    def rows(self, columns: pa.Schema, without: Rows | None = None) -> pa.Table:
        """Rows that count, but for some more."""
        found = self.all_rows(columns)
        counts = np.ones(found.num_rows, np.bool_)
        counts[self.deleted] = False
        if without is not None:
            counts[without] = False
        return found if counts.all() else found.filter(pa.array(counts))

    def may_hold(self, bounds: Bounds) -> bool:
        """Whether its statistics leave room for a key within these bounds."""
        least, most = self.stats.get("minValues", {}), self.stats.get("maxValues", {})
        return all(
            name not in least or name not in most or (least[name] <= high and most[name] >= low)
            for name, (low, high) in bounds.items()
        )


def bounds_of(keys: pa.Table) -> Bounds:
    """Least and greatest of each column whose statistics are as exact as its values; the rest says nothing."""
    found = {}
    for name in keys.column_names:
        kind = keys.schema.field(name).type
        if keys.num_rows and (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            both = pc.min_max(keys[name]).as_py()
            found[name] = (both["min"], both["max"])
    return found


def small_and_worn(files: Sequence[LiveFile], target_bytes: int) -> list[list[LiveFile]]:
    """Files that are better written as one: `ALIKE` of about the same size, or one of whose rows many are gone."""
    found = [[file] for file in files if file.deleted_share > WORN]
    tiers: dict[tuple[bool, int], list[LiveFile]] = {}
    for file in files:
        if file.deleted_share <= WORN and file.add["size"] * 2 <= target_bytes:
            tiers.setdefault((file.is_closed, int(file.add["size"]).bit_length() // ALIKE_BITS), []).append(file)
    for alike in tiers.values():
        room, group = target_bytes, list[LiveFile]()
        for file in sorted(alike, key=lambda f: int(f.add["size"])) if len(alike) >= ALIKE else ():
            room -= file.add["size"]
            if room >= 0:
                group.append(file)
        found += [group] if len(group) > 1 else []
    return found


ALIKE_BITS, ALIKE = 3, 8
"""Sizes of one tier differ by eight times at most, and so many files of a tier become one of the next: each row is
written once more per tier."""
WORN = 0.2
"""Share of rows that are gone, above which a file is written anew: all in all each row some five times."""
