"""The newest row of each key: of records with keys and tombstones, what a loop over all of them would keep."""

import random

from kgs_core.config import resolve_tables
from kgs_core.lake.derived.latest_by_key import LatestByKeyTable
from kgs_core.lake.derived.proof import prove
from tests.kgs_yaml import LONGS, kgs_yaml
from tests.sink import FakeRecord, Sink


def key(record):
    """Nine keys of each partition; some records have none."""
    number = random.Random(f"{record.number}/{record.at}").randrange(10)
    return b"p%d-k%d" % (record.number, number) if number else None


def value(record):
    """Every seventh is a tombstone, every eleventh no JSON."""
    if record.at % 7 == 6:
        return None
    return b"bad" if record.at % 11 == 10 else b'{"n": %d}' % (record.number * 1_000_000 + record.at)


def settings_of(storage, rule=LONGS, **latest):
    return kgs_yaml(storage.root, {**rule, "newest_rows": {"table": "t_latest", **latest}})


def materialized(storage, rule=LONGS, **latest):
    settings = settings_of(storage, rule, **latest)
    return LatestByKeyTable(settings, resolve_tables(settings, ["t"])["t"]).materialize()


def expected(ends, *, tombstones=True):
    """Key -> offset, by a loop over all records in order."""
    state = {}
    for partition, end in ends.items():
        for at in range(end):
            record = FakeRecord(partition, at)
            k, v = key(record), value(record)
            if k is None or v == b"bad":
                continue
            if v is not None:
                state[k] = at
            elif tombstones:
                state.pop(k, None)
    return state


def assert_latest(storage, ends, **how):
    if how.get("tombstones", True):  # the audit finds the same, in another way
        assert_proven(storage)
    rows = Sink(storage).rows("t_latest")
    found = {row["_key"]: row["_offset"] for row in rows}
    assert len(found) == len(rows)
    assert found == expected(ends, **how)
    assert all(row["n"] == row["_partition"] * 1_000_000 + row["_offset"] for row in rows)


def assert_proven(storage):
    found = [proven(storage, order=order) for order in ("offset", "timestamp")]
    assert any(each.ok and each.version is not None for each in found), found


def proven(storage, rule=LONGS, **latest):
    settings = settings_of(storage, rule, **latest)
    return prove(settings, resolve_tables(settings, ["t"])["t"])[0]
