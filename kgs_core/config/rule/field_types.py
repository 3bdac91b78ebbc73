"""Types of columns in text: `long`, `decimal(10,2)`, `array<string>`, `map<string,long>`, `struct<a:int,b:date>`.

The words and the grammar are those of Spark's and Delta's DDL. A type has one canonical text (`bigint` is `long`),
which is what settings hold; `parse_type` makes a tree of any text, and `str` of a tree is the canonical text.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

FIELD_TYPES = (
    "string",
    "boolean",
    "byte",
    "short",
    "int",
    "long",
    "float",
    "double",
    "decimal(p,s)",
    "date",
    "timestamp",
    "binary",
    "array<T>",
    "map<K,V>",
    "struct<a:T,b:T>",
)
"""All that a type can be, as one writes it."""

_SYNONYMS = {"tinyint": "byte", "smallint": "short", "integer": "int", "bigint": "long", "real": "float"}
_SCALARS = frozenset(name for name in FIELD_TYPES if name.isalpha())
_DECIMAL = ("decimal", "dec", "numeric")
_NESTED = ("array", "map", "struct")
_ELSEWHERE = {
    "timestamp_ntz": "a time without a zone raises the table's protocol; write timestamp, which is UTC",
    "timestamp_ltz": "write timestamp",
    "varchar": "write string",
    "char": "write string",
    "text": "write string",
    "bool": "write boolean",
    "bytes": "write binary",
    "number": "write long, double or decimal(p,s)",
    "datetime": "write timestamp",
    "list": "write array<...>",
    "object": "write struct<a:...>, or map<string,...>",
    "variant": "it raises the table's protocol; write string",
}
MAX_PRECISION = 38
MAX_DEPTH = 32
_DEFAULT_DECIMAL = (10, 0)
_TOKEN = re.compile(r"\s*(?:(?P<word>\w+)|(?P<quoted>`(?:[^`]|``)+`)|(?P<sign>[<>(),:])|(?P<odd>\S))")
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class ScalarType:
    """Type of one value, by its canonical word."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DecimalType:
    """Type of a decimal number: `precision` digits, `scale` of them behind the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Type of a list."""

    item: "FieldType"

    def __str__(self) -> str:
        return f"array<{self.item}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """Type of a mapping."""

    key: "FieldType"
    value: "FieldType"

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


@dataclass(frozen=True, slots=True)
class StructType:
    """Type of a record of named fields, in order."""

    fields: "tuple[tuple[str, FieldType], ...]"

    def __str__(self) -> str:
        return f"struct<{','.join(f'{_quoted(name)}:{kind}' for name, kind in self.fields)}>"


FieldType = ScalarType | DecimalType | ArrayType | MapType | StructType


@lru_cache(maxsize=4096)
def parse_type(text: str) -> FieldType:
    """The type that a text names. Raises `ValueError` if none: where, what is wrong, and what to write."""
    reader = _TypeReader(text)
    found = reader.type_()
    reader.end()
    return found


def canonical_type(given: object, depth: int = 0) -> str:
    """Canonical text of a type in text, or of a struct as field -> type. Raises `ValueError` with the nested field."""
    if isinstance(given, str):
        return str(parse_type(given))
    if not isinstance(given, Mapping):
        raise ValueError("give a type in text, as long or array<string>, or a mapping of field: type")  # noqa: TRY004
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    fields = []
    for name, kind in given.items():
        if not isinstance(name, str):
            raise ValueError(f"{name}: keys are text: put it in quotes")  # noqa: TRY004
        try:
            fields.append((name, parse_type(canonical_type(kind, depth + 1))))
        except ValueError as e:
            raise ValueError(f"field {name}: {e}") from e
    return str(parse_type(str(_struct(fields))))


def problem_of_names(names: Iterable[str]) -> str:
    """What is wrong with these names of columns, or of a struct's fields, beside each other; empty: nothing."""
    seen: set[str] = set()
    folded: set[str] = set()
    for name in names:
        if not name:
            return "a field needs a name"
        if name in seen:
            return f"two fields are named {name}"
        if name.lower() in folded:
            return "two fields differ only in case, which many readers of Delta cannot tell apart"
        seen.add(name)
        folded.add(name.lower())
    return ""


def has_other_map_keys(kind: FieldType) -> bool:
    """Whether there is a map in it whose keys are no texts."""
    if isinstance(kind, MapType):
        return kind.key != ScalarType("string") or has_other_map_keys(kind.value)
    if isinstance(kind, StructType):
        return any(has_other_map_keys(each) for _, each in kind.fields)
    return isinstance(kind, ArrayType) and has_other_map_keys(kind.item)


