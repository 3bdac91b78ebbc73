"""Tables that change hands: to a group of another name, to the same topic in another cluster. Changes no row.

Every table changes hands in one compare-and-set commit: what the old side has in flight is refused, since its positions
are closed by the same commit. The dead letters' table and side tables come before the rows': killed in between, neither
side can write there against marks that the other has, and the same command again does the rest. That of dead letters is
made where there is none, and positions are closed in all of them of every partition that is read: else who reads on
under the old name could write a first dead letter of a partition, and the heir would write it again. A partition that
begins meanwhile is no exception, nor is a route: the rows' table changes hands only as it was when those beside it did.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from kgs_core.config import Settings
from kgs_core.errors import ConfigError, TransientError, UnsafeError
from kgs_core.kafka.admin import admin_of
from kgs_core.lake.files.row_schema import DEAD_LETTER_SCHEMA
from kgs_core.lake.rule.table_owner import hand_over, open_positions, owners
from kgs_core.lake.topics.discovery import find_tables
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.side_tables import is_there, side_tables_of, sides_noted_by
from kgs_core.ports import CommitOutcome
from kgs_core.system.failpoints import failpoint

TRIES = 20


@dataclass(frozen=True, slots=True)
class Adopted:
    """One table that changes hands.

    Attributes:
        topics: it is filled from.
        positions: how many move.
        rows: path of the rows' table, where this one has their dead letters or is a side table; else empty.
        has_letters: whether it is one of dead letters.
        beside: of one of rows, the tables that come before it, and whether they are of dead letters.
    """

    table: str
    topics: tuple[str, ...]
    positions: int
    rows: str = ""
    has_letters: bool = False
    beside: Mapping[str, bool] = field(default_factory=dict)


class GroupAdoption:
    """Adoption of what a group of another name has in the lake."""

    def __init__(self, settings: Settings, old: str) -> None:
        """`settings` are those of the new name; the tables are found by them."""
        if old == settings.group:
            raise ConfigError([f"--from-group {old}: is this configuration's own group: name the one it had before"])
        self._settings = settings
        self._old = old
        self._lake = open_lake(settings.lake)

    def pending(self, topics: Collection[str]) -> list[Adopted]:
        """The tables that the old name still has, dead letters before rows; none when all is done.

        `topics`: only their tables; empty: all.

        Raises:
            ConfigError: no table knows the old name.
            UnsafeError: both names fill a table.
            PortError: Kafka or the store did not answer.
        """
        known = False
        found = []
        tables = list(self._tables(topics))
        for table, rows, has_letters in tables:
            stored, theirs = self._lake.all_versions(table), self._positions(rows)
            known = known or any(app.startswith(f"{self._old}/") for app in stored)
            change = hand_over(stored, self._old, self._settings.group, theirs)
            if change is not None:
                self._refuse_others(table, stored, may_be_ours=bool(rows))
                owned = owners({**dict.fromkeys(theirs, 0), **stored})
                beside = {name: letters for name, of, letters in tables if of == table}
                found.append(Adopted(table, owned[self._old], change.positions, rows, has_letters, beside))
        if not known:
            raise ConfigError(
                [f"--from-group {self._old}: no table under {self._lake.root} was filled by it: check the name"]
            )
        return found

    def carry_out(self, adopted: Adopted) -> None:
        """Move one table, whoever commits to it meanwhile; with one of rows, what began beside it meanwhile.

        Raises:
            UnsafeError: both names fill it.
            TransientError: the store did not answer, or others committed all the time.
        """
        self._lake.forget_intents(adopted.table)
        for table, has_letters in {**adopted.beside, adopted.table: adopted.has_letters}.items():
            if has_letters:
                self._lake.table(table, DEAD_LETTER_SCHEMA).create()
        for _ in range(TRIES):
            if self._try_to_move(adopted):
                failpoint("adopted")
                return
        raise TransientError(f"table {adopted.table}: group {self._old} commits all the time: stop its consumers")

    def _try_to_move(self, adopted: Adopted) -> bool:
        """Whether it is moved; else somebody committed meanwhile: look again."""
        theirs = self._positions(adopted.rows)
        stored = self._lake.all_versions(adopted.table)
        begun = open_positions(stored, self._old)
        # Into which a route leads by now, of any topic. Once the commit to this table lands, no partition and no route
        # has begun since
        sides = (side for side in sides_noted_by(stored, self._old) if is_there(self._lake, side))
        found = {table: self._lake.all_versions(table) for table in dict.fromkeys([*adopted.beside, *sides])}
        beside = all(self._moved(table, there, begun, is_beside=True) for table, there in found.items())
        return beside and self._moved(adopted.table, stored, theirs, is_beside=bool(adopted.rows))

    def _moved(self, table: str, stored: Mapping[str, int], theirs: tuple[str, ...], *, is_beside: bool) -> bool:
        change = hand_over(stored, self._old, self._settings.group, theirs)
        self._refuse_others(table, stored, may_be_ours=is_beside or change is None)
        outcome = None if change is None else self._lake.open(table).commit(change.expected, change.new, ())
        return outcome is not CommitOutcome.REFUSED

    def _positions(self, rows: str) -> tuple[str, ...]:
        return open_positions(self._lake.all_versions(rows), self._old) if rows else ()

    def _tables(self, topics: Collection[str]) -> Iterator[tuple[str, str, bool]]:
        """Tables; of those beside one of rows that one, which comes after them; whether it is one of dead letters."""
        in_kafka = admin_of(self._settings).list_topics()
        # Also tables of topics that Kafka no longer has: in the log they are still the old name's
        known_as = self._settings.model_copy(update={"group": self._old})
        specs = find_tables(known_as, self._lake, in_kafka, topics or None)
        found: dict[tuple[str, str, bool], None] = {}
        for spec in specs:
            stored = self._lake.all_versions(spec.table)
            noted = (side for group in (self._old, self._settings.group) for side in sides_noted_by(stored, group))
            sides = dict.fromkeys([*side_tables_of(self._lake, spec, self._old), *noted])
            beside = [(spec.dead_letters_table, spec.table, True)]
            beside += [(side, spec.table, False) for side in sides if is_there(self._lake, side)]
            found |= dict.fromkeys([*beside, (spec.table, "", False)])
        yield from found

    def _refuse_others(self, table: str, stored: Mapping[str, int], *, may_be_ours: bool) -> None:
        # What is beside may be the heir's for the most part: it comes before the rows. And two may adopt at once
        others = sorted(set(owners(stored)) - {self._old} - ({self._settings.group} if may_be_ours else set()))
        if others:
            raise UnsafeError(
                f"table {table}: group {', '.join(others)} also writes it: two groups cannot share a history: "
                "give one of them another table"
            )
