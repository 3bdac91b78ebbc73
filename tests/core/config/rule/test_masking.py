"""What a mask may say of which fields."""

import pytest

from kgs_core.config.rule.masking import mask_path
from kgs_core.errors import ConfigError
from tests.kgs_yaml import kgs_yaml

SECRET = "0123456789abcdef"
COLUMNS = {"s": "string", "n": "long", "i": "int", "b": "binary", "a.b": "string", "d": "struct<e:array<string>,f:int>"}
WHOLE = {**COLUMNS, "l": "array<struct<t:string>>", "m": "map<string,string>"}


def problems(mask, secret=SECRET, **rule):
    lake = {"root": "/lake", **({"mask_secret": secret} if secret else {})}
    try:
        kgs_yaml("/lake", {"format": "json", "schema": WHOLE, "mask": mask, **rule}, lake=lake)
    except ConfigError as e:
        return "\n".join(e.problems)
    return ""


@pytest.mark.parametrize(
    ("text", "path"),
    [("a", ("a",)), ("a.b.c", ("a", "b", "c")), ("`a.b`.c", ("a.b", "c")), ("a.`b``c`", ("a", "b`c"))],
)
def test_a_path_is_names_with_dots_between(text, path):
    assert mask_path(text) == path


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "`a", "a`b", "``"])
def test_what_is_no_path_is_refused(text):
    with pytest.raises(ValueError, match="not the path of a field"):
        mask_path(text)


@pytest.mark.parametrize(
    "mask",
    [
        {"s": "hash", "n": "hash", "b": "hash", "i": None, "d.f": "null", "`a.b`": "truncate( 3 )", "m": None},
        {"d.e": "hash", "l.t": "truncate(1)", "d": None, "l": "null", "_key": "hash", "_headers.value": "hash"},
        {"_key": None, "_headers": None},
    ],
)
def test_masks_that_fit_their_field(mask):
    assert not problems(mask)


@pytest.mark.parametrize(
    ("mask", "why"),
    [
        ({"zz": "hash"}, "mask: zz: no field 'zz', there are a.b, b, d, i, l, m, ..."),
        ({"d.zz": "hash"}, "mask: d.zz: no field 'zz', there are e, f"),
        ({"m.x": "hash"}, "mask: m.x: no field 'x', there are none"),
        ({"i": "hash"}, "mask: i is int: only string, binary and long can be hashed"),
        ({"m": "hash"}, "mask: m is map<string,string>: only string"),
        ({"n": "truncate(2)"}, "mask: n is long: only string can be truncated"),
        ({"_offset": None}, "no field '_offset'"),
        ({"s": "drop"}, "s: 'drop': give hash, null or truncate(n)"),
        ({"s": "truncate(0)"}, "give hash, null or truncate(n)"),
        ({"s": 3}, "s: give hash, null or truncate(n)"),
        ({"a..b": "hash"}, "not the path of a field"),
        ({"s": "null", "_rescued": None}, "no field '_rescued'"),
    ],
)
def test_masks_that_do_not(mask, why):
    assert why in problems(mask)


def test_a_field_of_key_or_headers_is_masked_there_too():
    key = {"key_format": "json", "key_schema": {"id": "string"}}
    assert "key_id is also in column _key, unmasked: add _key: hash" in problems({"key_id": "hash"}, **key)
    assert not problems({"key_id": "hash", "_key": "hash"}, **key)
    headers = {"headers": {"trace": "h"}}
    for other in ({}, {"_headers.key": None}):
        assert "trace is also in column _headers, unmasked" in problems({"trace": "hash", **other}, **headers)
    assert not problems({"trace": "hash", "_headers.value": "hash"}, **headers)


def test_rows_keep_what_tells_them_apart():
    newest = {"newest_rows": {"table": "n", "key": ["s"], "deletes": "ignore"}}
    assert "newest_rows: key 's' is masked so that keys become alike" in problems({"s": "truncate(3)"}, **newest)
    assert not problems({"s": "hash"}, **newest)
    followed = {"newest_rows": {"table": "n", "key": ["s"], "changes": "maxwell"}}
    assert "newest_rows: key 's' is masked" in problems({"o.s": "null"}, **followed)
    route = {"route": {"column": "s", "tables": {"x": "tx"}}}
    assert "route: column 's' is masked" in problems({"s": "hash"}, **route)


ROW = "struct<id:string,n:string>"
EVENTS = {"op": "string", "before": ROW, "after": ROW, "source": "struct<lsn:long,query:string>"}
KEYED = {"key_format": "json", "key_schema": {"id": "string"}}
WRAPPED = {"schema": {"payload": f"struct<op:string,after:{ROW}>"}, "key_schema": {"payload": "struct<id:string>"}}
FOLLOWED = {"table": "n", "changes": "debezium"}


@pytest.mark.parametrize(
    ("mask", "rule", "why"),
    [
        ({"after.id": "hash"}, {}, "key 'id' is hashed as after.id and not as before.id"),
        ({"after.id": "hash", "before.id": "hash"}, {}, "key 'id' is hashed as before.id and not as key_id"),
        ({"id": "hash", "_key": "hash"}, {"schema": {"id": "string"}}, "is hashed as id and not as key_id"),
        ({"payload.after.id": "hash"}, WRAPPED, "is hashed as payload.after.id and not as key_payload.id"),
        ({"source.lsn": "hash"}, {}, "mask: source.lsn tells what an event does"),
        ({"op": None}, {}, "mask: op tells what an event does"),
        ({"after.n": "truncate(3)"}, {"types": {"n": "date"}}, "types: column n is masked"),
        ({"after.n": "hash", "source.query": None}, {}, ""),
        ({"op": "hash"}, {"schema": {"id": "string", "op": "string"}}, ""),
        ({"after.id": "hash", "before": None, "key_id": "hash", "_key": "hash"}, {}, ""),
    ],
)
def test_events_are_masked_so_that_they_can_be_followed(mask, rule, why):
    types = {"types": rule["types"]} if "types" in rule else {}
    whole = {"schema": EVENTS, **KEYED, **{name: part for name, part in rule.items() if name != "types"}}
    found = problems(mask, newest_rows={**FOLLOWED, **types}, **whole)
    assert why in found if why else not found


def test_a_hash_needs_a_secret_that_cannot_be_guessed():
    assert "topics[0].mask: hash needs a secret: give lake.mask_secret" in problems({"s": "hash"}, secret="")
    assert not problems({"s": "null"}, secret="")
    short = problems({"s": "hash"}, secret="short-secret")
    assert "lake.mask_secret: (value not shown): shorter than 16 characters" in short
    assert "short-secret" not in short
    assert "${file:" in problems({"s": "hash"}, secret="x${file:/a}-and-more-of-it")


def test_topics_of_one_table_have_one_mask():
    rules = [{"topic": topic, "table": "t", "format": "json", "schema": COLUMNS} for topic in "tu"]
    with pytest.raises(ConfigError, match="differ in mask"):
        kgs_yaml("/lake", rules[0], {**rules[1], "mask": {"s": "null"}})
