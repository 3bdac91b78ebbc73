"""A message as the record that carries it, and back.

A record's key says whom it is about, so that compaction keeps the newest of each; its value is one JSON object. Fields
that a later minor change adds are passed over; what changes the meaning of others raises the version, and a version
that is not known here is refused. Numbers are finite, quantities named with their unit, partitions grouped by topic.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticSerializationError

from kgs_core.errors import ProtocolError
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.protocol.messages import (
    DesiredState,
    DesiredVersion,
    Heartbeat,
    Incarnation,
    Member,
    Message,
    Order,
    Report,
    Starting,
    Target,
    Tombstone,
)
from kgs_core.protocol.parsing import message_of
from kgs_core.protocol.wire import (
    MAX_TEXT,
    RECORD,
    VERSION,
    WireChange,
    WireDesiredState,
    WireDesiredVersion,
    WireHeartbeat,
    WireMember,
    WireOrder,
    WireProcess,
    WireReport,
    WireStarting,
    WireTarget,
)

MAX_BYTES = 8_000_000
"""Of one record, uncompressed: a Target with about 150,000 partitions."""

_REASONS_LENGTH = 1_000_000
"""Of all reasons in one report, characters: a consumer whose report cannot be sent ends itself."""
_KEY = re.compile(rb"([1-9]\d{0,8})/([0-9A-Za-z_-]{1,64})")
_TARGET_KEY, _WISH_KEY, _WANTED_KEY = b"target", b"state", b"wanted"


class _Head(BaseModel):
    """Head of a record, looked at first, so that an unknown version is called by that name."""

    model_config = ConfigDict(extra="ignore", strict=True)
    version: int


def encode(message: Message) -> tuple[bytes, bytes | None]:
    """Key and value of the record. A tombstone's value is None. Texts for people are cut to `MAX_TEXT`.

    Raises:
        ProtocolError: the message cannot be sent: a value out of its limits, or more than `MAX_BYTES`.
    """
    key = _key_of(message)
    if isinstance(message, Tombstone):
        return key, None
    try:
        value = _wire_of(message).model_dump_json().encode()
    except (ValidationError, PydanticSerializationError, ValueError) as e:
        raise ProtocolError(f"{_name(message)}: cannot be written: {_one_line(e)}") from e
    if len(value) > MAX_BYTES:
        raise ProtocolError(f"{_name(message)}: {len(value)} bytes are more than {MAX_BYTES}: use fewer partitions")
    return key, value


def decode(key: bytes | None, value: bytes | None) -> Message:
    """The message that a record carries.

    Raises:
        ProtocolError: it is none, or of a version that is not known here, or key and value do not fit.
    """
    if key is None:
        raise ProtocolError("record without a key: not written by kgs")
    if value is None:
        return Tombstone(_member_of(key))
    if len(value) > MAX_BYTES:
        raise ProtocolError(f"record of {len(value)} bytes: more than {MAX_BYTES}")
    try:
        version = _Head.model_validate_json(value).version
        if version != VERSION:
            raise ProtocolError(f"record of version {version}: only {VERSION} is known here: use a newer kgs")
        message = message_of(RECORD.validate_json(value))
    except ValidationError as e:
        raise ProtocolError(f"record is no message: {_one_line(e)}") from e
    if _key_of(message) != key:
        raise ProtocolError(f"record's key {key[:100]!r} does not fit its {_name(message)}")
    return message


def _key_of(message: Message) -> bytes:
    match message:
        case Target():
            return _TARGET_KEY
        case DesiredState():
            return _WISH_KEY
        case DesiredVersion():
            return _WANTED_KEY
        case _:
            return f"{message.member.consumer}/{message.member.incarnation}".encode()


def _member_of(key: bytes) -> Member:
    match = _KEY.fullmatch(key)
    if match is None:
        raise ProtocolError(f"tombstone of {key[:100]!r}: only an Assignment can be removed")
    return Member(ConsumerId(int(match[1])), Incarnation(match[2].decode()))


def _wire_of(message: Target | Order | Heartbeat | Report | Starting | DesiredState | DesiredVersion) -> BaseModel:
    match message:
        case Target():
            return _wire_target(message)
        case Order():
            return WireOrder(
                **_wire_member(message.member),
                owned=_grouped(message.owned),
                revoking=_grouped(message.revoking),
                coming=_grouped(message.coming),
                retire=message.retire,
            )
        case Heartbeat():
            return WireHeartbeat(**_wire_sign(message))
        case Report():
            return _wire_report(message)
        case Starting():
            process = WireProcess(**asdict(message.process))
            return WireStarting(**_wire_member(message.member), process=process, why=_text(message.why))
        case DesiredState() | DesiredVersion():
            return _wire_of_people(message)


def _wire_of_people(message: DesiredState | DesiredVersion) -> BaseModel:
    by, time_ms = _text(message.by), message.time_ms
    if isinstance(message, DesiredState):
        return WireDesiredState(state=message.state, by=by, time_ms=time_ms)
    return WireDesiredVersion(kgs_version=message.version, config_hash=message.config_hash, by=by, time_ms=time_ms)


def _wire_target(target: Target) -> WireTarget:
    return WireTarget(
        algorithm=target.algorithm,
        assignment=_nested(target.assignment),
        spares=target.spares,
        speeds_bytes_per_s=_nested(target.speeds),
        capacity_bytes_per_s=target.capacity,
        rscore=target.rscore,
        reason=_text(target.reason),
        known=tuple(WireMember(**_wire_member(member)) for member in target.known),
        set_aside=target.set_aside,
        time_ms=target.time_ms,
        measurement_offset=target.measurement_offset,
        pinned=_grouped(target.pinned),
        history=tuple(WireChange(**{**asdict(c), "reason": _text(c.reason)}) for c in target.history),
        **({} if target.terms is None else asdict(target.terms)),
    )


def _wire_report(report: Report) -> WireReport:
    reason_length = min(MAX_TEXT, _REASONS_LENGTH // max(1, len(report.stopped) + len(report.unready)))
    return WireReport(
        **_wire_sign(report),
        process=WireProcess(**asdict(report.process)),
        applied=report.applied,
        owned=_grouped(report.owned),
        stopped=_nested({tp: _text(reason, reason_length) for tp, reason in report.stopped.items()}),
        positions=_nested(report.positions),
        kgs_version=report.version,
        config_hash=report.config_hash,
        last_drain_s=report.last_drain_s,
        max_drain_s=report.max_drain_s,
        drains=report.drains,
        bad_shares=dict(report.bad_shares),
        ready=None if report.ready is None else _grouped(report.ready),
        unready=_nested({tp: _text(reason, reason_length) for tp, reason in report.unready.items()}),
        ending=report.ending,
        why=_text(report.why),
    )


def _wire_member(member: Member) -> dict[str, Any]:
    return {"consumer": member.consumer, "incarnation": member.incarnation}


def _wire_sign(sign: Heartbeat | Report) -> dict[str, Any]:
    return {
        **_wire_member(sign.member),
        "sequence": sign.sequence,
        "phase": sign.phase,
        "bytes_per_s": sign.bytes_per_s,
        "batch_age_s": sign.batch_age_s,
    }


def _text(text: str, length: int = MAX_TEXT) -> str:
    """Cut, and without halves of characters, which messages about files may have and JSON has not."""
    return text[:length].encode(errors="replace").decode()


def _grouped(partitions: Collection[TopicPartition]) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        found.setdefault(topic, []).append(partition)
    return {topic: tuple(numbers) for topic, numbers in found.items()}


def _nested(values: Mapping[TopicPartition, Any]) -> dict[str, dict[int, Any]]:
    found: dict[str, dict[int, Any]] = {}
    for tp, value in sorted(values.items(), key=lambda item: item[0]):
        found.setdefault(tp.topic, {})[tp.partition] = value
    return found


def _name(message: Message) -> str:
    return type(message).__name__


def _one_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])[:200]}: {first['msg']}"
    return " ".join(str(error).split())[:300]
