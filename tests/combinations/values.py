"""Bytes of records, and what is to become of each by the words of the documents alone: row, dead letter, or either.

`what` of a record is one of `WHATS`. Where a format has no such thing it is the nearest: an Avro value that is
"wrong" is broken.
"""

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.combinations.case import NEW, OLD, PARTITION_OF, REGISTRY_FORMATS, Record, Rule

SECRET = "a secret of sixteen characters"
"""`lake.mask_secret`."""
NOON_MS = 1_769_860_800_000
LONG_NUMBER = "1e9999999999999999999"
AVRO = {
    OLD: '{"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}, '
    '{"name": "s", "type": ["null", "string"]}]}',
    NEW: '{"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}, '
    '{"name": "s", "type": ["null", "string"]}, {"name": "c", "type": ["null", '
    '{"type": "record", "name": "q", "fields": [{"name": "a", "type": "long"}]}]}]}',
}
_ADDED = (
    'field { name: "c" number: 3 type: TYPE_MESSAGE type_name: ".p.R.Q" label: LABEL_OPTIONAL } '
    'nested_type { name: "Q" field { name: "a" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL } }'
)
PROTOBUF = {
    number: 'message_type { name: "R" oneof_decl { name: "_s" } '
    'field { name: "n" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL } '
    'field { name: "s" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 proto3_optional: true } '
    f"{more} }}"
    for number, more in ((OLD, ""), (NEW, _ADDED))
}
_PLAIN = {"n": {"type": "integer"}, "s": {"type": ["null", "string"]}}
JSON_SCHEMA = {
    OLD: json.dumps({"type": "object", "properties": _PLAIN}),
    NEW: json.dumps(
        {"type": "object", "properties": {**_PLAIN, "c": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
    ),
}
WHATS = (
    *("good", "tombstone", "broken", "later", "wrong", "long", "long beside", "wrong p", "wrong c"),
    *("unknown field", "empty", "bad key", "bad header", "odd tombstone"),
)


@dataclass(frozen=True)
class Message:
    """A record as it lies in Kafka.

    Attributes:
        number: of the record in the history, from 1 on.
    """

    topic: str
    topic_id: str
    partition: int
    offset: int
    number: int
    record: Record
    rule: Rule

    @property
    def timestamp(self) -> int:
        """Ms since 1970: later ones have later times."""
        return NOON_MS + self.number * 3_600_000

    @property
    def key(self) -> bytes | None:
        key, bad = self.record.key, self.record.what == "bad key"
        if self.rule.key == "json" and key is not None and bad:
            return b"{" + key.encode()
        found = None if key is None else key_of(self.rule, key)
        return b"\xff" + (found or b"") if bad else found

    @property
    def value(self) -> bytes | None:
        if self.record.what in ("tombstone", "odd tombstone"):
            return None
        return b"" if self.record.what == "empty" else _ENCODERS[self.rule.format](self)

    @property
    def has_bad_header(self) -> bool:
        """Whether a header's key is not UTF-8."""
        return self.record.what in ("bad header", "odd tombstone")

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """One, of most records."""
        return [("trace", b"h%d" % self.number)] if self.number % 3 else []

    @property
    def schema(self) -> int:
        return NEW if self.record.what == "later" else OLD


def key_of(rule: Rule, key: str) -> bytes:
    """A good key, as it is sent."""
    return json.dumps({"k": key}).encode() if rule.key == "json" else key.encode()


def partition_of(record: Record) -> int:
    return PARTITION_OF[record.key]


def added_value(kind: str, number: int) -> Any:
    """What stands in the column that a second edition adds."""
    return {"long": number, "struct<a: long>": {"a": number}, "array<long>": [number]}.get(kind, {"m": number})


# Encoders


def _fields(message: Message) -> str:
    """A JSON object."""
    record, number = message.record, message.number
    found = {"n": "text" if record.what == "wrong" else number, "s": record.s}
    if message.rule.format == "json":
        found["p"] = "abc" if record.what == "wrong p" else "@" if record.what == "long" else "1.25"
        if record.what in ("later", "wrong c"):
            found["c"] = "text" if record.what == "wrong c" else added_value(message.rule.added, number)
    elif record.what == "later":
        found["c"] = {"a": number}
    if record.what == "unknown field":
        found["x"] = [number]
    if record.what == "long beside":
        found["x"] = "@"
    return json.dumps(found).replace('"@"', LONG_NUMBER)


def _json(message: Message) -> bytes:
    return b"{" if message.record.what == "broken" else _fields(message).encode()


def _framed(message: Message, payload: bytes) -> bytes:
    return b"\0" + message.schema.to_bytes(4, "big") + payload


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _avro(message: Message) -> bytes:
    record, number = message.record, _varint(message.number << 1)
    text = b"\0" if record.s is None else b"\x02" + _varint(len(record.s) << 1) + record.s.encode()
    more = b"\x02" + number if record.what == "later" else b""
    return _framed(message, number + (b"\x04" if _is_broken(message) else text + more))


def _protobuf(message: Message) -> bytes:
    record, number = message.record, b"\x08" + _varint(message.number)
    text = b"" if record.s is None else b"\x12" + _varint(len(record.s)) + record.s.encode()
    more = b"\x1a" + _varint(len(number)) + number if record.what == "later" else b""
    return _framed(message, b"\0" + number + text + more + (b"\x12\x7f" if _is_broken(message) else b""))


_ENCODERS = {
    "raw": lambda m: b"v%d" % m.number,
    "string": lambda m: b"\xff" if _is_broken(m) else b"v%d" % m.number,
    "json": _json,
    "avro": _avro,
    "protobuf": _protobuf,
    "json_schema": lambda m: _framed(m, _json(m)),
}


def _is_broken(message: Message) -> bool:
    return message.record.what in ("broken", "wrong")


# What is to become of them

_NO_OBJECT = ("tombstone", "odd tombstone", "empty", "broken", "wrong")


def is_good(message: Message, edition: int) -> bool | None:
    """Whether a record is a row by this edition of the rule, if the registry has its schema; None: either will do."""
    what, rule = message.record.what, message.rule
    bad = {"raw": (), "string": ("broken", "wrong")}.get(rule.format, _NO_OBJECT)
    bad = tuple(each for each in bad if each != "tombstone" or not rule.changes)
    bad += ("bad key",) if rule.key != "raw" else ()
    if rule.format == "json":
        bad += ("wrong p", "long") if edition == OLD else ("wrong c",) if rule.evolve != "none" else ()
    if message.has_bad_header or what in bad:
        return False
    return None if what in ("long", "long beside") and rule.format in ("json", "json_schema") else True


def row_of(message: Message, edition: int, columns: frozenset[str]) -> dict[str, Any]:
    """The row that a good record is to be in a table of these columns."""
    record, rule = message.record, message.rule
    row: dict[str, Any] = {
        "_topic_id": message.topic_id,
        "_partition": message.partition,
        "_offset": message.offset,
        "_timestamp": message.timestamp,
        "_key": message.key,
        "_headers": [{"key": k, "value": v} for k, v in message.headers],
    }
    if rule.shared:
        row["topic"] = message.topic
    if rule.key == "string":
        row["key"] = record.key
    elif rule.key == "json":
        row["key_k"] = record.key
    is_empty = message.value is None and rule.changes
    return masked(row | ({} if is_empty else _value_of(message, edition, columns)), rule)


def masked(row: Mapping[str, Any], rule: Rule) -> dict[str, Any]:
    """A row, or a dead letter, as the table has it."""
    return {**row, **{name: _masked(row[name], how) for name, how in rule.mask if row.get(name) is not None}}


def _masked(value: Any, how: str) -> Any:
    if how != "hash":
        return None if how == "null" else value[:1]
    digest = hmac.digest(SECRET.encode(), value if isinstance(value, bytes) else str(value).encode(), "sha256")
    if isinstance(value, int):
        return int.from_bytes(digest[:8], signed=True)
    return digest if isinstance(value, bytes) else digest.hex()


def _value_of(message: Message, edition: int, columns: frozenset[str]) -> Mapping[str, Any]:
    record, rule, value = message.record, message.rule, message.value
    if rule.format == "raw":
        return {"value": value}
    if rule.format == "string":
        return {"value": None if value is None else value.decode()}
    row: dict[str, Any] = {"n": message.number, "s": record.s}
    left = {"x": [message.number]} if record.what == "unknown field" else {}
    later = record.what == "later"
    if rule.format in REGISTRY_FORMATS:
        has_c = "c" in columns
        row |= {"c": {"a": message.number} if later else None} if has_c else {}
        left |= {"c": {"a": message.number}} if later and not has_c else {}
    else:
        row |= {"p": Decimal("1.25")} if edition == OLD else {"p": None} if "p" in columns else {}
        left |= {"p": "1.25"} if edition == NEW else {}
        if edition == NEW and rule.evolve != "none":
            row["c"] = added_value(rule.added, message.number) if later else None
        elif later or record.what == "wrong c":
            left["c"] = added_value(rule.added, message.number) if later else "text"
        if edition == NEW and record.what == "wrong p":
            left["p"] = "abc"
    if rule.rescue and rule.format in ("json", "json_schema"):
        row["_rescued"] = left or None
    return row
