"""Types in text: what is understood, in which words it comes back, and what is said of the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.config.rule.field_types import (
    ArrayType,
    DecimalType,
    MapType,
    ScalarType,
    StructType,
    canonical_type,
    parse_type,
)

UNDERSTOOD = {
    "BIGINT": "long",
    " tinyint ": "byte",
    "decimal": "decimal(10,0)",
    "numeric( 5 )": "decimal(5,0)",
    "Array< string >": "array<string>",
    "map<string, long>": "map<string,long>",
    "struct<a: int, b: array<double>>": "struct<a:int,b:array<double>>",
    "struct<a int, b date>": "struct<a:int,b:date>",
    "struct<`a b`: int, `c``d`: int, `e`: int>": "struct<`a b`:int,`c``d`:int,e:int>",
    "struct<array: array<int>, décès: date>": "struct<array:array<int>,décès:date>",
}
NOT_UNDERSTOOD = {
    "": "'' is not a type; give one of string ",
    "strng": "'strng' is not a type (did you mean 'string'?); give one of string ",
    "array<int": "wanted '>' at its end",
    "map<string": "wanted ',' at its end (within {} YAML ends a text at a comma: put the type in quotes)",
    "decimal(38": "wanted ')' at its end (within {} YAML ends a text at a comma: put the type in quotes)",
    "array": "wanted '<' at its end",
    "array<>": "wanted a type at character 7, not '>'",
    "int int": "wanted the end of the type at character 5, not 'int'",
    "struct<>": "a struct needs a field",
    "struct<a: int, A: int>": "two fields differ only in case",
    "struct<a: int, a: int>": "two fields are named a",
    "struct<a b: int>": "'b' is not a type",
    "struct<a: int NOT NULL>": "wanted '>' at character 15, not 'NOT'",
    "map<string>": "wanted ',' at character 11, not '>'",
    "map<array<int>,int>": "array<int> cannot be the key of a map",
    "decimal(39,2)": "decimal(39,2): give decimal(digits, digits behind the point)",
    "decimal(2,3)": "decimal(2,3): give decimal(digits, digits behind the point)",
    "decimal(x)": "wanted a number of digits, as in decimal(10,2) at character 9, not 'x'",
    "timestamp_ntz": "'timestamp_ntz' is not a type of a column: a time without a zone raises the table's protocol",
    "varchar(3)": "'varchar' is not a type of a column: write string",
    "array<" * 33 + "int" + ">" * 33: "nested deeper than 32 levels",
}


@pytest.mark.parametrize("text", UNDERSTOOD)
def test_types_have_one_text(text):
    assert canonical_type(text) == UNDERSTOOD[text]
    assert canonical_type(UNDERSTOOD[text]) == UNDERSTOOD[text]


@pytest.mark.parametrize("text", NOT_UNDERSTOOD)
def test_what_is_no_type_says_where_and_what_to_write(text):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - its text is what is tested
        parse_type(text)
    assert str(caught.value).startswith(NOT_UNDERSTOOD[text])
    assert "\n" not in str(caught.value)


def test_struct_can_be_a_mapping():
    assert canonical_type({"a": {"b c": "bigint"}, "d": "array<int>"}) == "struct<a:struct<`b c`:long>,d:array<int>>"


SCALARS = st.sampled_from(["string", "boolean", "byte", "long", "double", "date", "timestamp", "binary"]).map(
    ScalarType
)
DECIMALS = st.integers(1, 38).flatmap(lambda digits: st.builds(DecimalType, st.just(digits), st.integers(0, digits)))
TYPES = st.recursive(
    SCALARS | DECIMALS,
    lambda inner: (
        st.builds(ArrayType, inner)
        | st.builds(MapType, SCALARS, inner)
        | st.dictionaries(st.text("abç _`:<>,1", min_size=1), inner, min_size=1, max_size=3).map(
            lambda fields: StructType(tuple(fields.items()))
        )
    ),
    max_leaves=6,
)


@given(TYPES)
def test_text_of_a_type_is_read_as_that_type(kind):
    assert parse_type(str(kind)) == kind


@given(st.text("aint struct<>array,:()`123_", max_size=30))
def test_any_text_is_a_type_or_an_error_in_one_line(text):
    try:
        found = parse_type(text)
    except ValueError as e:
        assert "\n" not in str(e)  # noqa: PT017 - there is no error where it is a type
    else:
        assert parse_type(str(found)) == found
