"""Histories: each change of a key is a row, as a plain loop over all changes finds them, whatever is killed between."""

from contextlib import suppress
from datetime import UTC, datetime
from itertools import count, pairwise

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgs_core.config import resolve_tables
from kgs_core.errors import UnsafeError
from kgs_core.lake.delta.delta_maintenance import maintain_table
from kgs_core.lake.derived import history, latest_by_key, live_file
from kgs_core.lake.derived.history import HistoryTable
from kgs_core.lake.derived.interpretation import Interpretation, in_order
from kgs_core.lake.derived.kept_values import KEPT
from kgs_core.lake.derived.latest_by_key import LatestByKeyTable
from kgs_core.lake.derived.newest_rows import DELETED, ORDERS
from kgs_core.lake.derived.proof import prove
from kgs_core.lake.derived.upkeep import NewestRowsUpkeep, newest_rows_lags
from kgs_core.lake.derived.versions import TRUNCATED
from kgs_core.lake.files.storage import Storage
from tests.core.lake.derived.changes.database import DIALECTS, acts
from tests.core.lake.derived.test_interpretation import filled, settings_rule, table_of
from tests.core.lake.newest import key, settings_of, value
from tests.failpoints import KilledError
from tests.kgs_yaml import kgs_yaml
from tests.meanwhile import before
from tests.sink import FakeRecord

_numbers = count()
BEHIND_DELETES = "older rows came behind deletes, whose last values they may be"
VALUES = ("a", "b", "name", "doc")
events = st.sampled_from(
    ["", "", "latest-read", "latest-written", "latest-merged", "two at once", "only one", "compacted"]
)


class Followed:
    """A table of events in a lake of its own, and the derived tables of its rule, opened anew for each step."""

    def __init__(self, folder, dialect, **newest):
        self.storage = Storage(str(folder / f"lake{next(_numbers)}"))
        self.settings = kgs_yaml(self.storage.root, settings_rule(dialect, table="n", history="h", **newest))
        self.spec = resolve_tables(self.settings, ["t"])["t"]

    def append(self, rows):
        write_deltalake(self.storage.uri("t"), rows, mode="append")

    def both(self):
        return [kind(self.settings, self.spec).materialize() for kind in (LatestByKeyTable, HistoryTable)]

    def step(self, event="", killer=None):
        if event.startswith("latest"):
            for kind in (LatestByKeyTable, HistoryTable):
                killer[event] = 1
                with suppress(KilledError):  # where there is something to do
                    kind(self.settings, self.spec).materialize()
            killer.clear()
            return []
        if event == "only one":
            return [HistoryTable(self.settings, self.spec).materialize()]
        if event == "compacted":
            DeltaTable(self.storage.uri("h")).optimize.compact()
        with pytest.MonkeyPatch.context() as patch:
            if event == "two at once":
                before(patch, HistoryTable, "_merged", self.both)
            return self.both()

    def rows(self, table):
        return pl.read_delta(self.storage.uri(table)).to_dicts()


def history_of(rule, order, whole):
    """Key -> its rows, by a plain loop over all changes in order."""
    reading = Interpretation(rule, whole.schema, is_history=True)
    found = reading.read(whole)
    truncates = in_order(found.truncated)
    changes = reading.without_truncated(found.rows, truncates).to_pylist()
    lowest = -1
    changes.sort(key=lambda row: [lowest if row[name] is None else row[name] for name in ORDERS[order]])
    of_key = {}
    for change in changes:
        of_key.setdefault((change["a"], change["b"]), []).append(change)
    return {key: _rows(rule.newest_rows.deletes, of_one, truncates) for key, of_one in of_key.items()}


def _rows(deletes, changes, truncates):
    out, here = [], None  # the row that holds
    last_values = {}
    for change, after in pairwise([*changes, {TRUNCATED: None}]):
        time = max(change["_valid_from"], here["_valid_from"]) if here else change["_valid_from"]
        new = {name: change[name] for name in VALUES}
        new |= {name: last_values[name] for name in change[KEPT] if name in last_values}
        last_values |= {name: new[name] for name in VALUES if name not in change[KEPT] or name in last_values}
        here = _put(out, here, None if change[DELETED] else {**new, "_deleted": change.get("_deleted")}, time)
        last_values = last_values if here else {}
        if change[TRUNCATED] not in (-1, after[TRUNCATED]) and here and not here["_deleted"]:
            until = max(here["_valid_from"], truncates[change[TRUNCATED]].time)
            gone = {**here, "_deleted": True} if deletes == "column" else None
            here = _put(out, here, gone, until)
            last_values = last_values if here else {}
    return out


