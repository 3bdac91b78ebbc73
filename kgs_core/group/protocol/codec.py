"""A message as the record that carries it, and back.

A record's key says whom it is about, so that compaction keeps the newest of each; its value is one JSON object. Fields
that a later minor change adds are passed over; what changes the meaning of others raises the version, and a version
that is not known here is refused. Numbers are finite, quantities named with their unit, partitions grouped by topic.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from kgs_core.errors import ProtocolError
from kgs_core.group.protocol.fields import MAX_TEXT
from kgs_core.group.protocol.messages import (
    ALWAYS,
    DesiredState,
    DesiredVersion,
    Heartbeat,
    MemberAssignment,
    Message,
    Report,
    Sign,
    Starting,
    Target,
    Tombstone,
)
from kgs_core.group.protocol.parts import Incarnation, Member
from kgs_core.model import ConsumerId, TopicPartition

VERSION = 1
MAX_BYTES = 8_000_000
"""Of one record, uncompressed; what is larger is neither written nor read (docs/adr/0030)."""
USUAL_PARTITIONS = 150_000
"""Partitions of a Target that fits, where names of topics are not long and topics have several partitions; how many fit
for certain depends on both: docs/scale.md has them by a command."""

_REASONS_LENGTH = 1_000_000
"""Of all reasons in one report, characters: a consumer whose report cannot be sent ends itself."""
_KEY = re.compile(rb"([1-9]\d{0,8})/([0-9A-Za-z_-]{1,64})")
_TARGET_KEY, _STATE_KEY, _WANTED_KEY = b"target", b"state", b"wanted"
_FORMER_KEYS = (b"plan", b"approval")
_KINDS: dict[str, type[Message]] = {
    "target": Target,
    "assignment": MemberAssignment,
    "heartbeat": Heartbeat,
    "report": Report,
    "starting": Starting,
    "wish": DesiredState,  # the name in the records, which stays as it is
    "wanted": DesiredVersion,
}
_TYPES = {kind: name for name, kind in _KINDS.items()}
_FORMS: dict[type[Message], TypeAdapter[Any]] = {kind: TypeAdapter(kind) for kind in _TYPES}
_PART = (2, "part")
_INLINE = ("member", "terms")  # fields whose own fields stand in the record itself
_SIGN = [field.name for field in fields(Sign) if field.name != "member"]


@dataclass(frozen=True)
class _Head:
    """Head of a record, looked at first, so that an unknown version is called by that name."""

    version: Annotated[int, Field(strict=True)]
    type: Annotated[str, Field(strict=True)]


_HEAD = TypeAdapter(_Head)


def encode(message: Message) -> tuple[bytes, bytes | None]:
    """Key and value of the record. A tombstone's value is None. Texts for people are cut to `MAX_TEXT`.

    Raises:
        ProtocolError: the message cannot be sent: a value out of its limits, or too large for a record.
    """
    key = _key_of(message)
    if isinstance(message, Tombstone):
        return key, None
    try:
        record = _record_of(_shortened(message) if isinstance(message, Report) else message)
        _message_of(type(message), record)  # what would not be read is not written
        value = to_json(record)
    except (PydanticSerializationError, ValueError) as e:  # a ValidationError is a ValueError
        raise ProtocolError(f"{_name(message)}: cannot be written: {_one_line(e)}") from e
    if len(value) > MAX_BYTES:
        raise ProtocolError(
            f"{_name(message)} of {len(value):,} bytes: a record holds {MAX_BYTES:,}, which is some "
            f"{USUAL_PARTITIONS:,} partitions of a group: read fewer topics, or make two groups of this one"
        )
    return key, value


def is_former(key: bytes | None) -> bool:
    """Whether it is a key of records that kgs 0.1 wrote and nobody reads any more; compacted topics keep them."""
    return key is not None and key.partition(b"#")[0] in _FORMER_KEYS


def decode(key: bytes | None, value: bytes | None) -> Message:
    """The message that a record carries; a ProtocolError where it is none, or key and value do not fit."""
    if key is None:
        raise ProtocolError("record without a key: not written by kgs")
    if value is None:
        return Tombstone(_member_of(key))
    if len(value) > MAX_BYTES:
        raise ProtocolError(f"record of {len(value)} bytes: more than {MAX_BYTES}")
    try:
        record = from_json(value)
        message = _message_of(_kind_of(record), record)
    except ValueError as e:
        raise ProtocolError(f"record is not a message: {_one_line(e)}") from e
    if _key_of(message) != key:
        raise ProtocolError(f"record's key {key[:100]!r} does not fit its {_name(message)}")
    return message


def _kind_of(record: Any) -> type[Message]:
    if not isinstance(record, dict):
        raise ValueError("no JSON object")  # noqa: TRY004 - as what pydantic finds wrong
    head = _HEAD.validate_python(record)
    if (head.version, head.type) == _PART:
        raise ProtocolError(
            f"part of a message above {MAX_BYTES:,} bytes, written by kgs 0.1: not read by this version: read fewer "
            "topics, or make two groups of this one"
        )
    if head.version != VERSION:
        raise ProtocolError(f"record of version {head.version}: only {VERSION} is known here: use a newer kgs")
    if head.type not in _KINDS:
        raise ValueError(f"type {head.type[:100]!r} is not known here")
    return _KINDS[head.type]


def _key_of(message: Message) -> bytes:
    match message:
        case Target():
            return _TARGET_KEY
        case DesiredState():
            return _STATE_KEY
        case DesiredVersion():
            return _WANTED_KEY
        case _:
            return f"{message.member.consumer}/{message.member.incarnation}".encode()


def _member_of(key: bytes) -> Member:
    match = _KEY.fullmatch(key)
    if match is None:
        raise ProtocolError(f"tombstone of {key[:100]!r}: only an Assignment can be removed")
    return Member(ConsumerId(int(match[1])), Incarnation(match[2].decode()))


def _record_of(message: Message) -> dict[str, Any]:
    """JSON object of a message: a member and terms stand in it field by field, in the order of the first release."""
    found = _FORMS[type(message)].dump_python(message, mode="json", by_alias=True, warnings=False)
    member, terms = (found.pop(name, {}) for name in _INLINE)
    sign = {name: found.pop(name) for name in _SIGN if name in found}
    return {**member, "version": VERSION, **sign, "type": _TYPES[type(message)], **found, **terms}


def _name_in_record(kind: type[Message], name: str) -> str:
    for each in getattr(get_type_hints(kind, include_extras=True)[name], "__metadata__", ()):
        if getattr(each, "alias", None):
            return str(each.alias)
    return name


def _message_of(kind: type[Message], record: dict[str, Any]) -> Message:
    """Message that a JSON object says; a member and terms find their fields in the whole of it."""
    for field in fields(kind):
        if field.metadata == ALWAYS and (name := _name_in_record(kind, field.name)) not in record:
            raise ValueError(f"{name}: Field required")
    message: Message = _FORMS[kind].validate_python({**record, **dict.fromkeys(_INLINE, record)})
    return message


def _shortened(report: Report) -> Report:
    length = _REASONS_LENGTH // max(1, len(report.stopped) + len(report.unready))
    if length >= MAX_TEXT:
        return report
    return replace(report, stopped=_cut(report.stopped, length), unready=_cut(report.unready, length))


def _cut(reasons: Mapping[TopicPartition, str], length: int) -> dict[TopicPartition, str]:
    return {tp: reason[:length] for tp, reason in reasons.items()}


def _name(message: Message) -> str:
    return type(message).__name__


def _one_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = [part for n, part in enumerate(first["loc"]) if n or part not in _INLINE]
        return f"{'.'.join(str(part) for part in place)[:200]}: {first['msg']}"
    return " ".join(str(error).split())[:300]
