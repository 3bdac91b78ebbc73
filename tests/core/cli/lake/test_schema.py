"""`kgs schema topic`: what is printed can be pasted into the rule as it is."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from kgs_core.config import TopicRule
from kgs_core.config.rule.value_formats import FORMATS, ValueFormat
from kgs_core.ingest.fetch import topic_sample
from kgs_core.ingest.fetch.topic_sample import TopicSample

EVENTS = Path(__file__).parents[3] / "debezium_events.jsonl"
SMT = "ExtractNewRecordState, delete.tombstone.handling.mode=rewrite"
VALUES = [
    b'{"id": 1, "total": 1, "items": [{"sku": "a", "n": null}], "note: odd": "x", "mixed": 1}',
    b'{"id": 2, "total": 1.5, "mixed": "a"}',
    b"hello",
]


@pytest.fixture
def run(configured, monkeypatch):
    def call(*options, values=VALUES, keys=(), whole=True, rule=None, **more):
        kgs = configured(topics=[{"pattern": ".*", **(rule or {})}], **more)
        monkeypatch.setattr(topic_sample, "sample_topic", lambda *_: TopicSample(values, list(keys), 2, is_whole=whole))
        return kgs("schema", "topic", "t", *options)

    return call


def test_what_is_printed_is_part_of_a_rule(run):
    out = run().output
    rule = TopicRule.model_validate({"topic": "t", **yaml.safe_load(out)})
    assert rule.fields == {
        "id": "long",
        "total": "double",
        "items": "array<struct<sku:string>>",
        "note: odd": "string",
    }
    assert out.splitlines()[0] == "# topic t: 3 records of 2 partitions, each one's newest"
    assert "  items: array<struct<sku:string>>  # missing or null in 1\n" in out
    assert "#   items[].n: null in all 1: give it a type, or leave it out\n" in out
    assert "#   mixed: whole numbers (1), texts (1): no type takes all; fix the producers" in out
    assert "# With these columns 2 of 3 records are rows.\n#   1 bad: not a JSON object\n" in out


def test_json_says_the_same(run):
    found = json.loads(run("--json", whole=False).output)
    assert (found["records"], found["fitting"], found["bad"]) == (3, 2, {"not a JSON object": 1})
    assert found["read_in_time"] is False
    assert set(found["without_type"]) == {"mixed", "items[].n"}


def test_records_that_are_no_objects_get_no_columns(run):
    out = run(values=[b"hello"]).output
    assert "# No columns: none of them is a JSON object with a field that has a type." in out
    assert "schema:" not in out


def test_time_that_was_too_short_is_said(run):
    assert "; time was over before all were read" in run(whole=False).output
    assert run(values=[], whole=False).exit_code == 2


def test_columns_of_keys_that_are_json_objects_are_proposed(run):
    keys = [b'{"_id": 1, "at": "2026-01-31"}', None, b'{"_id": 2, "no": null}']
    out = run(keys=keys).output
    rule = TopicRule.model_validate({"topic": "t", **yaml.safe_load(out)})
    assert rule.key_columns == {"key__id": "long", "key_at": "date"}
    assert "# All 2 keys are JSON objects, and fit these columns:\n" in out
    assert "  at: date  # missing or null in 1\n" in out
    assert out.endswith(
        "# Of keys without a type, and left out:\n#   no: null in all 1: give it a type, or leave it out\n"
    )
    found = json.loads(run("--json", keys=keys).output)
    assert (found["keys"], found["keys_fitting"]) == (2, 2)
    assert (found["key_format"], found["key_schema"]) == ("json", {"_id": "long", "at": "date"})


def test_columns_of_keys_have_other_names_than_those_of_values(run):
    out = run(values=[b'{"key_id": 1, "Record_Key_ID": 1}'], keys=[b'{"id": 1}']).output
    rule = TopicRule.model_validate({"topic": "t", **yaml.safe_load(out)})
    assert list(rule.key_columns) == ["record_record_key_id"]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ([b'{"id": 1}', b"a"], ["# No columns of keys: some are JSON objects, but 1 of 2 would be bad:",
                                "#   1 bad: not a JSON object"]),
        ([b'{"id": 1, "id": 2}'], ["# No columns of keys: some are JSON objects, but 1 of 1 would be bad:",
                                   "#   1 bad: column id: given twice"]),
        ([b"a", b"", b"1"], []),
        ([None], []),
        ([b"{}"], []),
    ],
    ids=["not all", "one twice", "none", "no keys", "no fields"],
)  # fmt: skip
def test_columns_that_would_make_dead_letters_of_records_are_not_proposed(run, keys, said):
    out = run(keys=keys).output
    assert out == run().output + "".join(f"{line}\n" for line in said)
    assert "key_schema" not in json.loads(run("--json", keys=keys).output)


def columns_by_registry(topic, rule, registry):
    assert (topic, registry.url) == ("t", "http://r:1")
    return pa.schema([("a", pa.list_(pa.struct([("b", pa.decimal128(5, 2))])))])


def test_columns_of_a_registry_are_printed(run, monkeypatch):
    monkeypatch.setitem(FORMATS, "kept", ValueFormat("m:f", columns_of=f"{__name__}:columns_by_registry"))
    out = run(rule={"format": "kept"}, registry={"url": "http://r:1"}).output
    assert yaml.safe_load(out) == {"schema": {"a": "array<struct<b:decimal(5,2)>>"}}


@pytest.mark.parametrize("made_by", ["envelope", "envelope with schemas", SMT])
def test_of_changes_by_debezium_newest_rows_are_proposed(run, made_by):
    lines = [json.loads(line) for line in EVENTS.read_text().splitlines()]
    records = [each for each in lines if (each["from"], each["topic"]) == (made_by, "shop.public.customers")]
    values, keys = ([None if r[what] is None else r[what].encode() for r in records] for what in ("value", "key"))
    out = run(values=values, keys=keys).output
    rule = TopicRule.model_validate({"topic": "t", **yaml.safe_load(out)})
    assert (rule.newest_rows.changes, rule.newest_key) == ("debezium", ("id",))
    row = {"envelope": "after", SMT: "__op"}.get(made_by, "payload")
    assert row in rule.fields
    assert "bad:" not in out
    if made_by == "envelope with schemas":
        assert rule.newest_rows.types == {"balance": "decimal(10,2)"}
        assert "after:struct<id:long,name:string,balance:binary,big:string>" in rule.fields["payload"]
    assert json.loads(run("--json", values=values, keys=keys).output)["newest_rows"]["table"] == "gold/t"


def with_schema(fields, row, source=None):
    """A value of Connect's JSON converter with its schema: an envelope with `source`, else a flattened row."""
    kind = {"type": "struct", "fields": fields}
    if source is None:
        return json.dumps({"schema": kind, "payload": row}).encode()
    whole = {"type": "struct", "fields": [{**kind, "field": "after"}]}
    return json.dumps({"schema": whole, "payload": {"after": row, "op": "c", "source": source}}).encode()


