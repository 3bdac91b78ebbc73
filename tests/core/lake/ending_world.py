"""A table whose rows end, and what a plain loop knows of it."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

from deltalake import DeltaTable

from kgs_core.config import resolve_tables
from kgs_core.ingest.replay.redrive import Redrive
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.lake.delta import row_removal
from kgs_core.lake.derived.latest_by_key import LatestByKeyTable
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.letters.erase import Eraser
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.keep import end_aged
from tests.core.ingest.letters import rule_of_then
from tests.failpoints import KilledError
from tests.kgs_yaml import LONGS, kgs_yaml
from tests.sink import FakeRecord, Sink

START_MS, HOUR_MS, KEPT_H, KEYS, PARTITIONS = 1_700_000_000_000, 3_600_000, 5, 5, 2
FAR = datetime(2026, 11, 1, tzinfo=UTC)
WRONG_TYPE = "column n: a text, wanted is a whole number (long)"


def number(place):
    return place[0] * 1_000_000 + place[1]


def key(place):
    return b"k%d" % (place[1] * 7 % KEYS)


@dataclass
class Loop:
    """What a plain loop knows of each record, by partition and offset."""

    ends: Counter = field(default_factory=Counter)
    rows: set = field(default_factory=set)  # also of those that have ended
    letters: set = field(default_factory=set)
    by: dict = field(default_factory=dict)  # place -> who ended it
    newest: dict = field(default_factory=dict)
    fresh: set = field(default_factory=set)  # rows that the derived table has not seen

    def ingest(self, partition, count):
        for at in range(self.ends[partition], self.ends[partition] + count):
            place = partition, at
            if at % 5 == 4:
                self.letters.add(place)
            else:
                self.rows.add(place)
                self.fresh.add(place)
        self.ends[partition] += count

    def redrive(self):
        again = {place for place in self.letters - self.rows if place[1] % 10 == 4 and place not in self.by}
        self.rows |= again
        self.fresh |= again

    def end(self, by, places):
        for place in places:
            self.by.setdefault(place, by)

    def materialize(self):
        def is_erased(place):
            return self.by.get(place) == "erase"

        for k in [k for k, place in self.newest.items() if is_erased(place)]:
            left = [place for place in self.rows if key(place) == k and place not in self.by]
            self.newest[k] = max(left, default=None)
        for place in self.fresh:
            if not is_erased(place):
                self.newest[key(place)] = max(filter(None, (self.newest.get(key(place)), place)))
        self.newest = {k: place for k, place in self.newest.items() if place is not None}
        self.fresh = set()


class EndingWorld:
    def __init__(self, root, layout):
        self.storage, self.loop = Storage(root), Loop()
        latest = {"table": "t_latest", "deletes": "ignore"}
        self.settings = kgs_yaml(root, {**LONGS, **layout, "keep": f"{KEPT_H} hours", "newest_rows": latest})
        self.specs = [resolve_tables(self.settings, ["t"])["t"]]
        self.lake = open_lake(self.settings.lake)
        self.sink = Sink(self.storage, **layout).started(PARTITIONS)
        self.open = []  # erasures that were killed
        LatestByKeyTable(self.settings, self.specs[0]).materialize()

    def ingest(self, partition, count):
        start = self.loop.ends[partition]
        with rule_of_then(lambda offset: offset % 10 == 4, WRONG_TYPE):
            self.sink.ingest({partition: (start, start + count)})
        self.loop.ingest(partition, count)

    def redrive(self):
        Redrive(self.settings, "t").run()
        self.loop.redrive()

    def maintain(self):
        for name in ("t", "t_dead_letters", "t_latest"):
            self.lake.maintain(name, dry_run=False)

    def materialize(self):
        LatestByKeyTable(self.settings, self.specs[0]).materialize()
        self.loop.materialize()

    def before(self, step):
        """The loop has to know which newest rows of ended records there are."""
        if step[0] == "erase" and "keep" in self.loop.by.values():
            self.materialize()

    def erase(self, *, k=None, below=None):
        try:
            Eraser(self.settings, "t", **({"keys": [k]} if k else {"where": f"n < {below}"})).run()
        except KilledError:
            self.open.append({"k": k, "below": below})
            killed = True
        else:
            killed = False
        loop = self.loop
        meant = {p for p in loop.rows | loop.letters if k and key(p) == k.encode()}
        meant |= {p for p in loop.rows if below and number(p) < below and p not in loop.by}
        loop.end("erase", meant)
        for place in loop.newest.values():
            if loop.by.get(place) == "keep" and (key(place) == k.encode() if k else number(place) < below):
                loop.by[place] = "erase"
        if not killed:
            loop.materialize()

    def keep(self, hours):
        first, loop = START_MS + (hours - KEPT_H) * HOUR_MS, self.loop
        first -= first % HOUR_MS
        loop.end("keep", {p for p in loop.rows | loop.letters if START_MS + p[1] * HOUR_MS < first})
        now = datetime.fromtimestamp((START_MS + hours * HOUR_MS) / 1000, UTC)
        try:
            end_aged(self.lake, "g", self.specs, now)
        except KilledError:
            end_aged(self.lake, "g", self.specs, now)

    def do(self, step):
        name, given = step
        getattr(self, name)(**given)

    def judge(self):
        for erasure in self.open:
            self.before(["erase"])
            self.erase(**erasure)
        self.materialize()
        loop = self.loop
        rows, letters = self.sink.rows(), self.sink.rows("t_dead_letters")
        places = [sorted((r["_partition"], r["_offset"]) for r in each) for each in (rows, letters)]
        assert places == [sorted(each - loop.by.keys()) for each in (loop.rows, loop.letters)]
        assert all(r["n"] == number((r["_partition"], r["_offset"])) for r in rows)
        newest = {r["_key"]: (r["_partition"], r["_offset"]) for r in self.sink.rows("t_latest")}
        assert newest == loop.newest
        whole = audit_lake(self.settings, with_log=False)
        assert whole.ok, whole
        (audited,) = whole.tables
        ended = Counter(loop.by.values())
        found = sum(p.ended for p in audited.partitions), sum(p.erased for p in audited.partitions)
        assert found == (ended["keep"], ended["erase"])
        self.maintain()
        configuration = DeltaTable(self.storage.uri("t")).metadata().configuration
        assert configuration["delta.appendOnly"] == "true"
        assert row_removal.REMOVES not in configuration


def value(record):
    """Every tenth is no JSON, ever; those that end with 4 were not taken by the rule of then."""
    return b"bad" if record.at % 10 == 9 else b'{"n": %d}' % number((record.number, record.at))


def patched(patch):
    """Records with these keys, times and values."""
    patch.setattr(FakeRecord, "key", lambda record: key((record.number, record.at)))
    patch.setattr(FakeRecord, "timestamp", lambda record: (1, START_MS + record.at * HOUR_MS))
    patch.setattr(FakeRecord, "value", value)
