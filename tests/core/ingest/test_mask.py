"""Masked fields: nothing of them is anywhere in the lake, and what is there is what a plain loop makes of them."""

import json
import re
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgs_core.config import resolve_tables
from kgs_core.errors import ConfigError, PermanentError, UnsafeError
from kgs_core.ingest.opening.topic_opener import refuse_unmaskable
from kgs_core.ingest.replay import letter_records, redrive
from kgs_core.ingest.worker import parsed_records
from kgs_core.ingest.worker.masks import Masks, masks_of
from kgs_core.kafka.topic_description import TopicDescription
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule import LogPart
from kgs_core.lake.topics.topic_table import TopicTable
from kgs_core.model import OffsetRange, TopicId
from tests.core.ingest.masked_lake import (
    SECRET,
    MaskedLake,
    MaskedRecord,
    everything_in,
    hashed,
    ingested,
    masked_row,
    plainly,
)
from tests.failpoints import KilledError
from tests.kgs_yaml import kgs_yaml
from tests.sink import TopicSink

COLUMNS = {
    "email": "string",
    "id": "long",
    "pin": "binary",
    "open": "string",
    "tags": "array<string>",
    "address": "struct<street:string,zip:string>",
    "items": "array<struct<sku:string,n:int>>",
}
AVRO = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "email", "type": ["null", "string"]},
        {"name": "id", "type": ["null", "long"]},
        {"name": "open", "type": ["null", "string"]},
        {"name": "tags", "type": ["null", {"type": "array", "items": ["null", "string"]}]},
    ],
}
HOWS = ["hash", "null", "truncate(2)"]
FIELDS = {
    "email": HOWS,
    "id": ["hash", "null"],
    "pin": ["hash", "null"],
    "tags": HOWS,
    "address.street": HOWS,
    "items.sku": HOWS,
    "key_k": HOWS,
    "h": HOWS,
}


words = st.text('abcé日."\\ ', max_size=3).map(lambda end: f"~{end}")


@st.composite
def values(draw: st.DrawFn) -> dict[str, Any]:
    """Each text of a masked field has a token behind what may be left of it; nothing else has one."""
    token = st.builds("{}TOKEN{}".format, words, st.integers(10**8, 10**9))
    maybe = st.none() | token
    items = st.none() | st.lists(st.none() | st.fixed_dictionaries({"sku": maybe, "n": st.none() | st.integers(0, 9)}))
    return draw(
        st.fixed_dictionaries(
            {
                "email": maybe,
                "id": st.none() | st.integers(7 * 10**17, 8 * 10**17),
                "open": st.sampled_from(["yes", "no", None]),
                "tags": st.none() | st.lists(maybe, max_size=3),
                "address": st.none() | st.fixed_dictionaries({"street": maybe, "zip": st.none() | st.just("8000")}),
                "items": items,
            }
        )
    )


BROKEN = [
    lambda text: text[:-1],
    lambda text: text + b"x",
    lambda text: text.replace(b'"email": ', b'"email": {"x": 1}, "email": '),
    lambda text: text.replace(b'"id": ', b'"id": "TOKEN99", "x": '),
    lambda text: text.replace(b'"open": ', b'"open": [["TOKEN98"]], "x": '),
    lambda text: b"TOKEN97 " + text,
    lambda text: b'{"pin": "TOKEN96!!"}',
    lambda text: b'{"tags": [1, "TOKEN95"]}',
    lambda text: b"\xffTOKEN94",
    lambda text: b"",
    lambda text: None,
]


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(values(), min_size=1, max_size=8),
    broken=st.lists(st.tuples(st.integers(0, 7), st.sampled_from(BROKEN)), max_size=4),
    hows=st.fixed_dictionaries({}, optional={path: st.sampled_from(hows) for path, hows in FIELDS.items()}),
    whole=st.sampled_from(["hash", "null"]),
    how_read=st.tuples(st.integers(1, 3), st.booleans()),
)
def test_nothing_of_a_masked_field_is_in_the_lake(
    tmp_path_factory: pytest.TempPathFactory, rows: Any, broken: Any, hows: Any, whole: str, how_read: tuple[int, bool]
) -> None:
    """Every field that has a token is masked; more than the drawn ways are the first one of each."""
    split, rescue = how_read
    mask = {**{path: first for path, (first, *_) in FIELDS.items()}, **hows, "_key": whole, "_headers": "null"}
    records, wanted = [], {}
    bad = dict(broken)
    for at, row in enumerate(rows):
        text = json.dumps(row).encode()
        text = bad[at](text) if at in bad else text
        records.append(MaskedRecord(0, at, text, b'{"k": "TOKENkey%d"}' % at, b"TOKENheader%d" % at))
        if at not in bad:
            more = {"pin": None, "key_k": f"TOKENkey{at}", "h": f"TOKENheader{at}", "_key": records[-1].of_key}
            wanted[at] = masked_row(mask, {**row, **more, "_headers": None})
    root = tmp_path_factory.mktemp("lake")
    more = {"unknown_fields": "rescue"} if rescue else {}
    kept = {"key_format": "json", "key_schema": {"k": "string"}, "headers": {"h": "h"}}
    sink = ingested(root, records, mask, split, schema=COLUMNS, **kept, **more)
    found = {row["_offset"]: row for row in sink.rows()}
    letters = {row["_offset"]: row for row in sink.rows("t_dead_letters")}
    assert {*found, *letters} == {*range(len(rows))}
    assert found.keys() >= wanted.keys()
    for at, row in wanted.items():
        assert {name: found[at][name] for name in row} == row
    for at, letter in letters.items():
        assert letter["value"] == (None if records[at].content is None else b"")
        assert letter["_key"] == plainly(whole, records[at].of_key)
        assert re.fullmatch(r"\[[a-z_]+\] (column [a-z]+: )?not told, since the rule masks fields", letter["error"])
    assert not [each for each in everything_in(root) if b"TOKEN" in each]


