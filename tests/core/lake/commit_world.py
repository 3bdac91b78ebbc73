"""Writers of one table, each request of each of them a step: whose step comes next and what becomes of it is chosen.

The store is a dictionary and time stands still unless all sleep, so a run is as exact as its choices. The writers run
the real commit in greenlets: one goes at a time, and to change from one to the next costs a fiftieth of what it does
with threads.
"""

import json
import random
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from typing import Any

import pyarrow as pa
from deltalake import Schema
from greenlet import greenlet

from kgs_core.config.settings import LakeSettings
from kgs_core.errors import TransientError
from kgs_core.lake.delta import combined_commit, delta_log, pace, table_log
from kgs_core.lake.delta.combined_commit import CombinedCommits
from kgs_core.lake.delta.delta_table import DeltaTopicTable
from kgs_core.lake.delta.evolution import add_columns
from kgs_core.lake.delta.turns import Turns
from kgs_core.ports import CommitOutcome, FileWritten
from tests.core.lake.world_store import WorldIntents, WorldLog
from tests.failpoints import KilledError
from tests.one_column import SCHEMA

MOST_STEPS = 3000
LATE_STEPS = 7


def first_entry() -> bytes:
    """Of a table of one column."""
    metadata = {"id": "made once", "schemaString": Schema.from_arrow(SCHEMA).to_json()}
    return "\n".join(map(json.dumps, ({"commitInfo": {}}, {"metaData": metadata}, {"protocol": {}}))).encode()


class Fate(Enum):
    """What becomes of one request."""

    KILLED_BEFORE = auto()
    KILLED_AFTER = auto()
    FAILS = auto()
    REPLY_LOST = auto()
    LATE = auto()
    """It fails, and is carried out some steps later."""


@lru_cache(1000)
def lines_of(entry: bytes) -> tuple[dict[str, Any], ...]:
    """Actions of an entry of the log; entries of many runs are alike."""
    return tuple(map(json.loads, entry.splitlines()))


@dataclass
class World:
    """The store, and what was promised."""

    rng: random.Random
    fates: dict[int, Fate] = field(default_factory=dict)
    entries: dict[int, bytes] = field(default_factory=dict)
    intents: dict[str, tuple[float, bytes]] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    now: float = 1_000_000.0
    steps: int = 0
    late: list[tuple[int, Callable[[], object]]] = field(default_factory=list)
    writers: list["Writer"] = field(default_factory=list)

    def run(self) -> None:
        """Until every writer has ended."""
        for writer in self.writers:
            writer.go()
        while alive := [w for w in self.writers if not w.has_ended]:
            assert self.steps < MOST_STEPS, "they do not get on"
            self.late, due = [x for x in self.late if x[0] > self.steps], [x for x in self.late if x[0] <= self.steps]
            for _, effect in due:
                effect()
            awake = [w for w in alive if w.wakes_s <= self.now]
            if not awake:
                self.now = min(w.wakes_s for w in alive)
                continue
            writer = self.rng.choice(awake)
            writer.go()

    def ranges(self) -> dict[str, list[tuple[int, int]]]:
        """Application id -> ranges of the files in the log, in the log's order."""
        found: dict[str, list[tuple[int, int]]] = {}
        for add in self._actions("add"):
            for app, (start, end) in json.loads(add["stats"]).items():
                found.setdefault(app, []).append((start, end))
        return found

    def stored(self) -> dict[str, int]:
        """Positions that the log ends with."""
        return {txn["appId"]: txn["version"] for txn in self._actions("txn")}

    def _actions(self, kind: str) -> list[Any]:
        lines = [line for number in sorted(self.entries) for line in lines_of(self.entries[number])]
        return [line[kind] for line in lines if kind in line]

    def columns(self, number: int | None = None) -> list[str]:
        """Columns of the table as of an entry; None: as of the last."""
        numbers = [n for n in sorted(self.entries) if number is None or n <= number]
        lines = [line for n in numbers for line in lines_of(self.entries[n])]
        found = [line["metaData"] for line in lines if "metaData" in line][-1]
        return [field["name"] for field in json.loads(found["schemaString"])["fields"]]

    def check(self) -> None:
        """Every offset once, none missing, and nothing that was reported is not there.

        Columns only ever become more, and a file has none that the table lacks.
        """
        for number in sorted(self.entries):
            before, now = self.columns(max(number - 1, 0)), self.columns(number)
            assert now[: len(before)] == before
            adds = [line["add"] for line in lines_of(self.entries[number]) if "add" in line]
            for add in adds:
                assert set(add["path"].split("|")[1:]) <= set(now), add["path"]
        assert sorted(self.entries) == list(range(len(self.entries)))
        ranges, stored = self.ranges(), self.stored()
        for app in {*ranges, *stored}:
            at = 0
            for start, end in ranges.get(app, []):
                assert start == at, f"{app}: {ranges[app]}"
                at = end
            assert stored.get(app, 0) == at, app
        for writer in self.writers:
            assert writer.problem is None, writer.problem
            for app, end in writer.reported:  # perhaps by somebody else's ranges
                assert stored[app] >= end, f"{app}: {end} was reported: {ranges.get(app)}"


