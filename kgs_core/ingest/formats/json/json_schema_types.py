"""JSON Schema to columns: draft 7 and 2020-12, as far as they say of what type a value is."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urljoin

import pyarrow as pa

from kgs_core.errors import one_line
from kgs_core.ingest.formats.parsed import UnusableSchemaError
from kgs_core.lake.files.row_schema import TIMESTAMP
from kgs_core.ports.registry import RegisteredSchema

MAX_FIELDS = 5000
"""As for Protobuf: types that are looked at, nested ones wherever they stand."""

_MAX_DEPTH = 32
_MAX_PRECISION = 38
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_CONNECT = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "bytes": pa.binary(),
}
"""`connect.type` -> type, where that of JSON leaves it open."""

_ALLOWED = {
    "integer": frozenset(("int8", "int16", "int32", "int64")),
    "number": frozenset(("float32", "float64")),
    "string": frozenset(("bytes",)),
}
_FORMATS = {"date": pa.date32(), "date-time": TIMESTAMP}
_PLAIN = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
_SAYS_A_TYPE = {"$ref", "type", "properties", "items", "allOf", "oneOf", "anyOf", "enum", "const"}
_PYTHON = {str: "string", bool: "boolean", int: "integer", float: "number"}
Node = Mapping[str, Any]
Fields = dict[str, pa.DataType]


def columns_of_schema(schema: RegisteredSchema) -> pa.Schema:
    """The columns that values of a schema become, all nullable.

    Raises:
        UnusableSchemaError: it is no JSON Schema of an object, or has a field that cannot become a column.
    """
    fields, unfit = fields_of_schema(schema)
    if unfit:
        raise unfit[0]
    return fields


def fields_of_schema(schema: RegisteredSchema) -> tuple[pa.Schema, Sequence[UnusableSchemaError]]:
    """The columns that fields of a schema become, all nullable, and why others cannot.

    Raises:
        UnusableSchemaError: it is no JSON Schema of an object.
    """
    try:
        documents = _Documents(schema)
        types = _Types(documents)
        found = types.type_of(documents.root, documents.root, "")
    except UnusableSchemaError:
        raise
    except RecursionError:
        raise UnusableSchemaError("is nested too deep") from None
    except Exception as e:  # of a list where an object should be, and so on: nobody but its writer has checked it
        raise UnusableSchemaError(f"is not a JSON Schema: {type(e).__name__}: {one_line(e)}") from e
    if found is None or not pa.types.is_struct(found):
        raise UnusableSchemaError("is not one of an object with properties")
    return pa.schema([found.field(n) for n in range(found.num_fields)]), types.unfit


class _Documents:
    """A schema and those that it refers to, by the names that it has for them."""

    def __init__(self, schema: RegisteredSchema) -> None:
        self._by_name: dict[str, Any] = {}
        self.root = self._take("", schema)

    def _take(self, name: str, schema: RegisteredSchema) -> Any:
        try:
            document = json.loads(schema.text)
        except (ValueError, RecursionError) as e:
            raise UnusableSchemaError(f"{f'refers to {name}, which' if name else ''} is not JSON: {e}".strip()) from e
        self._by_name[name] = document
        for inner, each in schema.references:
            if inner not in self._by_name:
                self._take(inner, each)
        for part in _objects(document):
            if isinstance(part.get("$id"), str):
                self._by_name.setdefault(part["$id"], part)
        return document

    def find(self, reference: str, document: Any) -> tuple[Any, Any]:
        """What a `$ref` in a document means, and the document that this is in."""
        name, _, pointer = reference.partition("#")
        if name:
            own = document.get("$id", "") if isinstance(document, dict) else ""
            known = next((each for each in (name, urljoin(own, name)) if each in self._by_name), None)
            if known is None:
                raise UnusableSchemaError(f"refers to {reference}, which its references lack")
            document = self._by_name[known]
        if not pointer:
            return document, document
        if not pointer.startswith("/"):
            return self._anchor(reference, pointer, document), document
        found = document
        for step in unquote(pointer)[1:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, dict) and key in found:
                found = found[key]
            else:
                raise UnusableSchemaError(f"refers to {reference}, which is not there")
        return found, document

    @staticmethod
    def _anchor(reference: str, name: str, document: Any) -> Any:
        for each in _objects(document):
            if name in (each.get("$anchor"), str(each.get("$id", "")).removeprefix("#")):
                return each
        raise UnusableSchemaError(f"refers to {reference}, which is not there")


class _Types:
    """Types of nodes. Where a field cannot be a column, the words name it.

    `unfit`: fields of the outermost object that cannot be columns, and why.
    """

    def __init__(self, documents: _Documents) -> None:
        self.unfit: list[UnusableSchemaError] = []
        self._documents = documents
        self._followed = [id(documents.root)]
        self._seen = 0

    def type_of(self, node: Any, document: Any, where: str) -> pa.DataType | None:
        """The type of a node's values; None where only null is one."""
        self._seen += 1
        if self._seen > MAX_FIELDS:
            raise UnusableSchemaError(f"has more than {MAX_FIELDS} types, nested ones counted wherever they stand")
        if not isinstance(node, dict):
            raise _unfit(where, "may be anything")
        if "$ref" in node:
            return self._referred(node, document, where)
        if "allOf" in node:
            return self._all_of(node, document, where)
        for choice in ("oneOf", "anyOf"):
            if choice in node and not node.keys() & {"type", "properties"}:  # else it demands more of the one type
                return self._one([self.type_of(each, document, where) for each in node[choice]], where)
        kinds = _kinds(node)
        found = [self._plain(kind, node, document, where) for kind in kinds if kind != "null"]
        return self._one(found, where) if kinds else self._untyped(node, document, where)

    def _referred(self, node: Node, document: Any, where: str) -> pa.DataType | None:
        reference = str(node["$ref"])
        inner, of = self._documents.find(reference, document)
        if id(inner) in self._followed or len(self._followed) > _MAX_DEPTH:
            raise _unfit(where, f"contains itself ({reference})")
        self._followed.append(id(inner))
        try:
            return self.type_of(inner, of, where)
        finally:
            self._followed.pop()

    def _all_of(self, node: Node, document: Any, where: str) -> pa.DataType | None:
        own = {key: value for key, value in node.items() if key != "allOf"}
        parts = [part for part in node["allOf"] if isinstance(part, dict)]
        parts += [own] if own.keys() & {"$ref", "type", "properties", "oneOf", "anyOf"} else []
        found = [self.type_of(part, document, where) for part in parts if part.keys() & _SAYS_A_TYPE]
        if not found or not all(each is not None and pa.types.is_struct(each) for each in found):
            return self._one(found, where)
        fields: Fields = {}
        for each in (each for kind in found if kind is not None for each in kind):
            if fields.setdefault(each.name, each.type) != each.type:
                raise _unfit(f"{where}.{each.name}".strip("."), "has two types (allOf)")
        return pa.struct(list(fields.items()))

    @staticmethod
    def _one(found: Sequence[pa.DataType | None], where: str) -> pa.DataType | None:
        kinds = {each for each in found if each is not None}
        if kinds == {pa.int64(), pa.float64()}:
            return pa.float64()
        if len(kinds) > 1:
            raise _unfit(where, "has several types")
        return next(iter(kinds), None)

    def _untyped(self, node: Node, document: Any, where: str) -> pa.DataType | None:
        if "properties" in node:
            return self._plain("object", node, document, where)
        if "items" in node:
            return self._plain("array", node, document, where)
        raise _unfit(where, "may be of any type")

    def _plain(self, kind: str, node: Node, document: Any, where: str) -> pa.DataType:
        if kind == "object":
            return self._object(node, document, where)
        if kind == "array":
            items = node.get("items")
            inner = self.type_of(items, document, f"{where}[]") if isinstance(items, dict) else None
            if inner is None:
                raise _unfit(where, "is an array of anything")
            return pa.list_(inner)
        if kind not in _PLAIN:
            raise _unfit(where, f"is of type {kind}, which JSON Schema does not have")
        hint = str(node.get("connect.type"))
        if node.get("title") == _DECIMAL:
            return _decimal(node, kind)
        if hint in _ALLOWED.get(kind, ()):
            return _CONNECT[hint]
        return _FORMATS.get(str(node.get("format")), pa.string()) if kind == "string" else _PLAIN[kind]

    def _object(self, node: Node, document: Any, where: str) -> pa.DataType:
        properties = node.get("properties")
        if isinstance(properties, dict) and properties:
            return self._struct(properties, document, where)
        others = [node["additionalProperties"]] if isinstance(node.get("additionalProperties"), dict) else []
        others += [each for each in (node.get("patternProperties") or {}).values() if isinstance(each, dict)]
        found = {self.type_of(each, document, f"{where}{{}}") for each in others}
        if len(found) != 1 or None in found:
            raise _unfit(where, "is an object of any fields")
        return pa.map_(pa.string(), found.pop())

    def _struct(self, properties: Node, document: Any, where: str) -> pa.DataType:
        fields: Fields = {}
        for name, each in properties.items():
            inner = f"{where}.{name}" if where else name
            try:
                kind = self.type_of(each, document, inner)
                if kind is None:
                    raise _unfit(inner, "is always null")
            except UnusableSchemaError as e:
                if where:
                    raise
                self.unfit.append(e)
            else:
                fields[name] = kind
        return pa.struct(list(fields.items()))


def _kinds(node: Node) -> list[str]:
    given = node.get("type")
    if given is None and ("enum" in node or "const" in node):
        values = node.get("enum", [node.get("const")])
        return sorted({_PYTHON[type(each)] for each in values if type(each) in _PYTHON})
    return [str(each) for each in given] if isinstance(given, list) else [] if given is None else [str(given)]


def _decimal(node: Node, kind: str) -> pa.DataType:
    scale = str((node.get("connect.parameters") or {}).get("scale", ""))
    if scale.isdecimal() and int(scale) <= _MAX_PRECISION and kind in ("number", "string"):
        return pa.binary() if kind == "string" else pa.decimal128(_MAX_PRECISION, int(scale))
    return _PLAIN[kind]


def _objects(document: Any) -> Iterator[dict[str, Any]]:
    waiting = [document]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def _unfit(where: str, words: str) -> UnusableSchemaError:
    return UnusableSchemaError(f"field {where} {words}" if where else words)
