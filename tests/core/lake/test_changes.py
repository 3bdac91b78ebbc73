"""Events of a real PostgreSQL by a real Debezium, through parsing, tables and merges: the rows of the database."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from kgs_core.errors import ConfigError, UnsafeError
from tests.core.lake.newest import materialized, proven
from tests.sink import FakeRecord, Sink

EVENTS = Path(__file__).parents[2] / "debezium_events.jsonl"
CUSTOMER = "struct<id:long,name:string,balance:binary,big:string,added:int>"
ENVELOPE = {"op": "string", "source": "struct<sequence:string,lsn:long,ts_ms:long>"}
ORDER = "struct<region:string,number:int,note:string,big:string>"
KEYS = {"key_format": "json", "key_schema": {"id": "long"}}
CUSTOMERS = {"schema": {"before": CUSTOMER, "after": CUSTOMER, **ENVELOPE}, **KEYS}
FLAT = {"schema": {"id": "long", "name": "string", "big": "string"}, **KEYS}
REWRITTEN = {**FLAT, "schema": {**FLAT["schema"], "__deleted": "string", "__op": "string"}}
WITH_SCHEMAS = {
    "schema": {"payload": f"struct<before:{CUSTOMER},after:{CUSTOMER},op:string>"},
    "key_format": "json",
    "key_schema": {"payload": "struct<id:long>"},
}
ORDERS = {"schema": {"before": ORDER, "after": ORDER, **ENVELOPE}}
MONEY = {"changes": "debezium", "types": {"balance": "decimal(10,2)"}}
LONG = "012345678901234567890123456789"
SMTS = ("ExtractNewRecordState", "ExtractNewRecordState, delete.tombstone.handling.mode=rewrite")


class Follower:
    """Consumers of a topic whose records are kept ones, in two partitions."""

    def __init__(self, storage, monkeypatch, made_by, topic, rule, **newest_rows):
        lines = [json.loads(line) for line in EVENTS.read_text().splitlines()]
        events = [line for line in lines if (line["from"], line["topic"]) == (made_by, f"shop.public.{topic}")]
        of = {p: [line for line in events if line["partition"] == p] for p in (0, 1)}
        self.ends = {p: len(lines) for p, lines in of.items()}
        self.read_so_far = {0: 0, 1: 0}
        monkeypatch.setattr(FakeRecord, "key", lambda r: _bytes(of[r.number][r.at]["key"]))
        monkeypatch.setattr(FakeRecord, "value", lambda r: _bytes(of[r.number][r.at]["value"]))
        self._storage, self._rule, self._newest = storage, {"format": "json", **rule}, newest_rows
        section = {"table": "t_latest", **newest_rows}
        self.sink = Sink(storage, **self._rule, newest_rows=section).started(2)

    def read(self, records):
        """So many more records of partitions are read, and merged."""
        spans = {p: (self.read_so_far[p], min(self.read_so_far[p] + n, self.ends[p])) for p, n in records.items()}
        self.sink.ingest({p: span for p, span in spans.items() if span[0] < span[1]})
        self.read_so_far |= {p: end for p, (_, end) in spans.items()}
        self.merge()

    def merge(self):
        materialized(self._storage, self._rule, **self._newest)
        proof = proven(self._storage, self._rule, **self._newest)
        assert proof.ok, proof

    def all(self, records=2):
        while self.read_so_far != self.ends:
            self.read({0: records, 1: records})
        assert Sink(self._storage).rows("t_dead_letters") == []
        return Sink(self._storage).rows("t_latest")


def _bytes(text):
    return None if text is None else text.encode()


@pytest.fixture
def follow(storage, monkeypatch):
    return lambda *given, **newest_rows: Follower(storage, monkeypatch, *given, **newest_rows)


@pytest.mark.parametrize("records", [1, 20])
def test_envelopes(follow, records):
    rows = follow("envelope", "customers", CUSTOMERS, **MONEY).all(records)
    assert {(r["id"], r["name"], r["balance"], r["big"], r["added"]) for r in rows} == {
        (1, "while away", Decimal("12.50"), "small", 6),
        (4, "Cyd", Decimal("-0.01"), LONG, 5),
    }
    assert len(rows) == 2


def test_deletes_as_a_column_keep_the_last_values(follow):
    rows = follow("envelope", "customers", CUSTOMERS, **MONEY, deletes="column", order="source").all()
    gone = {r["id"]: (r["name"], r["balance"], r["big"]) for r in rows if r["_deleted"]}
    assert gone == {2: (None, None, None), 3: ("Cyd", Decimal("-0.01"), LONG)}
    assert {r["id"] for r in rows if not r["_deleted"]} == {1, 4}


def test_envelopes_with_their_schemas(follow):
    rows = follow("envelope with schemas", "customers", WITH_SCHEMAS, changes="debezium").all()
    assert {(r["id"], r["name"]) for r in rows} == {(1, "Ann"), (3, "Cyd")}


@pytest.mark.parametrize(("made_by", "rule"), [(SMTS[0], FLAT), (SMTS[1], REWRITTEN)])
def test_flattened_rows(follow, made_by, rule):
    rows = follow(made_by, "customers", rule, changes="debezium").all()
    assert {(r["id"], r["name"], r["big"]) for r in rows} == {(1, "Ann", "small"), (3, "Cyd", LONG)}
    assert not [name for name in rows[0] if name.startswith("__")]


def test_deletes_whose_key_is_in_no_column_are_not_passed_over(follow):
    follower = follow(SMTS[0], "customers", {"schema": FLAT["schema"]}, changes="debezium", key=["id"])
    with pytest.raises(ConfigError, match="of their keys no column has id: give key_format"):
        follower.all()


@pytest.mark.parametrize("late", [0, 1])
def test_a_truncate_takes_what_was_written_before_it_in_all_partitions(follow, late):
    """Whichever partition is read late."""
    follower = follow("envelope", "orders", ORDERS, changes="debezium", key=["region", "number"])
    follower.read({1 - late: follower.ends[1 - late]})
    follower.read({late: 1})
    rows = follower.all()
    assert [(r["region"], r["number"], r["note"]) for r in rows] == [("eu", 1, "after truncate")]


def test_a_truncate_whose_place_is_not_known_is_refused(follow):
    rule = {"schema": {**ORDERS["schema"], "source": "struct<ts_ms:long>"}}
    follower = follow("envelope", "orders", rule, changes="debezium", key=["region", "number"])
    with pytest.raises(UnsafeError, match="partition 0 has a truncate at offset 1, and which rows of 1 other"):
        follower.all()