class Writer:
    """One consumer: commits batch after batch of its partitions, and reads the positions after every refusal."""

    def __init__(
        self, world: World, number: int, apps: Collection[str], until: int, mode: str, *, more: Sequence[str] = ()
    ) -> None:
        """Gives the table one of the columns `more` before each batch, as long as there are some."""
        self.world = world
        self.number = number
        self.apps = tuple(apps)
        self.until = until
        self.wakes_s = 0.0
        self.has_ended = self.was_killed = False
        self.problem: BaseException | None = None
        self.reported: list[tuple[str, int]] = []
        self.lake, self.mode = LakeSettings(root="/nowhere"), mode
        self.more = list(more)
        self.schema = SCHEMA
        self._connect()
        self._course = greenlet(self._run)
        world.writers.append(self)

    def _connect(self) -> None:
        """A handle for files of `schema`."""
        log = WorldLog(self.request, self.world, self.lake, self.schema)
        self.table = DeltaTopicTable(log, commits=self.mode)
        chance = random.Random(self.world.rng.random())
        self.table._combined = CombinedCommits(log, Turns(chance))
        self.table._combined._intents = WorldIntents(self.request, self.world)
        self.table._pace._chance = chance

    def _evolve(self) -> None:
        """As a consumer does that meets records with one more column: the table gets it, then files have it."""
        column = pa.field(self.more[0], pa.int64())
        log = WorldLog(self.request, self.world, self.lake, pa.schema([]))
        try:
            add_columns(log, [column])
        except TransientError:
            return
        del self.more[0]
        self.schema = pa.schema([*self.schema, column])
        self._connect()

    def go(self) -> None:
        """Until its next step, or its end."""
        _current["writer"] = self
        self._course.switch()

    def request(self, effect: Callable[[], Any]) -> Any:
        """One step."""
        self._wait()
        self.world.steps += 1
        fate = self.world.fates.get(self.world.steps)
        if fate is Fate.KILLED_BEFORE:
            self._die()
        if fate is Fate.FAILS:
            raise OSError("the store is away")
        if fate is Fate.LATE:

            def later() -> None:
                with suppress(Exception):
                    effect()

            self.world.late.append((self.world.steps + LATE_STEPS, later))
            raise OSError("no answer in time")
        result = effect()
        if fate is Fate.KILLED_AFTER:
            self._die()
        if fate is Fate.REPLY_LOST:
            raise OSError("the reply was lost")
        return result

    def sleep(self, seconds: float) -> None:
        self.wakes_s = self.world.now + seconds
        self._wait()

    def _wait(self) -> None:
        self._course.parent.switch()
        if self.was_killed:
            raise KilledError

    def _die(self) -> None:
        self.was_killed = True
        raise KilledError

    def _run(self) -> None:
        try:
            self._wait()
            self._commit_all()
        except KilledError:
            pass
        except BaseException as e:  # noqa: BLE001 - told by `check`
            self.problem = e
        finally:
            self.has_ended = True

    def _commit_all(self) -> None:
        positions = self._positions()
        while self.more or any((positions[app] or 0) < self.until for app in self.apps):
            ranges = {
                app: ((positions[app] or 0), (positions[app] or 0) + self.world.rng.choice((1, 2))) for app in self.apps
            }
            if self.more:
                self._evolve()
            name = "|".join([f"{self.number}-{self.world.rng.random()}.parquet", *self.schema.names])
            self.world.files.add(name)
            file = FileWritten(name, 1, 1, json.dumps(ranges))
            try:
                outcome = self.table.commit(dict(positions), {app: end for app, (_, end) in ranges.items()}, [file])
            except TransientError:
                outcome = CommitOutcome.REFUSED
            if outcome is CommitOutcome.COMMITTED:
                self.reported += [(app, end) for app, (_, end) in ranges.items()]
                positions = {app: end for app, (_, end) in ranges.items()}
            else:
                positions = self._positions()

    def _positions(self) -> dict[str, int | None]:
        while True:
            with suppress(TransientError):
                return self.table.versions(self.apps)


class _Inline:
    """Requests beside others come one after the other, so that each is a step."""

    @staticmethod
    def submit(action: Callable[..., Any], *args: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(action(*args))
        except Exception as e:  # noqa: BLE001 - for whoever asks
            done.set_exception(e)
        return done

    @staticmethod
    def map(action: Callable[..., Any], names: Any) -> list[Any]:
        return [action(name) for name in names]


class _Clock:
    """The world's time, for the writer that goes."""

    @staticmethod
    def time() -> float:
        return _current["writer"].world.now

    monotonic = time

    @staticmethod
    def sleep(seconds: float) -> None:
        _current["writer"].sleep(seconds)


_current: dict[str, Writer] = {}
"""The writer that goes."""


def make_world_real(monkeypatch: Any) -> None:
    """Let the lake's code see the world's time."""
    for module in (combined_commit, pace, table_log):
        monkeypatch.setattr(module, "time", _Clock)
    for module in (combined_commit, table_log):
        monkeypatch.setattr(module, "helpers", _Inline)
    monkeypatch.setattr(combined_commit, "remove_beside", lambda store, names: store.remove(names))
    monkeypatch.setattr(delta_log, "_readers", _Inline)
    monkeypatch.setattr(table_log, "keep_short", lambda *_: None)
