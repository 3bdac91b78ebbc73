"""Protobuf schemas of a registry: their message types, and the shapes that fields take as columns."""

import base64
import binascii
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from kgs_core.ingest.formats.parsed import UnusableSchemaError
from kgs_core.lake.files.row_schema import TIMESTAMP
from kgs_core.ports.registry import RegisteredSchema

MAX_FIELDS = 5000
"""Fields, nested ones counted wherever they stand, that a message may have: far above what a table is good for."""

_ROOT = "kgs-root.proto"
_KNOWN = {
    "google/protobuf/": "google.protobuf.",
    "google/type/": "google.type.",
    "confluent/": "confluent_kafka.schema_registry.confluent.",
}
"""Folder of files that every compiler brings -> package with their descriptors."""

_NUMBERS = {
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_UINT32: pa.int64(),
    FieldDescriptor.TYPE_FIXED32: pa.int64(),
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
}
_WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_JSON = frozenset(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))
_MANY, _ONE = FieldDescriptorProto.LABEL_REPEATED, FieldDescriptorProto.LABEL_OPTIONAL


class ShapeKind(Enum):
    """What is to be done with the bytes of a field to make a column."""

    PLAIN = "as it is"
    STRING = "text"
    UINT64 = "number that may be too big"
    ENUM = "name of a number"
    TIMESTAMP = "google.protobuf.Timestamp"
    DURATION = "google.protobuf.Duration"
    JSON = "google.protobuf.Struct and the like"
    WRAPPER = "google.protobuf.Int64Value and the like"
    MESSAGE = "message"
    LIST = "repeated"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class Shape:
    """How a field becomes a column.

    Attributes:
        type: of the column.
        parts: name -> shape of what it consists of, in the order of the schema.
        names: number -> name, of an enum.
        message: the message type whose bytes are to become JSON.
        made_as: name of the field in the builder's file. The decoder's columns bear it; they are in the order of the
            fields' numbers, in which a schema need not have them.
    """

    kind: ShapeKind
    type: pa.DataType
    parts: Sequence[tuple[str, "Shape"]] = ()
    names: Mapping[int, str] = field(default_factory=dict)
    message: Descriptor | None = None
    made_as: str = ""


def message_type(schema: RegisteredSchema, indexes: Sequence[int]) -> Descriptor:
    """The message type that these indexes name: that at the first of them, in it that at the second, and so on.

    Raises:
        UnusableSchemaError: the schema, or one it refers to, cannot be read, or it has no such message type.
    """
    file = _file_of(schema)
    name = ""
    found: FileDescriptorProto | DescriptorProto = file
    for index in indexes:
        inner = found.message_type if isinstance(found, FileDescriptorProto) else found.nested_type
        if not 0 <= index < len(inner):
            raise UnusableSchemaError(f"has no message type at {list(indexes)}")
        found = inner[index]
        name = f"{name}.{found.name}" if name else found.name
    full = f"{file.package}.{name}" if file.package else name
    try:
        return _pool_of(schema).FindMessageTypeByName(full)
    except (KeyError, TypeError) as e:
        raise UnusableSchemaError(f"message type {full} cannot be built: {e}") from e


def _file_of(schema: RegisteredSchema) -> FileDescriptorProto:
    try:
        return FileDescriptorProto.FromString(base64.b64decode(schema.text, validate=True))
    except (binascii.Error, DecodeError, ValueError) as e:
        raise UnusableSchemaError(f"is no descriptor in base64: {e}") from e


@lru_cache(maxsize=256)
def _pool_of(schema: RegisteredSchema) -> DescriptorPool:
    """All that a schema needs, in a pool of its own: the names of two versions are the same."""
    files: dict[str, FileDescriptorProto] = {}
    to_read = [(_ROOT, schema)]
    while to_read:
        name, each = to_read.pop()
        if name not in files:
            files[name] = _file_of(each)
            files[name].name = name
            to_read += each.references
    pool = DescriptorPool()
    added: set[str] = set()
    try:
        _add(pool, files, _ROOT, added)
    except (TypeError, KeyError, ValueError) as e:  # the pool's words for whatever does not fit together
        raise UnusableSchemaError(f"cannot be built: {' '.join(str(e).split())}") from e
    return pool


def _add(pool: DescriptorPool, files: Mapping[str, FileDescriptorProto], name: str, added: set[str]) -> None:
    if name in added:
        return
    added.add(name)
    file = files.get(name) or _known_file(name)
    for needed in file.dependency:
        _add(pool, files, needed, added)
    pool.AddSerializedFile(file.SerializeToString())


def _known_file(name: str) -> FileDescriptorProto:
    for folder, package in _KNOWN.items():
        if name.startswith(folder) and name.endswith(".proto"):
            module = name.removeprefix(folder).removesuffix(".proto").replace("/", ".")
            try:
                found = importlib.import_module(f"{package}{module}_pb2")
            except ImportError:
                break
            return FileDescriptorProto.FromString(found.DESCRIPTOR.serialized_pb)
    raise UnusableSchemaError(f"imports {name}, which its references lack: register it with a reference of this name")


