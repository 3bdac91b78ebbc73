"""The benchmark's records in each format of values: the same content, as a producer with a registry writes it."""

import base64
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import fastavro
from google.protobuf import descriptor_pool, timestamp_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message_factory import GetMessageClass

from bench.records import FIELDS, record_values
from bench.registry_stub import StubRegistry
from kgs_core.ports.registry import SchemaKind

_SUBJECT = "bench-value"
_AVRO_TYPES: Mapping[str, Any] = {"timestamp": {"type": "long", "logicalType": "timestamp-micros"}}
_JSON_TYPES: Mapping[str, Mapping[str, str]] = {
    "long": {"type": "integer"},
    "int": {"type": "integer", "connect.type": "int32"},
    "double": {"type": "number"},
    "timestamp": {"type": "string", "format": "date-time"},
}
_PROTOBUF_TYPES = {
    "long": FieldDescriptorProto.TYPE_INT64,
    "int": FieldDescriptorProto.TYPE_INT32,
    "double": FieldDescriptorProto.TYPE_DOUBLE,
    "boolean": FieldDescriptorProto.TYPE_BOOL,
    "string": FieldDescriptorProto.TYPE_STRING,
    "timestamp": FieldDescriptorProto.TYPE_MESSAGE,
}
Record = Mapping[str, Any]
Encode = Callable[[Record], bytes]


@dataclass(frozen=True, slots=True)
class FormatRecords:
    """Records of one format.

    Attributes:
        rule: what a topic's rule has besides the topic.
        values: of the records, different ones.
    """

    rule: Mapping[str, Any]
    values: Sequence[bytes]


def records_in(name: str, registry: StubRegistry, count: int) -> FormatRecords:
    """So many records in a format, whose schema is put into the registry.

    Args:
        name: any of `FORMATS`.
        registry: where the schema is, for the formats that need one.
        count: how many different ones.
    """
    texts = record_values(count)
    if name in ("raw", "string"):
        return FormatRecords({"format": name}, texts)
    rule = {"format": name, "schema": dict(FIELDS)}
    if name == "json":
        return FormatRecords(rule, texts)
    encode = _ENCODERS[name](registry)
    return FormatRecords(rule, [encode(json.loads(text)) for text in texts])


def _avro(registry: StubRegistry) -> Encode:
    types = [{"name": name, "type": ["null", _AVRO_TYPES.get(kind, kind)]} for name, kind in FIELDS.items()]
    schema = {"type": "record", "name": "Reading", "fields": types}
    frame, parsed = _frame(registry.register(_SUBJECT, json.dumps(schema))), fastavro.parse_schema(schema)

    def encode(record: Record) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, {**record, "at": _time(record)})
        return frame + out.getvalue()

    return encode


def _protobuf(registry: StubRegistry) -> Encode:
    file = FileDescriptorProto(name="reading.proto", package="bench", syntax="proto3")
    file.dependency.append(timestamp_pb2.DESCRIPTOR.name)
    message = file.message_type.add(name="Reading")
    for number, (name, kind) in enumerate(FIELDS.items(), 1):
        field = message.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
        field.type = _PROTOBUF_TYPES[kind]
        if kind == "timestamp":
            field.type_name = ".google.protobuf.Timestamp"
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    made = GetMessageClass(pool.FindMessageTypeByName("bench.Reading"))
    text = base64.b64encode(file.SerializeToString()).decode()
    frame = _frame(registry.register(_SUBJECT, text, SchemaKind.PROTOBUF)) + b"\0"  # the first message of the file

    def encode(record: Record) -> bytes:
        found = made(**{name: value for name, value in record.items() if name != "at"})
        found.at.seconds = int(_time(record).timestamp())
        return frame + bytes(found.SerializeToString())

    return encode


def _json_schema(registry: StubRegistry) -> Encode:
    properties = {name: _JSON_TYPES.get(kind, {"type": kind}) for name, kind in FIELDS.items()}
    schema = json.dumps({"type": "object", "properties": properties})
    frame = _frame(registry.register(_SUBJECT, schema, SchemaKind.JSON))
    return lambda record: frame + json.dumps(record).encode()


def _frame(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big")


def _time(record: Record) -> datetime:
    return datetime.fromisoformat(record["at"])


_ENCODERS: Mapping[str, Callable[[StubRegistry], Encode]] = {
    "avro": _avro,
    "protobuf": _protobuf,
    "json_schema": _json_schema,
}