def _put(out, here, new, time):
    """Close the row that holds, and begin another; it is the same if it is delivered again."""
    if here and new and here["_valid_from"] == time and all(here[name] == new[name] for name in (*VALUES, "_deleted")):
        return here
    if here:
        here["_valid_to"] = time
    if new is None:
        return None
    out.append({**new, "_valid_from": time, "_valid_to": None})
    return out[-1]


def assert_history(followed, rule, order, whole):
    expected = [row for rows in history_of(rule, order, whole).values() for row in rows]
    names = (*VALUES, "_valid_from", "_valid_to")
    found = followed.rows("h")
    assert sorted(str([row[n] for n in names]) for row in found) == sorted(
        str([row[n] for n in names]) for row in expected
    )
    holds = {(row["a"], row["b"]): row for row in found if row["_valid_to"] is None}
    assert len(holds) == sum(row["_valid_to"] is None for row in found)
    newest = {(row["a"], row["b"]): row for row in followed.rows("n")}
    words = (*VALUES, *(["_deleted"] if rule.newest_rows.deletes == "column" else []))
    assert {k: [r[n] for n in words] for k, r in holds.items()} == {k: [r[n] for n in words] for k, r in newest.items()}
    assert [(each.table, each.ok) for each in prove(followed.settings, followed.spec)] == [("n", True), ("h", True)]


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    vectors=st.booleans(),
    done=acts,
    partitions=st.sampled_from([1, 1, 3]),
    deletes=st.sampled_from(["remove", "column", "ignore"]),
    cuts=st.lists(st.tuples(st.integers(0, 40), events), max_size=4, unique_by=lambda cut: cut[0]),
)
def test_it_holds_what_a_loop_over_all_changes_finds(
    tmp_path, monkeypatch, killer, dialect, *, vectors, done, partitions, deletes, cuts
):
    monkeypatch.setattr(live_file, "ALIKE", 2)
    followed = Followed(tmp_path, dialect, deletes=deletes, deletion_vectors=vectors)
    rule = followed.spec.rule
    _, records = filled(dialect, done, partitions)
    whole = table_of(rule, records)
    followed.append(whole.slice(0, 0))
    followed.both()
    at = 0
    for cut, event in sorted(cuts):
        followed.append(whole.slice(at, max(cut - at, 0)))
        at = max(at, min(cut, whole.num_rows))
        followed.step(event if event != "compacted" or not vectors else "", killer)
    followed.append(whole.slice(at))
    followed.step()
    assert_history(followed, rule, "offset", whole)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    done=acts,
    deletes=st.sampled_from(["column", "ignore"]),
    cuts=st.sets(st.integers(0, 40), max_size=4),
    data=st.data(),
)
def test_changes_that_come_late_find_their_place(tmp_path, done, deletes, cuts, data):
    """In any order, by their places in the source; but for values that an event leaves out, which need a former one."""
    followed = Followed(tmp_path, "debezium", deletes=deletes, order="source")
    _, records = filled("debezium", [each for each in done if each[0] not in ("touch", "truncate")], 1)
    shuffled = [(0, n, key, value) for n, (_, _, key, value) in enumerate(data.draw(st.permutations(records)))]
    whole = table_of(followed.spec.rule, shuffled)
    for start, end in pairwise([0, 0, *sorted(cuts), len(records) + 40]):
        followed.append(whole.slice(start, end - start))
        newest, of_all = followed.step()
        assert start == end == 0 or (newest.anew in ("", BEHIND_DELETES), of_all.anew) == (True, "")
    assert_history(followed, followed.spec.rule, "source", whole)


def test_a_late_change_makes_it_anew_where_deletes_leave_nothing_to_compare_with(tmp_path):
    followed = Followed(tmp_path, "debezium", order="timestamp")
    _, records = filled("debezium", [("put", 0, 1), ("put", 0, 2), ("put", 0, 3)], 1)
    whole = table_of(followed.spec.rule, records)
    followed.append(whole.slice(2, 1))
    followed.both()
    followed.append(whole.slice(0, 2))
    assert "older than those before them" in followed.both()[1].anew
    assert_history(followed, followed.spec.rule, "timestamp", whole)


