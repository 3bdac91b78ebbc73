"""Statistics of the lake and of Kafka beyond it: rows, files, positions and lag of every table, from outside."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from kgs_core.config import Settings, TableSpec, resolve_tables
from kgs_core.errors import KgsError, UnsafeError, one_line
from kgs_core.kafka.admin import admin_of
from kgs_core.lake.rule.positions import CLOSED, AppIds
from kgs_core.lake.topics.factory import open_lake
from kgs_core.model import TopicId, TopicPartition, by_topic, whole_sum
from kgs_core.ports import PinnedTable, TableContents

_TIMEOUT_S = 3.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TableView:
    """One topic and its table, as they are now. None anywhere: not known, which is not zero.

    Attributes:
        rows: rows of the table, including those of other topics that share it.
        size_bytes: its data files' size, compressed.
        dead_letters: rows of the dead-letter table; 0 without one.
        version: of the table's log; None also before the table is made.
        positions: partition -> next offset to read; None where the lake has none yet, absent where the group has handed
            it over.
        ends: partition -> where a read_committed reader must stop.
        sides: side tables of the topic's route, which are none of `rows`; they have no positions here.
        derived: its derived tables, likewise.
        fields: columns of the table, as in `TableDescription`; none where they are not known.
        topic_id: id of the topic that the positions are of; None: not known.
        partitions: how many the topic has.
    """

    topic: str
    table: str
    rows: int | None = None
    size_bytes: int | None = None
    files: int | None = None
    dead_letters: int | None = None
    version: int | None = None
    positions: Mapping[int, int | None] = field(default_factory=dict)
    ends: Mapping[int, int | None] = field(default_factory=dict)
    sides: tuple["TableView", ...] = ()
    derived: tuple["TableView", ...] = ()
    fields: Sequence[Mapping[str, Any]] = ()
    topic_id: TopicId | None = None
    partitions: int = 0

    def lag_of(self, partition: int) -> int | None:
        """Offsets of a partition that are not yet in the lake; None if either end is unknown."""
        position, end = self.positions.get(partition), self.ends.get(partition)
        return None if position is None or end is None else max(0, end - position)

    @property
    def lag(self) -> int | None:
        """Offsets that are not yet in the lake; None if a partition's lag, or the set of partitions, is unknown."""
        return whole_sum(map(self.lag_of, self.ends)) if self.ends else None


def with_sides(views: Iterable[TableView]) -> list[TableView]:
    """The views, each followed by those of its side tables."""
    return [each for view in views for each in (view, *view.sides)]


def each_once(views: Iterable[TableView]) -> list[TableView]:
    """One view of each table: several topics may fill one."""
    found: dict[str, TableView] = {}
    for view in views:
        found.setdefault(view.table, view)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class LakeSnapshot:
    """All tables by topic name, a line for each problem, and whether Kafka has said which topics there are."""

    tables: tuple[TableView, ...]
    problems: tuple[str, ...]
    knows_topics: bool = True

    @property
    def rows(self) -> int | None:
        """Rows of all tables; None if those of one are unknown."""
        return whole_sum(table.rows for table in each_once(with_sides(self.tables))) if self.tables else None

    @property
    def lag(self) -> int | None:
        """Offsets of all tables that are not yet in the lake; None if those of one are unknown."""
        return whole_sum(table.lag for table in self.tables) if self.tables else None


