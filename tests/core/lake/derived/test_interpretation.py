"""Events of a random database, in each producer's words: the newest rows are the database's."""

import json
import random
from datetime import UTC, datetime
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.config import TopicRule
from kgs_core.errors import ConfigError, KgsError
from kgs_core.lake.derived.interpretation import Interpretation, note_of, noted_truncates
from kgs_core.lake.derived.kept_values import KEPT
from kgs_core.lake.derived.newest_rows import DELETED, needed, newest
from kgs_core.lake.files.row_schema import ORIGIN_FIELDS, schema_of
from tests.core.lake.derived.changes.database import DIALECTS, UNAVAILABLE, Database, acts

ROW = "struct<a:int,b:string,name:string,doc:string>"
TEXTS = "struct<a:string,b:string,name:string,doc:string>"
COLUMNS = {
    "debezium": {
        "before": ROW,
        "after": ROW,
        "op": "string",
        "source": "struct<lsn:long,sequence:string,ts_ms:long>",
    },
    "flattened": {"a": "int", "b": "string", "name": "string", "doc": "string"},
    "rewritten": {"a": "int", "b": "string", "name": "string", "doc": "string", "__deleted": "string"},
    "maxwell": {"type": "string", "ts": "long", "data": ROW, "old": ROW},
    "canal": {"type": "string", "es": "long", "data": f"array<{TEXTS}>", "old": f"array<{TEXTS}>"},
}
KEY = ("a", "b")


def settings_rule(dialect, **more):
    newest_rows = {"table": "n", "changes": dialect if dialect in ("maxwell", "canal") else "debezium", **more}
    if dialect == "canal":
        newest_rows["types"] = {"a": "int"}
    keys = {"key_format": "json", "key_schema": {"a": "int", "b": "string"}}
    return {
        "topic": "t",
        "table": "t",
        "format": "json",
        "schema": COLUMNS[dialect],
        **keys,
        "newest_rows": newest_rows,
    }


def rule_of(dialect, **more):
    return TopicRule.model_validate(settings_rule(dialect, **more))


