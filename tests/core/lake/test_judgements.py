"""Readings of one record that differ: a registry that lacks a schema once and has it again, a rule that was changed."""

import json
import math
import random
import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kgs_core.config.registry import RegistrySettings
from kgs_core.ingest.fetch.topic_records import records_of
from kgs_core.ingest.formats import by_schema
from kgs_core.ingest.worker.sorted_records import UNKNOWN_SCHEMA_S
from kgs_core.lake.topics import topic_table
from kgs_core.model import OffsetRange
from kgs_core.ports.registry import RegisteredSchema, SchemaKind, UnknownSchemaError
from tests.core.lake.test_side_tables import ROUTE
from tests.failpoints import KilledError
from tests.layout_sink import GivenRecord, LayoutSink
from tests.processing import process_topic

FIELDS = [{"name": "s", "type": "string"}, {"name": "n", "type": "long"}]
TEXT = json.dumps({"type": "record", "name": "r", "fields": FIELDS})
SCHEMAS = frozenset({7, 8})
POINTS = (
    *("after-dead-letter-commit", "after-side-commit", "before-commit", "after-commit"),
    *("judgement-announced", "judgement-fenced", "judgement-taken"),
)
MOST_STEPS = 25


class Registry:
    """A registry that lacks what is not in `known`, and has lacked it for so long."""

    known: frozenset[int] = SCHEMAS
    lacked_s = math.inf

    def by_id(self, number):
        if number not in self.known:
            raise UnknownSchemaError(f"the schema registry has no schema {number}", self.lacked_s)
        return RegisteredSchema(number, SchemaKind.AVRO, TEXT)


@dataclass(frozen=True)
class AvroRecord(GivenRecord):
    def value(self):
        number, text = self.given
        return b"junk" if text is None else b"\0" + number.to_bytes(4) + bytes([2 * len(text)]) + text.encode() + b"\2"


class AvroSink(LayoutSink):
    """A consumer whose records are (id of a schema, value of column s, or None for one that is bad in any case)."""

    def __init__(self, root, log, **layout):
        super().__init__(root, log, **{"format": "avro", "schema": {"s": "string", "n": "long"}, **layout})
        self.spec = replace(self.spec, registry=RegistrySettings(url="http://127.0.0.1:9"))

    def read(self, most=1_000_000):
        """None where nothing can be read now."""
        found = self.table.positions(set(self.log))
        ends = {p: min(at + most, len(self.log[p])) for p, at in found.next_offset.items()}
        ranges = {p: OffsetRange(at, ends[p]) for p, at in found.next_offset.items() if ends[p] > at}
        if not ranges:
            return None
        records = [AvroRecord(p, o, self.log[p][o]) for p, span in ranges.items() for o in range(*span)]
        return process_topic(self.storage, self.job(found), records_of(records), ranges)[0]

    def drain(self, most=1_000_000):
        for _ in range(MOST_STEPS):
            if (batch := self.read(most)) is None:
                return
            self.table.commit(batch)
        raise AssertionError("it does not end")

    def places(self):
        """Table -> where its rows come from."""
        found = {"t_dead_letters": Counter()}
        for name in ("t", "t_dead_letters", *self.spec.side_tables.values()):
            if Path(self.storage.uri(name), "_delta_log").exists():
                rows = self.rows(name)
                found[name] = Counter((row["_partition"], row["_offset"]) for row in rows)
        return found

    def assert_exact(self):
        """Every record is one row or one dead letter; one that no registry can mend is a letter."""
        places = self.places()
        every = {(p, o): 1 for p, records in self.log.items() for o in range(len(records))}
        assert sum(places.values(), Counter()) == every, places
        bad = {(p, o) for p, records in self.log.items() for o, (_, text) in enumerate(records) if text is None}
        assert bad <= places["t_dead_letters"].keys()


@pytest.fixture
def registry(monkeypatch):
    found = Registry()
    monkeypatch.setattr(by_schema, "open_registry", lambda _: found)
    return found


def test_a_schema_that_the_registry_lacks_is_waited_for(tmp_path, registry):
    log = {0: [(7, "a"), (8, None), (8, "b"), (8, None)]}
    registry.known, registry.lacked_s = frozenset({7}), UNKNOWN_SCHEMA_S - 1
    sink = AvroSink(tmp_path, log).started()
    assert sink.read().ranges == {0: OffsetRange(0, 2)}  # what is bad in any case waits for nothing
    sink.drain()
    assert sink.read() is None
    registry.lacked_s = UNKNOWN_SCHEMA_S
    assert sink.read().unsettled == {0}
    sink.drain()
    sink.assert_exact()
    assert sink.places()["t_dead_letters"].keys() == {(0, 1), (0, 2), (0, 3)}