class ShapeBuilder:
    """Builder of shapes, and of a file of message types of the same bytes that holds nothing but what columns need.

    In that file every text is bytes, every enum a number, every map a list of entries and every well-known type a
    plain message: what these mean is decided here and in `protobuf_columns` alone.

    `file`: the file. Fields have the names `f1`, `f2`, ... by their numbers.
    """

    def __init__(self) -> None:
        self.file = FileDescriptorProto(name="columns.proto", package="kgs", syntax="proto3")
        self._inside: list[str] = []
        self._fields = 0

    def message(self, of: Descriptor, fields: Sequence[FieldDescriptor]) -> tuple[str, Sequence[tuple[str, Shape]]]:
        """Name of a message type in the file with these of the fields of `of`, and their shapes.

        Fields without a shape (messages without fields) are left out.

        Raises:
            UnusableSchemaError: a message contains itself, or holds a group, or too many fields.
        """
        if of.full_name in self._inside:
            path = " > ".join([*self._inside, of.full_name])
            raise UnusableSchemaError(f"message type {of.full_name} contains itself ({path}), which no column can")
        made = self.file.message_type.add(name=f"M{len(self.file.message_type)}")
        self._inside.append(of.full_name)
        try:
            shapes = [(each.name, shape) for each in fields if (shape := self._field(made, each)) is not None]
        finally:
            self._inside.pop()
        return made.name, shapes

    def _field(self, into: DescriptorProto, given: FieldDescriptor) -> Shape | None:
        self._fields += 1
        if self._fields > MAX_FIELDS:
            raise UnusableSchemaError(f"has more than {MAX_FIELDS} fields, nested ones counted wherever they stand")
        if given.type == FieldDescriptor.TYPE_GROUP:
            raise UnusableSchemaError(f"field {given.full_name} is a group, which kgs does not read")
        made = FieldDescriptorProto(name=f"f{given.number}", number=given.number, label=_ONE)
        shape = self._message_shape(made, given) if given.message_type else self._scalar_shape(made, given)
        if shape is None:
            return None
        if given.is_repeated:
            made.label = _MANY
            shape = Shape(ShapeKind.LIST, pa.list_(shape.type), [("", shape)]) if shape.kind != ShapeKind.MAP else shape
        elif given.has_presence and made.type != FieldDescriptorProto.TYPE_MESSAGE:
            made.proto3_optional = True
            made.oneof_index = len(into.oneof_decl)
            into.oneof_decl.add(name=f"_{made.name}")
        into.field.append(made)
        return replace(shape, made_as=made.name)

    @staticmethod
    def _scalar_shape(made: FieldDescriptorProto, given: FieldDescriptor) -> Shape:
        if given.type == FieldDescriptor.TYPE_ENUM:
            made.type = FieldDescriptorProto.TYPE_INT32
            names: dict[int, str] = {}
            for value in given.enum_type.values:
                names.setdefault(value.number, value.name)  # the first name of a number, as for other readers
            return Shape(ShapeKind.ENUM, pa.string(), names=names)
        if given.type == FieldDescriptor.TYPE_STRING:
            made.type = FieldDescriptorProto.TYPE_BYTES
            return Shape(ShapeKind.STRING, pa.string())
        made.type = FieldDescriptorProto.Type.ValueType(given.type)
        if given.type in (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64):
            return Shape(ShapeKind.UINT64, pa.int64())
        return Shape(ShapeKind.PLAIN, _NUMBERS[given.type])

    def _message_shape(self, made: FieldDescriptorProto, given: FieldDescriptor) -> Shape | None:
        inner = given.message_type
        if inner.full_name in _JSON:
            made.type = FieldDescriptorProto.TYPE_BYTES
            return Shape(ShapeKind.JSON, pa.string(), message=inner)
        name, parts = self.message(inner, inner.fields)
        made.type, made.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".kgs.{name}"
        if inner.GetOptions().map_entry:
            shapes = dict(parts)
            if "value" not in shapes:
                return None
            kind = pa.map_(shapes["key"].type, shapes["value"].type)
            return Shape(ShapeKind.MAP, kind, parts)
        if not parts:
            return None
        return _of_message(inner, parts)


def _of_message(inner: Descriptor, parts: Sequence[tuple[str, Shape]]) -> Shape:
    if inner.full_name == "google.protobuf.Timestamp":
        return Shape(ShapeKind.TIMESTAMP, TIMESTAMP)
    if inner.full_name == "google.protobuf.Duration":
        return Shape(ShapeKind.DURATION, pa.int64())
    if inner.full_name in _WRAPPERS:
        return Shape(ShapeKind.WRAPPER, parts[0][1].type, parts)
    return Shape(ShapeKind.MESSAGE, pa.struct([pa.field(name, shape.type) for name, shape in parts]), parts)
