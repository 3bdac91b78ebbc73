"""Files are read in the columns that their table has by now, whatever it had when they were written."""

from datetime import date
from decimal import Decimal
from io import BytesIO
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.lake.delta.table_changes import AddedFile
from kgs_core.lake.files.columns import misfits

PLAIN = {
    pa.string(): "a",
    pa.bool_(): True,
    pa.int64(): 7,
    pa.binary(): b"a",
    pa.date32(): date(2026, 1, 31),
    pa.decimal128(10, 2): Decimal("1.50"),
}
NAMES = st.sampled_from(["a", "b", "c", "d"])


@st.composite
def earlier_and_now(draw, depth=2):
    """Types of one column: a struct in it may have had fewer fields, in another order, but in a map."""
    kind = draw(st.sampled_from(["plain", "struct", "list", "map"] if depth else ["plain"]))
    if kind == "plain":
        return (draw(st.sampled_from([*PLAIN])),) * 2
    if kind == "struct":
        return tuple(map(pa.struct, draw(fields(depth - 1, least=1))))
    earlier, now = draw(earlier_and_now(depth - 1))
    return (pa.list_(earlier), pa.list_(now)) if kind == "list" else (pa.map_(pa.string(), now),) * 2


@st.composite
def fields(draw, depth=2, least=0):
    names = draw(st.lists(NAMES, min_size=1, unique=True))
    types = {name: draw(earlier_and_now(depth)) for name in names}
    before = draw(st.lists(st.sampled_from(names), min_size=least, unique=True))
    return [(name, types[name][0]) for name in before], [(name, types[name][1]) for name in names]


def value_of(kind):
    """A value of a type; nothing in it is null."""
    if pa.types.is_struct(kind):
        return {f.name: value_of(f.type) for f in kind}
    if pa.types.is_list(kind):
        return [value_of(kind.value_type)]
    return [("k", value_of(kind.item_type))] if pa.types.is_map(kind) else PLAIN[kind]


def with_nulls(value, kind):
    """What a value is in a type of more fields."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {f.name: with_nulls(value.get(f.name), f.type) for f in kind}
    if pa.types.is_list(kind):
        return [with_nulls(each, kind.value_type) for each in value]
    return [(k, with_nulls(each, kind.item_type)) for k, each in value] if pa.types.is_map(kind) else value


@given(fields(), st.integers(0, 3))
def test_what_a_file_lacks_is_null_at_any_depth(types, count):
    earlier, now = map(pa.schema, types)
    assert not misfits(earlier, now), "a file that its table takes"
    rows = [{f.name: value_of(f.type) for f in earlier}] * count
    written = pa.Table.from_pylist(rows, pa.schema([*earlier, ("_offset", pa.int64())]))
    file = BytesIO()
    pq.write_table(written, file)
    file.seek(0)
    storage = SimpleNamespace(path=lambda *_: file, filesystem=lambda: None)
    found = AddedFile("f", {"p": "7", "q": ""}).read(
        storage, "t", pa.schema([*now, ("p", pa.int32()), ("q", pa.date32())])
    )
    wanted = [
        {f.name: with_nulls(row.get(f.name), f.type) for f in now} | {"p": 7, "q": None} for row in written.to_pylist()
    ]
    assert found.to_pylist() == wanted