def test_flattened_rows_with_schemas_get_the_columns_that_these_say(run):
    def number(precision, scale):
        about = {"connect.decimal.precision": f"{precision}", "scale": f"{scale}"}
        return {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": about}

    kinds = {
        "id": {"type": "int32"},
        "made": {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
        "due": {"type": "int32", "name": "io.debezium.time.Date"},
        "total": number(10, 2),
        "large": number(50, 2),
        "small": number(2, 5),
        "hundreds": number(3, -2),
        "__deleted": {"type": "string"},
    }
    fields = [{"field": name, **kind} for name, kind in kinds.items()]
    row = dict.fromkeys(kinds) | {"id": 1, "made": "2026-01-31T00:00:00Z"}
    out = run(values=[with_schema(fields, row)], keys=[b'{"id": 1}']).output
    rule = TopicRule.model_validate({"topic": "t", **yaml.safe_load(out)})
    assert rule.fields == {
        "payload": "struct<id:int,made:string,due:int,total:binary,large:binary,small:binary,hundreds:binary,"
        "__deleted:string>"
    }
    decimals = {"total": "decimal(10,2)", "large": "decimal(38,2)", "small": "decimal(5,5)"}
    assert rule.newest_rows.types == {"made": "timestamp", "due": "date", **decimals}


def test_of_several_schemas_the_newest_counts(run):
    def value(kind, at):
        return with_schema([{"field": "id", "type": kind}], {"id": 1}, {"ts_ms": at})

    values = [value("int64", 2), value("int32", 1)]
    assert "after:struct<id:long>" in run(values=values, keys=[b'{"id": 1}'] * 2).output


def test_of_a_table_without_a_primary_key_no_newest_rows_are_proposed(run):
    value = json.dumps({"before": None, "after": {"n": 1}, "op": "c", "source": {"ts_ms": 1}}).encode()
    out = run(values=[value], keys=[None]).output
    assert "newest_rows" not in yaml.safe_load(out)
    assert "without a primary key" in out
    assert "newest_rows" not in json.loads(run("--json", values=[value], keys=[None]).output)
