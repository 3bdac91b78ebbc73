"""Port of a catalogue: where readers look up by name which tables there are. Nothing that kgs does depends on it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from kgs_core.catalog.locations import same_place
from kgs_core.errors import PermanentError, TransientError
from kgs_core.ports.lake import TableDescription


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A table as it is to be registered.

    Attributes:
        name: its parts in the catalogue, joined by dots.
        location: address of its folder: s3://bucket/prefix/table, or file:///path.
    """

    name: str
    location: str
    table: TableDescription


class Registration(StrEnum):
    """What became of one table."""

    CREATED = "created"
    UPDATED = "updated"
    """It was there, with other columns."""
    UNCHANGED = "unchanged"
    OUTDATED = "outdated"
    """It is there with other columns, and this catalogue cannot change them. Delta's readers go by the log anyway."""


class Catalog(Protocol):
    """A catalogue of tables. Used by one thread at a time."""

    def register(self, entry: CatalogEntry) -> Registration:
        """Have the table in the catalogue; whatever was done of it before, by whomever, is left.

        Raises:
            TransientError: it is away, slow or fails, or somebody else has changed the entry meanwhile.
            PermanentError: it refuses, or has another table under this name.
        """

    def close(self) -> None:
        """End its connections."""


def found_or_made(
    name: str, find: Callable[[], Mapping[str, Any] | None], make: Callable[[], bool]
) -> Mapping[str, Any] | None:
    """The entry of this name that is there already; None: it was made just now.

    `make`: whether it made it; else somebody else was faster.
    """
    there = find()
    if there is None:
        if make():
            return None
        there = find()
        if there is None:
            raise TransientError(f"{name}: the catalogue says that it is there, and that it is not")
    return there


def refuse_other_place(entry: CatalogEntry, location: str | None) -> None:
    """Leave alone what is there at another location."""
    if not same_place(location, entry.location):
        raise PermanentError(
            f"{entry.name} is another table there, at {location or 'no location'}, and is left alone; ours is at "
            f"{entry.location}: drop that one, or change catalog.name"
        )
