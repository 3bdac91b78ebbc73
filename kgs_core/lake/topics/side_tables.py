"""Side tables of a topic: rows that its route puts beside its own table, committed before it.

Like dead letters, each side table has positions of its own, the marks: rows below a mark already exist, and are
dropped when they are read again. `lake.rule.route_tokens` explains what a route may be, and what changing it takes.

The own table's log notes each side table: first as claimed, and from its first batch on as in use. A table in use
is never made again: it would lack the rows that the own table's positions promise.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa

from kgs_core.config import TableSpec
from kgs_core.errors import PortError, TransientError, UnsafeError
from kgs_core.lake.rule.batch import TopicBatch
from kgs_core.lake.rule.positions import CLOSED, AppIds, parse_app_id
from kgs_core.lake.rule.route_tokens import ROUTED, fingerprint, generation_of, route_of, token
from kgs_core.lake.topics.shared_table import refuse_other_groups
from kgs_core.model import TopicId
from kgs_core.ports import CommitOutcome, Lake, LakeTable, TableLayout
from kgs_core.system.failpoints import failpoint

TRIES = 20
CLAIMED, IN_USE = 1, 2
Marks = dict[str, dict[int, int | None]]
Versions = Mapping[str, int | None]


class SideTables:
    """Side tables of a topic id, including those of earlier routes. Used by one thread at a time."""

    def __init__(self, lake: Lake, spec: TableSpec, ids: AppIds) -> None:
        self._lake = lake
        self._spec = spec
        self._ids = ids
        self._route = route_fingerprint(spec)
        self._names = tuple(dict.fromkeys(spec.side_tables.values()))
        self.tables: dict[str, LakeTable] = {}  # those of our route
        self._earlier: dict[str, LakeTable] | None = None
        self._tokens: dict[int, int | None] | None = None
        self._new: frozenset[str] = frozenset()

    def use(self, schema: pa.Schema, layout: TableLayout) -> None:
        """Write files with these columns from now on."""
        self.tables = {name: self._lake.table(name, schema, layout) for name in self._names}

    def create(self) -> None:
        """Make missing tables, and check all.

        Raises:
            UnsafeError: a table in use is missing.
            PortError: see `LakeTable.create`.
        """
        self._refuse_deleted()
        for table in self.tables.values():
            table.create()

    def fit(self, there: pa.Schema, layout: TableLayout, *, evolve: bool) -> None:
        """Make missing tables, and give them the columns of the topic's own table, if they may change.

        Raises:
            UnsafeError: a table in use is missing.
            PortError: see `Lake.columns`.
        """
        self._refuse_deleted()
        for name in self._names:
            self._lake.columns(name, there, there if evolve else None, layout)

    def take_up(self, own: LakeTable, partitions: Collection[int], *, is_routed: bool) -> Marks:
        """Put these partitions under our route, in the own table and all side tables; returns our tables' marks.

        Args:
            own: the topic's own table; it has positions of all these partitions.
            is_routed: its log says that there is, or was, a route.

        Raises:
            UnsafeError: a side table is ahead by another route, is another table's, or was handed over.
            TransientError: a store did not answer, or others take the partitions up all the time.
        """
        if not self._names and not is_routed:
            self._tokens = None
            return {}
        for _ in range(TRIES):
            marks = self._try_to_take_up(own, partitions)
            if marks is not None:
                return marks
        raise TransientError(f"table {own.name}: others take up the partitions of {self._ids.topic} all the time")

    def guard(self, partitions: Collection[int]) -> dict[str, int | None]:
        """Versions that a commit to the own table must find beside positions, so that our route still holds."""
        if self._tokens is None:
            return {ROUTED: None}
        return {self._ids.route(p): self._tokens.get(p) for p in partitions}

    def notes(self) -> dict[str, int]:
        """Notes for the next commit to the own table, until one has landed."""
        return {self._ids.side(name): IN_USE for name in self._new}

    def are_noted(self) -> None:
        """Note that this commit has landed."""
        self._new = frozenset()

    def commit(self, batch: TopicBatch, judged: dict[str, int | None]) -> CommitOutcome:
        """Compare-and-set of side tables with rows of the batch, on the marks they were filtered by and `judged`."""
        position, tokens = self._ids.position, self._tokens or {}
        for name, part in batch.sides.items():
            expected = {position(p): part.marks.get(p) for p in batch.ranges}
            expected |= {self._ids.route(p): tokens.get(p) for p in batch.ranges} | judged
            new = {position(p): r.end for p, r in batch.ranges.items() if r.end > (part.marks.get(p) or 0)}
            if self.tables[name].commit(expected, new, part.files) is CommitOutcome.REFUSED:
                return CommitOutcome.REFUSED
            failpoint("after-side-commit")
        return CommitOutcome.COMMITTED

    def _try_to_take_up(self, own: LakeTable, partitions: Collection[int]) -> Marks | None:
        """Take partitions up once; None: another writer was faster, look again."""
        ids = self._ids
        apps = [app for p in partitions for app in (ids.position(p), ids.route(p))]
        notes = [ids.side(name) for name in self._names]
        stored = own.versions([*apps, *notes, ROUTED])
        tables = self.tables | self._of_earlier_routes(own, {p: stored[ids.route(p)] for p in partitions})
        found = {name: self._versions_of(table, apps) for name, table in tables.items()}
        for name, at in found.items():
            if problem := self._problem_of(name, stored, at, partitions):
                if own.versions(apps) != {app: stored[app] for app in apps}:
                    return None  # rows of its owner were on their way
                raise UnsafeError(problem)
            if any(at[route] is None and (self._names or stored[route]) for route in map(ids.route, partitions)):
                # It may have been away while the own table changed hands: what others have there is in no mark of ours
                refuse_other_groups(self._lake, name, ids.group)
        tokens = self._claimed(own, stored, found, partitions)
        if tokens is None:
            return None
        for name, at in found.items():
            fenced = self._fenced(tables[name], stored, at, tokens)
            if fenced is None:
                return None
            found[name] = fenced
        self._tokens = (self._tokens or {}) | tokens
        self._new = frozenset(name for name in self._names if stored[ids.side(name)] != IN_USE)
        return {name: {p: found[name][ids.position(p)] for p in partitions} for name in self._names}

    def _of_earlier_routes(self, own: LakeTable, tokens: Mapping[int, int | None]) -> dict[str, LakeTable]:
        """Existing side tables of earlier routes, which the own table's log names."""
        known = self._tokens or {}
        if self._earlier is None or any(known.get(p) != token for p, token in tokens.items()):
            noted = noted_sides(self._lake.all_versions(own.name), self._ids.group, self._ids.topic)
            names = sorted(noted - set(self._names))
            found = {}
            for name in names:
                with self._in_words(name):
                    if is_there(self._lake, name):
                        found[name] = self._lake.open(name)
            self._earlier = found
        return self._earlier

    def _versions_of(self, table: LakeTable, apps: Collection[str]) -> Versions:
        with self._in_words(table.name):
            return table.versions(apps)

    @contextmanager
    def _in_words(self, side: str) -> Iterator[None]:
        """Explain errors of a table of an earlier route: why it counts, and what to do if they stay.

        Its mark must be known: if it is ahead, only its own route finds its rows again. And its token must be written:
        a paused owner of that route may still have the previous log in memory.
        """
        try:
            yield
        except PortError as e:
            if side in self._names:
                raise
            raise type(e)(
                f"{e}: an earlier route of topic {self._ids.topic} leads there: if this does not pass, bring its log "
                "back, or move its folder away (docs/tables.md, One topic in several tables)"
            ) from e

    def _problem_of(self, side: str, own: Versions, at: Versions, partitions: Collection[int]) -> str:
        ids, table = self._ids, self._spec.table
        for p in partitions:
            position, mark, there = own[ids.position(p)] or 0, at[ids.position(p)], at[ids.route(p)]
            if mark == CLOSED:
                return (
                    f"table {side}: group {ids.group} has handed over its positions of topic {ids.topic} (kgs adopt): "
                    "start consumers with the group and the cluster that have them now"
                )
            if there is None or mark is None or route_of(there) == self._route:
                continue
            if own[ids.route(p)] is None:
                return (
                    f"table {side}: has rows that a route put beside another table than {table}: name other tables in "
                    f"the route of topic {ids.topic}"
                )
            if mark > position:
                return (
                    f"table {side}: has rows of {ids.topic}:{p} up to {mark} by another route, and {table} stands at "
                    f"{position}: restore the previous route, start consumers, stop them with kgs stop "
                    "--wait, and change the route then"
                )
        return ""

    def _claimed(
        self, own: LakeTable, stored: Versions, found: Mapping[str, Versions], partitions: Collection[int]
    ) -> dict[int, int | None] | None:
        """Our token of each partition, once the own table has it; None: the table was not as in `stored`."""
        ids = self._ids
        tokens = {p: stored[ids.route(p)] for p in partitions}
        others = [p for p in partitions if route_of(tokens[p]) != self._route]
        unnoted = [name for name in self._names if stored[ids.side(name)] is None]
        if not others and not unnoted:
            return tokens
        for name in unnoted:
            self._refuse_tables_of_others(name)
        for p in others:
            known = [generation_of(each) for each in (tokens[p], *(at[ids.route(p)] for at in found.values()))]
            tokens[p] = token(max(known) + 1, self._route)
        expected = {app: stored[app] for p in others for app in (ids.position(p), ids.route(p))}
        expected |= {ids.side(name): None for name in unnoted} | {ROUTED: stored[ROUTED]}
        new = {ids.route(p): each for p in others if (each := tokens[p]) is not None}
        new |= {ids.side(name): CLAIMED for name in unnoted} | {ROUTED: 1}
        outcome = own.commit(expected, new, ())
        failpoint("route-claimed")
        return tokens if outcome is CommitOutcome.COMMITTED else None

    def _fenced(
        self, table: LakeTable, own: Versions, at: Versions, tokens: Mapping[int, int | None]
    ) -> Versions | None:
        """Versions of a side table once it has our tokens; None: it was not as in `at`, or our tokens are stale."""
        ids = self._ids
        expected: dict[str, int | None] = {}
        new: dict[str, int] = {}
        for p, ours in tokens.items():
            position, route = ids.position(p), ids.route(p)
            if ours is None or at[route] == ours:
                continue
            if generation_of(at[route]) >= generation_of(ours):
                return None
            expected |= {position: at[position], route: at[route]}
            # A mark, so that a table that changes hands has something to close
            new |= {position: max(at[position] or 0, own[position] or 0), route: ours}
        if new and table.commit(expected, new, ()) is CommitOutcome.REFUSED:
            return None
        failpoint("side-fenced")
        return {**at, **new}

    def _refuse_deleted(self) -> None:
        """Refuse a missing side table in use, whichever topic, topic id or group has used it."""
        if not self._names:
            return
        stored = self._lake.all_versions(self._spec.table)
        in_use = {app.partition("/side/")[2] for app, version in stored.items() if version == IN_USE}
        for name in self._names:
            if name in in_use and not is_there(self._lake, name):
                raise UnsafeError(
                    f"table {name}: not there: it was moved or deleted, with rows of the route of table "
                    f"{self._spec.table}: bring it back, or name another table in the route, which gets the rows from "
                    "now on"
                )

    def _refuse_tables_of_others(self, side: str) -> None:
        refuse_other_groups(self._lake, side, self._ids.group)
        own = [app for each in self._lake.all_versions(side) if (app := parse_app_id(each)) and app.is_start]
        if own:
            raise UnsafeError(
                f"table {side}: is, or was, the own table of topic {own[0].topic}: name another table in the route of "
                f"topic {self._ids.topic}"
            )