def table_of(rule, records):
    """The rows that these (partition, offset, key, value) are in the table of events."""
    schema = pa.schema([*schema_of(rule.fields), *schema_of(rule.key_columns), *ORIGIN_FIELDS])
    rows = [
        {
            **(value or {}),
            **({"key_a": key[0], "key_b": key[1]} if key is not None else {}),
            "_topic_id": "id",
            "_partition": partition,
            "_offset": offset,
            "_timestamp": datetime.fromtimestamp(offset, UTC),
            "_key": json.dumps(key).encode(),
        }
        for partition, offset, key, value in records
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def merged(state, rows):
    """What the merge of a derived table does, as a plain loop."""
    for row in rows.to_pylist():
        key, there = (row["a"], row["b"]), state.get((row["a"], row["b"]))
        if there is not None and (row["_partition"], row["_offset"]) <= (there["_partition"], there["_offset"]):
            continue
        kept = {name: there[name] for name in row[KEPT]} if there is not None else {}
        state[key] = {**row, **kept}
        if row[DELETED]:
            del state[key]


def rows_in(state):
    return {key: {name: row[name] for name in ("a", "b", "name", "doc")} for key, row in state.items()}


def anew(reading, parts, order="offset"):
    """All parts, in any order, as one makes the derived table of all of them; and its truncates."""
    truncated = [each for part in parts for each in reading.read(part).truncated]
    kept = reading.without_truncated(reading.read(parts[0].slice(0, 0)).rows, [])
    for part in parts:
        rows = reading.without_truncated(reading.read(part).rows, truncated)
        kept = needed(pa.concat_tables([kept, rows]), KEY, order)
    state = {(row["a"], row["b"]): row for row in newest(kept, KEY, order).to_pylist() if not row[DELETED]}
    return state, noted_truncates(note_of(truncated, ""), "")


def filled(dialect, done, partitions):
    database = Database(dialect, partitions)
    for what in done:
        database.act(*what)
    ends = [0] * partitions
    records = []
    for partition, key, value in database.records:
        records.append((partition, ends[partition], key, value))
        ends[partition] += 1
    return database, records


@pytest.mark.parametrize("dialect", DIALECTS)
@given(done=acts, partitions=st.sampled_from([1, 1, 3]), deletes=st.sampled_from(["remove", "column"]), data=st.data())
def test_newest_rows_are_the_database(dialect, done, partitions, deletes, data):
    database, records = filled(dialect, done, partitions)
    rule = rule_of(dialect, deletes=deletes)
    whole = table_of(rule, records)
    reading = Interpretation(rule, whole.schema)
    if partitions > 1:  # one is read behind another
        slow = data.draw(st.integers(0, partitions))
        records = sorted(records, key=lambda record: record[0] == slow)
        whole = table_of(rule, records)
    cuts = sorted({0, len(records), *data.draw(st.lists(st.integers(0, len(records)), max_size=4))})
    parts = [whole.slice(start, end - start) for start, end in pairwise(cuts)] or [whole]
    state, noted = {}, []
    for n, part in enumerate(parts):
        found = reading.read(part)
        rows = reading.without_truncated(found.rows, noted)
        assert rows.schema.names == [*reading.schema().names, DELETED, KEPT]
        if found.truncated:
            state, noted = anew(reading, parts[: n + 1])
        else:
            merged(state, newest(rows, KEY, "offset"))
    shuffled = random.Random(len(records)).sample(parts, len(parts))
    for found in (state, anew(reading, shuffled)[0]):
        present = {key: row for key, row in found.items() if not row.get("_deleted")}
        assert rows_in(present) == database.rows
        gone = {key for _, _, key, _ in records if key is not None} - database.rows.keys()
        assert {key for key, row in found.items() if row.get("_deleted")} == (gone if deletes == "column" else set())


@given(done=acts, data=st.data())
def test_by_position_in_the_source_any_order_of_records_gives_the_same(done, data):
    """But for values that an event leaves out: they come with an event before it."""
    done = [each for each in done if each[0] not in ("touch", "truncate", "repeat")]
    database, records = filled("debezium", done, 1)
    rule = rule_of("debezium", order="source", deletes="column")
    shuffled = [(0, n, key, value) for n, (_, _, key, value) in enumerate(data.draw(st.permutations(records)))]
    reading = Interpretation(rule, table_of(rule, shuffled).schema)
    rows = newest(reading.read(table_of(rule, shuffled)).rows, KEY, "source").to_pylist()
    assert rows_in({(r["a"], r["b"]): r for r in rows if not r["_deleted"]}) == database.rows


def test_a_value_that_was_left_out_is_not_another_keys():
    database, records = filled("debezium", [("put", 0, 1), ("put", 1, 2), ("touch", 1, 0)], 1)
    rule = rule_of("debezium")
    rows = table_of(rule, [records[0], records[2]])
    first, second = newest(Interpretation(rule, rows.schema).read(rows).rows, KEY, "offset").to_pylist()
    assert (first["doc"], first[KEPT]) == (database.rows[0, "x"]["doc"], [])
    assert (second["doc"], second[KEPT]) == (None, ["doc"])


@pytest.mark.parametrize(
    ("dialect", "more", "value", "words"),
    [
        ("debezium", {}, {"op": "z"}, "column op: 'z' is no change that kgs knows"),
        ("maxwell", {}, {"type": "mystery"}, "column type: 'mystery' is no change"),
        ("debezium", {"types": {"c": "date"}}, {"op": "c"}, "types: no column c in a, b, name, doc"),
        ("debezium", {"key": ["c"]}, {"op": "c"}, "key: no column c"),
        ("debezium", {"order": "source", "deletes": "ignore"}, {"op": "c"}, "an event has neither source.lsn"),
    ],
)
def test_what_cannot_be_read_is_said(dialect, more, value, words):
    rule = rule_of(dialect, **more)
    rows = table_of(rule, [(0, 0, (1, "x"), value)])
    reading = Interpretation(rule, rows.schema)
    with pytest.raises(KgsError, match=words):
        reading.read(rows)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"status": "string", "id": "string", "event_count": "long"}, "topic of transactions has no rows"),
        ({"ddl": "string", "databaseName": "string"}, "topic of changes of schemas has no rows"),
        ({"op": "string", "source": "string"}, "Debezium's envelopes have after, the table has no such column"),
        ({"op": "string", "after": "string", "source": "string"}, "column after is string, wanted is a struct"),
        ({"op": "string", "after": "struct<a:int>", "before": "string"}, "column before is string"),
        ({"op": "string", "after": "struct<a:int,_offset:long>"}, "column _offset of the followed table is also one"),
    ],
)
def test_topics_without_rows_and_other_columns_are_refused(columns, words):
    rule = rule_of("debezium", key=["a"]).model_copy(update={"fields": columns})
    with pytest.raises(ConfigError, match=words):
        Interpretation(rule, table_of(rule, []).schema).schema()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("binary", UNAVAILABLE.encode()),
        ("array<string>", [UNAVAILABLE]),
        ("array<int>", list(UNAVAILABLE.encode())),
        ("map<string,string>", [(UNAVAILABLE, UNAVAILABLE)]),
    ],
)
def test_values_of_all_kinds_that_were_not_sent_are_kept(kind, value):
    columns = {"op": "string", "after": f"struct<a:int,big:{kind}>"}
    rule = rule_of("debezium", key=["a"]).model_copy(update={"fields": columns})
    other = {"binary": b"x"}.get(kind, [])
    records = [(0, n, None, {"op": "u", "after": {"a": n, "big": big}}) for n, big in enumerate((value, other, None))]
    rows = table_of(rule, records)
    found = Interpretation(rule, rows.schema).read(rows).rows
    assert found["big"].to_pylist() == [None, other, None]
    assert found[KEPT].to_pylist() == [["big"], [], []]


def test_a_truncate_takes_no_rows_of_another_topic():
    """Two databases have one table of events: their logs' places do not compare."""
    database, rule = Database("debezium", 1), rule_of("debezium", order="timestamp")
    for act in (("put", 0, 1), ("truncate", 0, 0)):
        database.act(*act)
    rows = table_of(rule, [(0, n, key, value) for n, (_, key, value) in enumerate(database.records)])
    other = rows.slice(0, 1).set_column(rows.column_names.index("_topic_id"), "_topic_id", pa.array(["other"]))
    reading = Interpretation(rule, rows.schema)
    found = reading.read(pa.concat_tables([rows, other]))
    for truncated in (found.truncated, noted_truncates(note_of(found.truncated, "app"), "app")):
        assert reading.without_truncated(found.rows, truncated)["_topic_id"].to_pylist() == ["other"]