@pytest.mark.parametrize("name", ["string", "raw", "avro"])
def test_values_of_other_formats_are_masked_alike(tmp_path: Path, name: str) -> None:
    row = {"email": "a@TOKEN", "id": 7, "open": "yes", "tags": ["~~TOKEN", None]}
    rule: dict[str, Any] = {"format": name}
    if name == "avro":
        out = BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(dict(AVRO)), row)
        content = out.getvalue()
        rule |= {"avro_schema": json.dumps(AVRO), "schema": {"email": "string", "id": "long", "tags": "array<string>"}}
        mask = {"email": "hash", "id": "hash", "tags": "truncate(2)"}
        wanted = {path: plainly(how, row[path]) for path, how in mask.items()}
    else:
        content, mask = b"a@TOKEN", {"value": "hash"}
        wanted = {"value": plainly("hash", "a@TOKEN" if name == "string" else b"a@TOKEN")}
    records = [MaskedRecord(0, 0, content, b"k"), MaskedRecord(0, 1, None, b"k"), MaskedRecord(0, 2, b"\xff\xffTOKEN")]
    sink = ingested(tmp_path, records, mask, **rule)
    (first, *_) = sink.rows()
    assert {path: first[path] for path in wanted} == wanted
    assert first["_key"] == b"k", "what no mask names stays"
    assert not [each for each in everything_in(tmp_path) if b"TOKEN" in each]
    tombstones = [r["_offset"] for r in sink.rows("t_dead_letters") if r["value"] is None]
    assert tombstones == ([1] if name == "avro" else []), "by which newest rows are deleted"


def test_a_table_keeps_to_its_secret(tmp_path: Path) -> None:
    rule = {"schema": COLUMNS, "mask": {"email": "hash"}}
    lake = ingested(tmp_path, [MaskedRecord(0, 0, b'{"email": "x"}')], **rule)
    assert SECRET not in repr((lake.spec, lake.settings, lake.state.job()))
    with pytest.raises(UnsafeError, match=r"hashed with another lake\.mask_secret"):
        MaskedLake(tmp_path, SECRET[::-1], **rule)
    MaskedLake(tmp_path, SECRET[::-1], **{**rule, "mask": {"email": "null"}})


@pytest.mark.parametrize("is_noted", [False, True])
def test_killed_beside_the_note_of_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_noted: bool) -> None:
    """No row was made by it yet: whoever notes one first is right."""
    rule = {"schema": COLUMNS, "mask": {"email": "hash"}}
    note = TopicTable.note_secret

    def killed(table: TopicTable, token: int | None) -> None:
        if is_noted:
            note(table, token)
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(TopicTable, "note_secret", killed)
        with pytest.raises(KilledError):
            MaskedLake(tmp_path, **rule)
    first, second = (SECRET, SECRET[::-1]) if is_noted else (SECRET[::-1], SECRET)
    MaskedLake(tmp_path, first, **rule)
    with pytest.raises(UnsafeError, match="hashed with another"):
        MaskedLake(tmp_path, second, **rule)


def seen(table: pa.Table, topic: str) -> pa.Table:
    """A transform of the user's, to which a hash is as good as an address."""
    return table.set_column(0, "email", pa.array([f"seen {text}" for text in table["email"].to_pylist()], pa.string()))


def test_a_transform_sees_masked_fields(tmp_path: Path) -> None:
    rule = {"schema": {"email": "string"}, "transform_arrow": f"{__name__}:seen"}
    lake = ingested(tmp_path, [MaskedRecord(0, 0, b'{"email": "x"}')], {"email": "hash"}, **rule)
    assert [row["email"] for row in lake.rows()] == [f"seen {plainly('hash', 'x')}"]