class LakeView:
    """Looks at the lake again and again; reads of each table's log only what is new. Used by one thread at a time."""

    def __init__(self, settings: Settings, timeout_s: float = _TIMEOUT_S) -> None:
        """Connects on first use; `timeout_s` is the longest wait for an answer of Kafka."""
        self._settings = settings
        self._lake = open_lake(settings.lake)
        self._admin = admin_of(settings, timeout_s)
        self._pinned: dict[str, PinnedTable] = {}
        self._contents: dict[str, TableContents] = {}
        self._seen: set[str] = set()
        self._specs: dict[str, TableSpec] = {}
        self._described: dict[str, tuple[TopicId, int]] = {}

    def snapshot(self) -> LakeSnapshot:
        """Everything as of now; what cannot be learned is None and named in `problems`. Never raises a PortError."""
        problems: list[str] = []
        knows_topics = self._attempt(problems, self._look_for_topics) is not None
        # Positions before ends: the lag may then be too large by what came in between, never too small.
        tables = [self._table(topic, problems) for topic in self._specs]
        tps = [TopicPartition(topic, p) for topic, (_, n) in self._described.items() for p in range(n)]
        ends = self._attempt(problems, lambda: self._admin.offsets(tps, "latest", committed_reads=True)) or {}
        of_topic = by_topic({tp: ends.get(tp) for tp in tps})
        found = tuple(replace(table, ends=of_topic.get(table.topic, {})) for table in tables)
        return LakeSnapshot(found, tuple(dict.fromkeys(problems)), knows_topics)

    @property
    def specs(self) -> Collection[TableSpec]:
        """Tables of the topics that the last snapshot has found."""
        return self._specs.values()

    def pinned(self, table: str) -> PinnedTable | None:
        """A table as the last snapshot has it; None where it could not be read."""
        return self._pinned.get(table)

    def _look_for_topics(self) -> bool:
        self._specs = resolve_tables(self._settings, self._admin.list_topics())
        found = self._admin.describe(self._specs)
        self._described = {topic: (d.topic_id, d.partitions) for topic, d in found.items()}
        return True

    def _table(self, topic: str, problems: list[str]) -> TableView:
        spec = self._specs[topic]
        contents = self._attempt(problems, lambda: self._load(spec.table))
        letters = self._attempt(problems, lambda: self._dead_letters(spec.dead_letters_table))
        # Where the rows' table is not there either, it is not known whether there are any: the lake may be away
        dead_letters = None if contents is None and spec.dead_letters_table not in self._pinned else letters
        sides, derived = (
            tuple(_view_of(topic, n, self._attempt(problems, partial(self._load, n)), 0) for n in names)
            for names in (dict.fromkeys(spec.side_tables.values()), spec.derived_tables)
        )
        self._seen.difference_update(spec.derived_tables)  # deleted, they are built again
        view = _view_of(topic, spec.table, contents, dead_letters)
        positions = self._attempt(problems, lambda: self._positions(spec)) if contents is not None else {}
        topic_id, partitions = self._described.get(topic, (None, 0))
        view = replace(view, positions=positions or {}, sides=sides, derived=derived)
        return replace(view, topic_id=topic_id, partitions=partitions)

    def _dead_letters(self, table: str) -> int | None:
        contents = self._load(table)
        return 0 if contents is None else contents.rows

    def _load(self, table: str) -> TableContents | None:
        """The table's contents; None where there is no table yet."""
        pinned = self._pinned.get(table)
        if pinned is None:
            pinned = self._lake.pin(table)
            if pinned is None and table in self._seen:
                raise UnsafeError(f"table {table}: not there: it was moved or deleted: bring it back")
            if pinned is None:
                return None
            self._pinned[table] = pinned
            self._seen.add(table)
        before = self._contents.get(table)
        try:
            if before is not None:
                pinned.refresh()
            if before is None or before.version != pinned.version:
                before = self._contents[table] = pinned.contents()
            else:
                pinned.version_of("")  # of a table that was moved away nothing new comes, and that is no error
        except Exception:
            del self._pinned[table]  # its log was cleaned away under it, or is gone: the next look loads it afresh
            self._contents.pop(table, None)
            raise
        return before

    def _positions(self, spec: TableSpec) -> dict[int, int | None]:
        topic_id, partitions = self._described[spec.topic]
        ids = AppIds(self._settings.group, spec.topic, topic_id)
        pinned = self._pinned[spec.table]
        stored = {p: pinned.version_of(ids.position(p)) for p in range(partitions)}
        return {p: position for p, position in stored.items() if position != CLOSED}

    def _attempt(self, problems: list[str], load: Callable[[], T]) -> T | None:
        try:
            return load()
        except KgsError as e:
            problems.append(str(e))
        except Exception as e:  # noqa: BLE001 - deltalake raises OSError, DeltaError and plain exceptions alike
            problems.append(f"lake {self._lake.root}: {one_line(e)[:200]}")
        return None


def _view_of(topic: str, table: str, found: TableContents | None, dead_letters: int | None) -> TableView:
    if found is None:
        return TableView(topic, table, dead_letters=dead_letters)
    known = found.rows, found.size_bytes, found.files, dead_letters, found.version
    return TableView(topic, table, *known, fields=found.fields)
