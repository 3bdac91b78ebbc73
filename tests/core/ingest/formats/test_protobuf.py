"""Protobuf messages of a registry to columns: by schema, in order, and whatever stands beside them."""

from uuid import UUID

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from kgs_core.config import TopicRule
from kgs_core.config.registry import RegistrySettings
from kgs_core.errors import ConfigError
from kgs_core.ingest.formats.parsed import ValueBatch
from kgs_core.ingest.formats.protobuf.protobuf import columns_of, parse_protobuf, read_indexes
from kgs_core.lake.files.row_schema import HEADERS
from kgs_core.ports.registry import SchemaKind
from tests.protobuf_values import REPEATED, field, file_of, message_class, registered_text

V1 = file_of(f'message_type {{ name: "Order" {field("id", 1, "INT32")} {field("price", 2, "FLOAT")} }}')
V2 = file_of(
    f'message_type {{ name: "Order" {field("id", 1, "INT64")} {field("price", 2, "DOUBLE")}'
    f" {field('note', 3, 'STRING')}"
    f' nested_type {{ name: "Line" {field("note", 1, "STRING")} }} }}'
    f'message_type {{ name: "Refund" {field("id", 1, "INT64")} }}'
)
Order2 = message_class(V2, "p.Order")
ORDERS = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("note", pa.string())])


def registered(registry, file, subject="t-value", references=()):
    return registry.register(subject, registered_text(file), SchemaKind.PROTOBUF, references)


def framed(number, message, indexes=b"\0"):
    return b"\0" + number.to_bytes(4, "big") + indexes + message


def parse(registry, values, columns=ORDERS, headers=None):
    of = RegistrySettings(url=registry.url)
    return parse_protobuf(ValueBatch(pa.array(values, pa.binary()), columns, headers, of))


def columns_by(registry, topic="t"):
    return columns_of(topic, TopicRule(topic=topic, format="protobuf"), RegistrySettings(url=registry.url))


def test_fields_that_no_column_takes_are_missing_and_wider_ones_are_bad(registry):
    number = registered(registry, V2)
    values = [framed(number, Order2(id=1, note="n").SerializeToString())]
    found = parse(registry, values, pa.schema([("price", pa.float64())]))
    assert found.missing == pa.schema([("id", pa.int64()), ("note", pa.string())])
    assert found.table.to_pylist() == [{"price": 0.0}]
    found = parse(registry, values, pa.schema([("id", pa.int32())]))
    assert found.bad[0].startswith("column id: long in the writer's schema, int in the table: change")
    assert found.missing == pa.schema([])


def test_message_indexes_choose_the_message_type(registry):
    number = registered(registry, V2)
    nested, refund = b"\x04\x00\x00", b"\x02\x02"
    values = [
        framed(number, b"\x08\x05"),
        framed(number, b"\x08\x05", b"\x02\x00"),
        framed(number, b"\x08\x05", refund),
        framed(number, b"\n\1x", nested),
        framed(number, b"", b"\x02\x08"),
        framed(number, b"", b""),
        framed(number, b"", b"\x01"),
        framed(number, b"", b"\xff\xff\xff\xff\xff\xff"),
    ]
    found = parse(registry, values)
    assert found.table.to_pylist() == [
        {"id": 5, "price": 0.0, "note": ""},
        {"id": 5, "price": 0.0, "note": ""},
        {"id": 5, "price": None, "note": None},
        {"id": None, "price": None, "note": "x"},
    ]
    none = "no message indexes behind the schema's id or GUID"
    assert found.bad == {4: f"schema {number}: has no message type at [4]", 5: none, 6: none, 7: none}


def test_message_indexes_are_zigzag_varints():
    assert read_indexes(b"\0\x08") == ((0,), 1)
    assert read_indexes(b"\x04\x02\x80\x02rest") == ((1, 128), 4)
    assert read_indexes(b"\x02\x01")[0] is None


def test_schema_named_by_guid_in_a_header_has_its_indexes_there(registry):
    number = registered(registry, V2)
    name = b"\1" + UUID(registry.guid(number)).bytes
    headers = [[{"key": "__value_schema_id", "value": name + indexes}] for indexes in (b"\0", b"\x02\x02", b"")]
    found = parse(registry, [b"\x08\x05"] * 3, headers=pa.array(headers, HEADERS))
    assert found.table["price"].to_pylist() == [0.0, None]
    assert found.bad == {2: "its header has no message indexes behind the schema's id or GUID"}


def test_schema_in_several_files(registry):
    line = file_of(f'message_type {{ name: "Line" {field("n", 1, "INT32")} }}', name="any")
    order = file_of(
        f'message_type {{ name: "Order" {field("lines", 1, ".p.Line", REPEATED)} }}', dependencies=["shop/line.proto"]
    )
    registered(registry, line, "line")
    number = registered(registry, order, "deep-value", [("shop/line.proto", "line", 1)])
    columns = columns_by(registry, "deep")
    assert columns == pa.schema([("lines", pa.list_(pa.struct([("n", pa.int32())])))])
    found = parse(registry, [framed(number, b"\n\2\x08\5")], columns)
    assert found.table.to_pylist() == [{"lines": [{"n": 5}]}]


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (f'message_type {{ name: "Node" {field("child", 1, ".p.Node")} }}', "contains itself (p.Node > p.Node)"),
        ('message_type { name: "Empty" }', "no fields"),
        ("", "no message type at [0]"),
        (f'message_type {{ name: "M" {field("_offset", 1, "INT32")} }}', "begins with '_'"),
        (f'message_type {{ name: "M" {field("a", 1, "INT32")} {field("A", 2, "INT32")} }}', "differ only in case"),
    ],
)
def test_schema_that_no_columns_can_be_made_of_is_refused_at_opening_in_one_line(registry, messages, words):
    registered(registry, file_of(messages, syntax="proto2"), "odd-value")
    with pytest.raises(ConfigError) as refused:
        columns_by(registry, "odd")
    assert words in str(refused.value)
    assert "give the rule a schema" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_message_that_contains_itself_is_read_without_that_field(registry):
    node = file_of(f'message_type {{ name: "Node" {field("child", 1, ".p.Node")} {field("a", 2, "INT32")} }}')
    number = registered(registry, node)
    found = parse(registry, [framed(number, b"\n\0\x10\7")], pa.schema([("a", pa.int32())]))
    assert (found.table.to_pylist(), found.missing) == ([{"a": 7}], pa.schema([]))


def test_schema_that_the_decoder_panics_at_makes_its_own_values_bad_alone(registry):
    """Field numbers from 19000 on are reserved, and protoc refuses them; a registry need not."""
    odd = file_of(f'message_type {{ name: "Order" {field("id", 19000, "INT32")} }}')
    good, number = registered(registry, V1), registered(registry, odd, "reserved-value")
    found = parse(registry, [framed(good, b"\x08\x05"), framed(number, b""), framed(good, b"\x08\x06")])
    assert [row["id"] for row in found.table.to_pylist()] == [5, 6]
    assert list(found.bad) == [1]
    assert "cannot be made columns" in found.bad[1]


def test_schema_that_lacks_a_reference_makes_its_values_bad_in_words(registry):
    file = FileDescriptorProto.FromString(V1.SerializeToString())
    file.dependency.append("other.proto")
    number = registered(registry, file)
    found = parse(registry, [framed(number, b"")])
    assert "imports other.proto, which its references lack" in found.bad[0]