def route_fingerprint(spec: TableSpec) -> int:
    """Fingerprint that tells the route of a topic from others."""
    column = spec.rule.route.column if spec.rule.route is not None else ""
    return fingerprint(spec.table, column, spec.side_tables)


def is_there(lake: Lake, side: str) -> bool:
    """Whether a side table exists. One without marks counts: a paused writer may have claimed it, but not written.

    Raises:
        PortError: see `LakeTable.exists`.
    """
    return lake.table(side, pa.schema([])).exists()


def noted_sides(apps: Collection[str], group: str, topic: str, topic_id: TopicId | None = None) -> set[str]:
    """Side tables that a table's log names for a topic, under all of its ids or under one."""
    return {side for name, id_, side in _notes(apps, group) if name == topic and topic_id in (None, id_)}


def sides_noted_by(apps: Collection[str], group: str) -> list[str]:
    """Side tables that a table's log names for any topic of a group."""
    return sorted({side for _, _, side in _notes(apps, group)})


def _notes(apps: Collection[str], group: str) -> Iterator[tuple[str, str, str]]:
    """Topic, topic id and side table of each note."""
    for app in apps:
        head, is_note, side = app.partition("/side/")
        if is_note and head.startswith(f"{group}/"):
            topic, _, topic_id = head.removeprefix(f"{group}/").partition("@")
            yield topic, topic_id, side


def side_tables_of(lake: Lake, spec: TableSpec, group: str) -> tuple[str, ...]:
    """Side tables of a topic: those of its rule, and those of earlier routes that its table's log names.

    Raises:
        PortError: the log cannot be read.
    """
    noted = noted_sides(lake.all_versions(spec.table), group, spec.topic)
    return tuple(dict.fromkeys([*spec.side_tables.values(), *sorted(noted)]))