@pytest.mark.parametrize("layout", [{}, {"route": ROUTE}])
@pytest.mark.parametrize("bad", [None, "b"])
@pytest.mark.parametrize("point", ["after-dead-letter-commit", "after-side-commit", "before-commit"])
def test_a_rule_that_was_changed_while_a_batch_was_half_committed(tmp_path, killer, registry, layout, bad, point):
    log = {0: [(7, "a"), (7, "b"), (7, "d"), (7, bad), (7, "a")]}
    first = AvroSink(tmp_path, log, **layout).started()
    killer[point] = 1
    with suppress(KilledError):
        first.drain()
    are_rows = Counter(first.places()["t"]) + sum(
        (first.places()[name] for name in first.spec.side_tables.values()), Counter()
    )
    # With another column nothing of it can be read any more
    then = AvroSink(tmp_path, log, schema={"s": "string", "n": "boolean"}, **layout)
    then.table = topic_table.TopicTable(then.table._lake, then.spec, then.ids, first.table.schema, then.table.columns)
    then.drain()
    then.assert_exact()
    assert then.places()["t_dead_letters"].keys() == {(0, n) for n in range(5)} - are_rows.keys()


@pytest.mark.parametrize("layout", [{}, {"route": ROUTE}])
def test_a_table_that_is_made_anew_beside_its_dead_letters_goes_on_with_their_numbers(tmp_path, registry, layout):
    """As after `kgs accept-topic`: letters would be refused for ever, which expect the number of the own table."""
    log = {0: [(7, "a"), (8, "b")], 1: [(7, "c")]}
    registry.known = frozenset({7})
    sink = AvroSink(tmp_path, log).started()
    sink.drain()
    shutil.rmtree(tmp_path / "t")
    log = {0: [*log[0], (7, None)], 1: [*log[1], (7, None)]}
    sink = AvroSink(tmp_path, log, **layout).started()
    sink.drain()
    sink.assert_exact()
    assert sink.places()["t_dead_letters"].keys() == {(0, 1), (0, 2), (1, 1)}


def test_a_topic_without_such_letters_has_no_such_numbers(tmp_path, registry):
    sink = AvroSink(tmp_path, {0: [(7, "a"), (7, None)]}).started()
    sink.drain()
    assert not [action for action in sink.entries() if "judgement" in action.get("txn", {}).get("appId", "")]


class History:
    """Consumers that read the same topic by turns, each with what the registry has just then."""

    def __init__(self, root, registry, killer, chance, layout):
        kinds = ["a", "b", "c", "c", None]
        self.log = {p: [(chance.choice([7, 8]), chance.choice(kinds)) for _ in range(9)] for p in range(2)}
        self.registry, self.killer, self.chance = registry, killer, chance
        self.consumer = lambda: AvroSink(root, self.log, **layout)
        self.consumer().started()
        self.awake, self.frozen = [self.consumer() for _ in range(3)], []

    def thaw(self):
        """Let a frozen owner go on with what it had read; it drops what is refused."""
        sink, batch = self.frozen.pop(self.chance.randrange(len(self.frozen)))
        sink.table.commit(batch)

    def read(self):
        """Have a consumer read on, and be killed, frozen or neither."""
        n, chance = self.chance.randrange(len(self.awake)), self.chance
        self.registry.known = frozenset(number for number in SCHEMAS if chance.random() < 0.6)
        if chance.random() < 0.4:
            self.killer[chance.choice(POINTS)] = chance.choice([1, 1, 2])
        try:
            batch = self.awake[n].read(chance.randint(1, 4))
            if batch is not None and chance.random() < 0.3:
                self.frozen.append((self.awake[n], batch))
                self.awake[n] = self.consumer()
            elif batch is not None:
                self.awake[n].table.commit(batch)
        except KilledError:
            self.awake[n] = self.consumer()
        self.killer.clear()


@pytest.mark.parametrize("route", [None, ROUTE])
@pytest.mark.parametrize("seed", range(4))
def test_any_history_of_kills_frozen_owners_and_readings(tmp_path, registry, killer, seed, route):
    layout = {} if route is None else {"route": route}
    history = History(tmp_path, registry, killer, random.Random(seed), layout)
    for _ in range(MOST_STEPS):
        if history.frozen and history.chance.random() < 0.25:
            history.thaw()
        else:
            history.read()
    registry.known = SCHEMAS
    for _ in history.frozen[::2]:
        history.thaw()
    history.consumer().drain(most=3)
    while history.frozen:
        history.thaw()
    history.consumer().assert_exact()
