"""JSON values with structs, lists, maps and what of them has no column."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgs_core.lake.files.row_schema import schema_of
from tests.fuzz_json_scan import NUMBERS
from tests.slow_parser import assert_judged_as_by_pyarrow_alone
from tests.topic_jobs import parse_json

NESTED = {
    "s": "struct<long: long, string: string, s: struct<date: date, float: float, bytes: binary>>",
    "list": "array<struct<long: long, decimal: decimal(5,2)>>",
    "lists": "array<array<float>>",
    "decimal": "decimal(5,2)",
    **{name: name for name in ("int", "long", "float", "double", "date", "timestamp")},
}
MAPS = {"map": "map<string,long>", "maps": "array<struct<map: map<string,struct<timestamp: timestamp>>, long: byte>>"}


SCALARS = st.sampled_from(
    ["null", "true", "1", "-1.5", "1e400", "NaN", "-Inf", '""', '"a"', '"\\ud800"', '"é"', "{}", "[]", "{"]
)
INNER_NAMES = st.sampled_from([*NESTED, *MAPS, "long", "string", "date", "float", "bytes", "timestamp", "x"])


def object_text(pairs):
    return "{" + ", ".join(f'"{name}": {value}' for name, value in pairs) + "}"


INNER = st.recursive(
    SCALARS | st.sampled_from(['"YQ=="', '"YQ="', '"Y Q="', "1.250", "123.45", "1234.5", '"1.5e2"', '"1e-3"', '"."']),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda them: f"[{', '.join(them)}]")
        | st.lists(st.tuples(INNER_NAMES, inner), max_size=3).map(object_text)
    ),
    max_leaves=8,
)


def of_type(kind):
    """Texts that mostly fit a type, so that good ones are not rare."""
    if pa.types.is_struct(kind):
        pairs = [st.tuples(st.just(f.name), st.deferred(lambda f=f: of_type(f.type))) for f in kind]
        fitting = st.lists(st.one_of(pairs), max_size=3, unique_by=lambda pair: pair[0]).map(object_text)
    elif pa.types.is_map(kind):
        pairs = st.tuples(st.sampled_from(["a", "b", "\\u0061", "key", ""]), of_type(kind.item_type))
        fitting = st.lists(pairs, max_size=2).map(object_text)
    elif pa.types.is_list(kind):
        fitting = st.lists(of_type(kind.value_type), max_size=3).map(lambda them: f"[{', '.join(them)}]")
    else:
        texts = {pa.string(): '"a"', pa.binary(): '"YQ=="', pa.date32(): '"2026-01-31"'}
        fitting = st.just('"2026-01-31T00:00Z"' if pa.types.is_timestamp(kind) else texts.get(kind, "1"))
    return st.integers(0, 15).flatmap(lambda n: INNER if not n else st.just("null") if n == 1 else fitting)


PLAIN_NESTED, WITH_MAPS = schema_of(NESTED), schema_of(NESTED | MAPS)


PLACES = (
    *('{"decimal": %s}', '{"list": [{"decimal": %s}]}', '{"lists": [[%s]]}', '{"s": {"s": {"float": %s}}}'),
    *('{"int": %s}', '{"float": %s}', '{"double": %s}'),
    *('{"long": %s}', '{"x": %s}', '{"decimal": 1.5, "x": {"y": [%s]}}', '{"s": {"x": %s}}', '{"x": "\\ud800"}'),
)


@pytest.mark.parametrize("schema", [PLAIN_NESTED, WITH_MAPS], ids=["plain", "maps"])
@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:12])
def test_a_number_is_judged_as_by_pyarrow_alone_wherever_it_stands(number, quoted, schema):
    text = f'"{number}"' if quoted else number
    assert_judged_as_by_pyarrow_alone([place.replace("%s", text).encode() for place in PLACES], schema, parse_json)


@pytest.mark.slow
@pytest.mark.parametrize("schema", [PLAIN_NESTED, WITH_MAPS], ids=["plain", "maps"])
@settings(max_examples=200)
@given(data=st.data())
def test_every_nested_value_is_judged_as_by_pyarrow_alone(schema, data):
    values = data.draw(st.lists(of_type(pa.struct(list(schema))).map(str.encode), min_size=1, max_size=3))
    assert_judged_as_by_pyarrow_alone(values, schema, parse_json)


def test_a_key_of_a_map_given_twice_or_as_entries_is_judged_as_by_pyarrow_alone():
    values = [b'{"map": [{"key": "a", "value": 1}]}', b'{"map": {"a": 1, "a": 1}}', b'{"x": 1e400}']
    assert_judged_as_by_pyarrow_alone(values, WITH_MAPS, parse_json)