def _struct(fields: list[tuple[str, FieldType]]) -> StructType:
    if not fields:
        raise ValueError("a struct needs a field, as struct<a:string>; for fields of any name: map<string,string>")
    if problem := problem_of_names(name for name, _ in fields):
        raise ValueError(problem)
    return StructType(tuple(fields))


class _TypeReader:
    """Reader of one text, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_TOKEN.finditer(text))
        self._at = 0

    def type_(self, depth: int = 0) -> FieldType:
        if depth > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
        word = (self._take("word", "a type") if self._peek() else "").lower()
        name = _SYNONYMS.get(word, word)
        if name in _SCALARS:
            return ScalarType(name)
        if name in _DECIMAL:
            return self._decimal()
        if name not in _NESTED:
            self._unknown(name)
        self._sign("<")
        found = self._nested(name, depth + 1)
        self._sign(">")
        return found

    def end(self) -> None:
        if self._peek():
            self._fail("the end of the type")

    def _nested(self, name: str, depth: int) -> FieldType:
        if name == "array":
            return ArrayType(self.type_(depth))
        if name == "map":
            key = self.type_(depth)
            if not isinstance(key, ScalarType | DecimalType):
                raise ValueError(f"{key} cannot be the key of a map: write map<string,...>")
            self._sign(",")
            return MapType(key, self.type_(depth))
        fields: list[tuple[str, FieldType]] = []
        while self._peek() != ">" or fields:
            field_name = self._name()
            if self._peek() == ":":
                self._sign(":")
            fields.append((field_name, self.type_(depth)))
            if self._peek() != ",":
                break
            self._sign(",")
        return _struct(fields)

    def _name(self) -> str:
        if self._peek().startswith("`"):
            return self._take("quoted", "a name")[1:-1].replace("``", "`")
        return self._take("word", "a field's name, as in struct<a:int>; odd ones in `backquotes`")

    def _decimal(self) -> DecimalType:
        if self._peek() != "(":
            return DecimalType(*_DEFAULT_DECIMAL)
        self._sign("(")
        precision, scale = self._number(), 0
        if self._peek() == ",":
            self._sign(",")
            scale = self._number()
        self._sign(")")
        if not (1 <= precision <= MAX_PRECISION and scale <= precision):
            raise ValueError(
                f"decimal({precision},{scale}): give decimal(digits, digits behind the point), at most "
                f"{MAX_PRECISION} digits"
            )
        return DecimalType(precision, scale)

    def _number(self) -> int:
        if not re.fullmatch(r"[0-9]{1,4}", self._peek()):
            self._fail("a number of digits, as in decimal(10,2)")
        return int(self._take("word", "a number"))

    def _peek(self) -> str:
        return self._tokens[self._at].group().strip() if self._at < len(self._tokens) else ""

    def _sign(self, sign: str) -> None:
        if self._peek() != sign:
            self._fail(f"'{sign}'")
        self._at += 1

    def _take(self, kind: str, wanted: str) -> str:
        found = self._tokens[self._at].group(kind) if self._at < len(self._tokens) else None
        if found is None:
            self._fail(wanted)
        self._at += 1
        return found

    def _fail(self, wanted: str) -> NoReturn:
        if self._at < len(self._tokens):
            start = self._tokens[self._at].end() - len(self._peek())
            raise ValueError(f"wanted {wanted} at character {start + 1}, not '{self._peek()}'")
        hint = " (within {} YAML ends a text at a comma: put the type in quotes)" if self._is_cut() else ""
        raise ValueError(f"wanted {wanted} at its end{hint}")

    def _is_cut(self) -> bool:
        """Whether it may be the part before a comma of a type that has commas."""
        return self._text.count("<") + self._text.count("(") > self._text.count(">") + self._text.count(")")

    def _unknown(self, name: str) -> NoReturn:
        if name in _ELSEWHERE:
            raise ValueError(f"'{name}' is not a type of a column: {_ELSEWHERE[name]}")
        close = difflib.get_close_matches(name, [*_SCALARS, *_SYNONYMS, "decimal", *_NESTED], n=1)
        hint = f" (did you mean '{close[0]}'?)" if close else ""
        raise ValueError(f"'{name}' is not a type{hint}; give one of {' '.join(FIELD_TYPES)}")


def _quoted(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"
