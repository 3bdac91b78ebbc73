"""Newest rows whose records end, where deleted rows stay and keep their values: as a plain loop says, and proven."""

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgs_core.config import resolve_tables
from kgs_core.lake.derived import derived_table
from kgs_core.lake.derived.latest_by_key import LatestByKeyTable
from kgs_core.lake.derived.proof import prove
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.letters.erase import Eraser
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.keep import end_aged
from tests.core.lake.ending_world import HOUR_MS, START_MS
from tests.kgs_yaml import LONGS, kgs_yaml
from tests.sink import FakeRecord, Sink

KEYS, PARTITIONS = 3, 2


def key(place):
    return b"p%d-k%d" % (place[0], random.Random(f"key {place}").randrange(KEYS))


def is_tombstone(place):
    return random.Random(f"value {place}").random() < 0.4


@dataclass
class Loop:
    """Places by what became of their records; key -> place, n and whether it is deleted."""

    source: set = field(default_factory=set)
    aged: set = field(default_factory=set)
    newest: dict = field(default_factory=dict)

    def renew(self, erased=()):
        touched = {key(place) for place in erased} | {k for k, row in self.newest.items() if row[0] in erased}
        for k in {key(place) for place in self.source} | {*self.newest}:
            former = self.newest.pop(k, None)
            value = former[1] if former and k not in touched else None
            rows = {p: None if is_tombstone(p) else (p, p[1], False) for p in self.source if key(p) == k}
            if former and former[0] in self.aged - {*erased}:
                rows[former[0]] = former
            for place in sorted(rows):
                row = rows[place] or (place, value, True)
                value, self.newest[k] = row[1], row


class World:
    def __init__(self, root, vectors):
        self.loop, self.ends = Loop(), [0] * PARTITIONS
        latest = {"table": "t_latest", "deletes": "column", "deletion_vectors": vectors}
        self.settings = kgs_yaml(root, {**LONGS, "keep": "5 hours", "newest_rows": latest})
        self.spec = resolve_tables(self.settings, ["t"])["t"]
        self.sink, self.lake = Sink(Storage(root)).started(PARTITIONS), open_lake(self.settings.lake)

    def ingest(self, partition, count):
        start = self.ends[partition]
        self.ends[partition] += count
        self.sink.ingest({partition: (start, start + count)})
        self.loop.source |= {(partition, at) for at in range(start, start + count)}
        LatestByKeyTable(self.settings, self.spec).materialize()
        self.loop.renew()

    def erase_key(self, partition, number):
        k = b"p%d-k%d" % (partition, number)
        rows = {row[0] for each, row in self.loop.newest.items() if each == k and row[0] in self.loop.aged}
        self._erased({place for place in self.loop.source if key(place) == k} | rows, keys=[k.decode()])

    def erase_values(self, first, count):
        among = range(first, first + count)
        rows = {row[0] for row in self.loop.newest.values() if row[1] in among and row[0] in self.loop.aged}
        places = {place for place in self.loop.source if place[1] in among and not is_tombstone(place)}
        self._erased(places | rows, where=f"n >= {first} AND n < {first + count}")

    def _erased(self, places, **meant):
        Eraser(self.settings, "t", **meant).run()
        self.loop.source -= places
        self.loop.renew(places)
        files = DeltaTable(self.sink.storage.uri("t_latest")).file_uris()
        stored = [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist()]
        assert not [row for row in stored if (row["_partition"], row["_offset"]) in places]

    def keep(self, hours):
        end_aged(self.lake, "g", [self.spec], datetime.fromtimestamp((START_MS + hours * HOUR_MS) / 1000, UTC))
        first = START_MS + (hours - 5) * HOUR_MS
        aged = {place for place in self.loop.source if START_MS + place[1] * HOUR_MS < first - first % HOUR_MS}
        self.loop.aged |= aged
        self.loop.source -= aged

    def anew(self, patch):
        """All is made anew, as after `kgs redrive`."""
        with patch.context() as changed:
            changed.setattr(derived_table.DerivedTable, "has_columns", lambda *_: False)
            LatestByKeyTable(self.settings, self.spec).materialize()

    def rows(self):
        return {r["_key"]: ((r["_partition"], r["_offset"]), r["n"], r["_deleted"]) for r in self.sink.rows("t_latest")}

    def proof(self):
        return prove(self.settings, self.spec)[0]


def _step(name, **given):
    return st.tuples(st.just(name), st.fixed_dictionaries({k: st.integers(*between) for k, between in given.items()}))


STEPS = st.lists(
    st.one_of(
        _step("ingest", partition=(0, PARTITIONS - 1), count=(1, 10)),
        _step("erase_key", partition=(0, PARTITIONS - 1), number=(0, KEYS - 1)),
        _step("erase_values", first=(0, 20), count=(1, 6)),
        _step("keep", hours=(5, 25)),
    ),
    min_size=2,
    max_size=7,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(vectors=st.booleans(), begins=st.integers(5, 20), steps=STEPS, is_anew=st.booleans())
def test_it_is_as_a_plain_loop_says_and_proven(monkeypatch, vectors, begins, steps, is_anew):
    with TemporaryDirectory() as root, monkeypatch.context() as patch:
        patched(patch)
        world = World(root, vectors)
        for partition in range(PARTITIONS):
            world.ingest(partition, begins)
        for name, given_ in steps:
            getattr(world, name)(**given_)
            assert world.rows() == world.loop.newest
            assert world.proof().ok, world.proof()
        if is_anew:
            world.anew(monkeypatch)
            assert world.rows() == world.loop.newest


def test_a_row_that_is_missing_beside_ended_records_is_counted(tmp_path, monkeypatch):
    patched(monkeypatch)
    monkeypatch.setattr(FakeRecord, "value", lambda record: b'{"n": %d}' % record.at)
    world = World(str(tmp_path), vectors=False)
    world.ingest(0, 20)
    world.keep(20)
    assert world.lake.ended("t")["keep"]
    assert world.proof().ok
    DeltaTable(world.sink.storage.uri("t_latest")).delete("_offset = 19")
    found = world.proof()
    assert (found.missing, found.extra, found.differing) == (1, 0, 0)


def patched(patch):
    patch.setattr(FakeRecord, "key", lambda record: key((record.number, record.at)))
    patch.setattr(FakeRecord, "timestamp", lambda record: (1, START_MS + record.at * HOUR_MS))
    patch.setattr(FakeRecord, "value", _value)


def _value(record):
    return None if is_tombstone((record.number, record.at)) else b'{"n": %d}' % record.at