def test_rows_that_have_ended_are_not_read_again(tmp_path, monkeypatch):
    followed = Followed(tmp_path, "maxwell")
    _, records = filled("maxwell", [("put", n % 2, n % 4) for n in range(40)], 1)
    whole = table_of(followed.spec.rule, records)
    for start in range(0, 40, 4):
        followed.append(whole.slice(start, 4))
        followed.both()
    read, of = [], live_file.LiveFile.all_rows
    monkeypatch.setattr(live_file.LiveFile, "all_rows", lambda file, columns: read.append(file) or of(file, columns))
    followed.append(whole.slice(0, 4))
    HistoryTable(followed.settings, followed.spec)._attempt(latest_by_key.Materialization("h"))
    merged = [file for file in read if file.table == "h"]
    assert merged
    assert not any(file.is_closed for file in merged[:2])


def test_who_keeps_newest_rows_up_to_date_keeps_their_history(tmp_path):
    followed = Followed(tmp_path, "maxwell")
    _, records = filled("maxwell", [("put", 0, 1), ("put", 0, 2)], 1)
    followed.append(table_of(followed.spec.rule, records))
    NewestRowsUpkeep(followed.settings, lambda: [followed.spec]).look()
    assert newest_rows_lags(followed.settings, [followed.spec], []) == {"n": (0, 30), "h": (0, 30)}
    assert [row["_valid_to"] is None for row in sorted(followed.rows("h"), key=lambda row: row["_offset"])] == [
        False,
        True,
    ]
    followed.append(table_of(followed.spec.rule, records))
    LatestByKeyTable(followed.settings, followed.spec).materialize()
    assert newest_rows_lags(followed.settings, [followed.spec], [])["h"][0] > 0
    assert maintain_table(followed.storage, "h").problem is None


def test_what_is_wrong_is_counted(tmp_path):
    followed = Followed(tmp_path, "maxwell")
    _, records = filled("maxwell", [("put", 0, 1), ("put", 0, 2), ("put", 1, 2)], 1)
    followed.append(table_of(followed.spec.rule, records))
    followed.both()
    DeltaTable(followed.storage.uri("h")).update({"_valid_to": "null"}, predicate="_offset = 0")
    found = prove(followed.settings, followed.spec)[1]
    assert (found.rows, found.missing, found.extra, found.ok) == (3, 1, 1, False)


def test_a_change_without_any_time_is_named(tmp_path):
    followed = Followed(tmp_path, "debezium")
    _, records = filled("debezium", [("put", 0, 1)], 1)
    rows = table_of(followed.spec.rule, records).drop_columns(["source", "_timestamp"])
    rows = rows.append_column("_timestamp", pa.nulls(1, pa.timestamp("us", "UTC")))
    followed.append(rows)
    with pytest.raises(UnsafeError, match="partition 0, offset 0: neither the event nor its record says when"):
        HistoryTable(followed.settings, followed.spec).materialize()


def plain_history(since):
    """What a loop over the records of a partition finds: key, number, and from and to when."""
    out, holds = [], {}
    for record in (FakeRecord(0, at) for at in range(since, 60)):
        name, text = key(record), value(record)
        if name is None or text == b"bad":
            continue
        time = datetime.fromtimestamp(record.timestamp()[1] / 1000, UTC)
        if (former := holds.pop(name, None)) is not None:
            former[3] = time
        if text is not None:
            out.append(holds.setdefault(name, [name, record.at, time, None]))
    return out


@pytest.mark.usefixtures("keyed_records")
def test_of_plain_rows_tombstones_end_the_last_one_and_what_is_removed_is_forgotten(storage, sink):
    how = settings_of(storage, history="h")
    spec = resolve_tables(how, ["t"])["t"]

    def materialized():
        done = [history.derived_table(how, spec, table).materialize() for table in spec.derived_tables]
        assert [each.is_history for each in done] == [False, True]
        assert [each.ok for each in prove(how, spec)] == [True, True]
        return [bool(each.anew) for each in done]

    def found():
        rows = pl.read_delta(storage.uri("h")).sort("_offset")
        return [list(row) for row in rows.select("_key", "n", "_valid_from", "_valid_to").rows()]

    for start in range(0, 60, 20):
        sink.ingest({0: (start, start + 20)})
        assert materialized() == [start == 0] * 2
    assert found() == plain_history(0)
    assert len({row[0] for row in found() if row[3] is None}) < len(found())
    for name in ("t", "t_dead_letters"):
        DeltaTable(storage.uri(name)).alter.set_table_properties({"delta.appendOnly": "false"})
        DeltaTable(storage.uri(name)).delete("_offset < 30")
    assert materialized() == [True, True]
    assert found() == plain_history(30)