def test_a_secret_comes_from_its_file(tmp_path: Path) -> None:
    file, rule = tmp_path / "secret", {"format": "json", "schema": COLUMNS, "mask": {"email": "hash"}}
    lake = {"root": "/lake", "mask_secret": f"${{file:{file}}}"}
    spec = resolve_tables(kgs_yaml("/lake", rule, lake=lake), ["t"])["t"]
    with pytest.raises(PermanentError, match=r"lake: mask_secret: file .*: no such file"):
        masks_of(spec)
    file.write_text("short\n")
    with pytest.raises(ConfigError, match="shorter than 16"):
        masks_of(spec)
    file.write_text(f"{SECRET}\n")
    assert masks_of(spec) == Masks(((("email",), "hash"),), SECRET.encode())


def test_columns_of_a_registry_must_have_the_field(tmp_path: Path) -> None:
    def refused(columns: pa.Schema, **rule: Any) -> str:
        sink = TopicSink(Storage(str(tmp_path)), format="avro", mask={"email": "hash"}, **rule)
        try:
            refuse_unmaskable(sink.spec, columns)
        except ConfigError as e:
            return str(e)
        return ""

    assert not refused(pa.schema([("email", pa.string())]))
    assert "no field 'email'" in refused(pa.schema([("mail", pa.string())]))
    assert "email is int: only string" in refused(pa.schema([("email", pa.int32())]))
    lake = {"root": "/lake", "mask_secret": SECRET}
    for more, refused_as in (({}, ""), ({"unknown_fields": "rescue"}, "no field 'email'")):
        rule = {"pattern": "t.*", "format": "json_schema", "mask": {"email": "hash"}, **more}
        given = kgs_yaml("/lake", rule, lake=lake, registry={"url": "http://127.0.0.1:9"})
        (problem, *_) = [*given.topics[0].problems_of_mask({"mail": "string"}), ""]
        assert refused_as in problem
        assert bool(problem) == bool(refused_as), "topics of a pattern need not have it, unless it is kept aside"


def test_errors_of_a_parser_say_nothing_of_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ValueError("TOKEN")

    monkeypatch.setattr(parsed_records, "side_by_side", fails)
    with pytest.raises(RuntimeError, match="ValueError, not told") as caught:
        ingested(tmp_path, [MaskedRecord(0, 0, b"{}")], {"email": "null"}, schema=COLUMNS)
    assert caught.value.__suppress_context__


def test_a_letter_is_redriven_from_kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Kafka still has its record: the dead letter is without its value."""
    rule = {"format": "json", "schema": {"email": "string", "id": "long"}, "mask": {"email": "hash", "_key": "hash"}}
    good = [MaskedRecord(0, at, b'{"email": "%d@TOKEN", "id": %d}' % (at, at), b"TOKEN") for at in range(5)]
    then = [
        MaskedRecord(0, r.at, (r.content or b"").replace(b'"id"', b'"id": "", "x"'), r.of_key) if r.at % 2 else r
        for r in good
    ]
    sink = ingested(tmp_path, then, **rule)
    assert [letter["_offset"] for letter in sink.rows("t_dead_letters")] == [1, 3]
    there = good[2:]
    taken: list[dict[int, OffsetRange]] = []

    def log(_: object, __: object, topic: str, wanted: dict[int, OffsetRange], ___: object, take: Any) -> Any:
        taken.append(wanted)
        take([record for record in there if record.at in range(*wanted[0])])
        return {0: LogPart()}

    monkeypatch.setattr(letter_records, "load_log", log)
    known = {"t": TopicDescription(TopicId("id1"), 1)}
    monkeypatch.setattr(redrive, "admin_of", lambda _: SimpleNamespace(describe=lambda _: known))
    found = redrive.Redrive(sink.settings, "t").run()
    assert taken == [{0: OffsetRange(1, 4)}]
    assert (found.passed, dict(found.failed)) == (1, {"other": 1})
    assert "t:0 at 1: [other] its record is no longer in Kafka" in found.examples["other"]
    rows = {row["_offset"]: row for row in sink.rows()}
    assert rows.keys() == {0, 2, 3, 4}
    assert rows[3]["email"] == plainly("hash", "3@TOKEN")
    assert rows[3]["_key"] == rows[2]["_key"] == hashed(b"TOKEN")
    known["t"] = TopicDescription(TopicId("another"), 1)
    assert dict(redrive.Redrive(sink.settings, "t").run().failed) == {"other": 1}
    assert not [each for each in everything_in(tmp_path) if b"TOKEN" in each]
    other = kgs_yaml(tmp_path, rule, lake={"root": str(tmp_path), "mask_secret": SECRET[::-1]})
    with pytest.raises(UnsafeError, match="another"):
        redrive.Redrive(other, "t").run()
