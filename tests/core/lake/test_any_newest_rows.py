"""Any rule with newest rows, mask and more: refused in lines that say why, or proven; never anything else."""

import json
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgs_core.config import resolve_tables
from kgs_core.errors import KgsError
from kgs_core.ingest.opening.topic_opener import refuse_unmaskable
from kgs_core.ingest.worker.masks import masks_of
from kgs_core.lake.derived import latest_by_key
from kgs_core.lake.derived.latest_by_key import LatestByKeyTable
from kgs_core.lake.derived.proof import prove
from kgs_core.lake.files.storage import Storage
from tests.kgs_yaml import kgs_yaml
from tests.sink import FakeRecord, Sink

_numbers = count()
ROW = "struct<id:long,s:string>"
SCHEMAS = {
    None: {"id": "long", "s": "string"},
    "flattened": {"id": "long", "s": "string"},
    "debezium": {"op": "string", "before": ROW, "after": ROW, "source": "struct<lsn:long,ts_ms:long>"},
    "maxwell": {"type": "string", "data": ROW, "old": ROW},
    "canal": {"type": "string", "data": f"array<{ROW}>", "old": f"array<{ROW}>"},
}
PATHS = ("id", "s", "after.id", "before.id", "after.s", "data.id", "data.s", "old", "op", "_key", "_headers.value", "h")
MORE_PATHS = ("key_id", "value", "_rescued", "source.lsn", "type", "nope", "key")
KEYS = ("_key", "id", "id", "s", "h", "topic", "key_id", "value", "nope")
newest_rows = st.fixed_dictionaries(
    {},
    optional={
        "key": st.lists(st.sampled_from(KEYS), min_size=1, max_size=2),
        "deletes": st.sampled_from(("remove", "column", "ignore")),
        "order": st.sampled_from(("offset", "timestamp", "source")),
        "deletion_vectors": st.booleans(),
        "types": st.dictionaries(st.sampled_from(("id", "s", "nope")), st.sampled_from(("string", "timestamp_ms"))),
    },
)
rules = st.fixed_dictionaries(
    {"format": st.sampled_from((*["json"] * 4, "string", "raw")), "newest_rows": newest_rows},
    optional={
        "key_format": st.sampled_from(("json", "string")),
        "key_prefix": st.just(""),
        "headers": st.just({"h": "h"}),
        "topic_column": st.just("topic"),
        "unknown_fields": st.just("rescue"),
        "evolve": st.sampled_from(("add_columns", "widen")),
        "partition_by": st.just(["days(_timestamp)"]),
        "rows": st.sampled_from(("any", "filter")),
        "route": st.just({"column": "s", "tables": {"s1": "t_s1"}}),
        "complete_hours": st.just({"since": "2026-01-01"}),
        "mask": st.dictionaries(
            st.sampled_from((*PATHS, *MORE_PATHS)), st.sampled_from(("hash", None, "truncate(1)")), max_size=2
        ),
    },
)


def event(kind, number):
    """Every fourth deletes."""
    row, deletes = {"id": number % 3, "s": f"s{number % 5}"}, number % 4 == 3
    match kind:
        case "debezium":
            images = {"before": row, "after": None} if deletes else {"before": None, "after": row}
            return {**images, "op": "d" if deletes else "c", "source": {"lsn": number, "ts_ms": number}}
        case "maxwell":
            return {"type": "delete" if deletes else "insert", "data": row, "old": None}
        case "canal":
            return {"type": "DELETE" if deletes else "INSERT", "data": [row], "old": None}
    return None if deletes else row


def outcome_of(act):
    """Why it is refused, and what it returns."""
    try:
        return "", act()
    except KgsError as e:
        return str(e), None


@pytest.mark.slow(30)
@given(kind=st.sampled_from(tuple(SCHEMAS)), drawn=rules)
@settings(
    max_examples=150,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_a_rule_is_refused_or_its_newest_rows_are_proven(tmp_path, monkeypatch, kind, drawn):
    root = tmp_path / str(next(_numbers))
    changes = "debezium" if kind == "flattened" else kind
    rule = {**drawn, "newest_rows": {"table": "t_latest", "changes": changes, **drawn["newest_rows"]}}
    rule |= {"schema": SCHEMAS[kind]} if rule["format"] == "json" else {}
    rule |= {"key_schema": {"id": "long"}} if rule.get("key_format") == "json" else {}
    lake = {"root": str(root), "mask_secret": "0123456789abcdef"}
    refused, found = outcome_of(lambda: kgs_yaml(root, rule, lake=lake))
    if refused:
        assert all(line.startswith("kgs.yaml: topics[0]") for line in refused.splitlines()), refused
        return
    spec = resolve_tables(found, ["t"])["t"]
    values = [None if (v := event(kind, n)) is None else json.dumps(v).encode() for n in range(24)]
    monkeypatch.setattr(
        FakeRecord, "value", lambda r: values[r.at] if rule["format"] == "json" else b"v%d" % (r.at % 5)
    )
    monkeypatch.setattr(FakeRecord, "key", lambda r: json.dumps({"id": r.at % 3}).encode())
    monkeypatch.setattr(FakeRecord, "headers", lambda r: [("h", b"x%d" % (r.at % 2))])
    monkeypatch.setattr(latest_by_key, "TRIES", 1)
    masks = masks_of(spec)
    sink = Sink(Storage(str(root)), **{"schema": {}, **rule}).started(1)
    sink.spec = spec

    def follow():
        if masks.fields:
            refuse_unmaskable(spec, sink.table.columns)
        for span in ((0, 5), (5, 20), (20, 24)):
            sink.ingest({0: span})
            LatestByKeyTable(found, spec).materialize()

    refused, _ = outcome_of(follow)
    if refused:
        assert refused.startswith(("newest_rows: ", "topic t: ")), refused
        return
    (proof,) = prove(found, spec)
    assert (proof.ok, proof.rows > 0) == (True, True), proof
