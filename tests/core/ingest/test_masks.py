"""Masks of columns: nested ones, other types, and what no mask touches."""

import pyarrow as pa

from kgs_core.config.rule.newest_rows import UNAVAILABLE
from kgs_core.ingest.worker.masks import Masks
from tests.core.ingest.masked_lake import SECRET, masked_row


def test_slices_and_nulls_of_nested_fields() -> None:
    """As after a `take` or `slice`, where arrays begin in the middle of others."""
    kind = pa.list_(pa.struct([("s", pa.list_(pa.string())), ("n", pa.int32())]))
    found = [[{"s": ["a", None], "n": 1}, None], None, [], [{"s": None, "n": None}, {"s": ["b", "a"], "n": 2}], None]
    masks = Masks(((("c", "s"), "hash"),), SECRET.encode())
    for start in range(len(found) + 1):
        for length in range(len(found) + 1 - start):
            table = pa.table({"c": pa.array(found, kind)}).slice(start, length)
            wanted = [masked_row({"c.s": "hash"}, {"c": row})["c"] for row in found[start : start + length]]
            assert masks.masked(table)["c"].to_pylist() == wanted
            assert masks.masked(table).schema == table.schema


def test_debeziums_word_for_no_value_stays() -> None:
    for kind, word in ((pa.string(), UNAVAILABLE), (pa.binary(), UNAVAILABLE.encode())):
        rows = pa.table({"x": pa.array([word, None], kind)})
        assert Masks(((("x",), "hash"),), SECRET.encode()).masked(rows) == rows
    begun = Masks(((("x",), 3),), b"").masked(pa.table({"x": [UNAVAILABLE, None, "abcd"]}))
    assert begun["x"].to_pylist() == [UNAVAILABLE, None, "abc"]


def test_a_field_of_an_unfit_type_becomes_null() -> None:
    """A registry may give a field of a pattern's topic another type while consumers run."""
    table = pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string()))})
    fields = ((("a",), "hash"), (("b", "k"), "hash"))
    assert Masks(fields, b"").masked(table).to_pylist() == [{"a": None, "b": None}]
