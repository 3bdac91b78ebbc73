"""A message as the record that carries it, and back.

A record's key says whom it is about, so that compaction keeps the newest of each; its value is one JSON object. Fields
that a later minor change adds are passed over; what changes the meaning of others raises the version, and a version
that is not known here is refused. Numbers are finite, quantities named with their unit, partitions grouped by topic.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticSerializationError

from kgs_core.errors import ProtocolError
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.protocol.messages import (
    Change,
    Heartbeat,
    Incarnation,
    Member,
    Message,
    Order,
    Process,
    Report,
    Target,
    Tombstone,
    Wanted,
    Wish,
)
from kgs_core.protocol.wire import (
    MAX_TEXT,
    RECORD,
    VERSION,
    WireChange,
    WireHeartbeat,
    WireMember,
    WireOrder,
    WireProcess,
    WireReport,
    WireTarget,
    WireWanted,
    WireWish,
)

MAX_BYTES = 8_000_000
"""Of one record, uncompressed: a Target with about 150,000 partitions."""

_REASONS_LENGTH = 1_000_000
"""Of all reasons in one report, characters: a consumer whose report cannot be sent ends itself."""
_KEY = re.compile(rb"([1-9]\d{0,8})/([0-9A-Za-z_-]{1,64})")
_V = TypeVar("_V")
_TARGET_KEY, _WISH_KEY, _WANTED_KEY = b"target", b"state", b"wanted"


class _Head(BaseModel):
    """What is looked at first, so that an unknown version is called by that name."""

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
        message = _message_of(RECORD.validate_json(value))
    except ValidationError as e:
        raise ProtocolError(f"record is no message: {_one_line(e)}") from e
    if _key_of(message) != key:
        raise ProtocolError(f"record's key {key[:100]!r} does not fit its {_name(message)}")
    return message


def _key_of(message: Message) -> bytes:
    match message:
        case Target():
            return _TARGET_KEY
        case Wish():
            return _WISH_KEY
        case Wanted():
            return _WANTED_KEY
        case _:
            return f"{message.member.consumer}/{message.member.incarnation}".encode()


def _member_of(key: bytes) -> Member:
    match = _KEY.fullmatch(key)
    if match is None:
        raise ProtocolError(f"tombstone of {key[:100]!r}: only an Assignment can be removed")
    return Member(ConsumerId(int(match[1])), Incarnation(match[2].decode()))


def _wire_of(message: Target | Order | Heartbeat | Report | Wish | Wanted) -> BaseModel:
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
        case Wish():
            return WireWish(state=message.state, by=_text(message.by), time_ms=message.time_ms)
        case Wanted():
            return WireWanted(
                kgs_version=message.version,
                config_hash=message.config_hash,
                by=_text(message.by),
                time_ms=message.time_ms,
            )


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
    )


def _wire_report(report: Report) -> WireReport:
    reason_length = min(MAX_TEXT, _REASONS_LENGTH // max(1, len(report.stopped)))
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


def _message_of(wire: BaseModel) -> Message:
    match wire:
        case WireTarget():
            return _target_of(wire)
        case WireOrder():
            owned, revoking, coming = (_flat_set(found) for found in (wire.owned, wire.revoking, wire.coming))
            return Order(_parsed_member(wire), owned, revoking, coming, wire.retire)
        case WireReport():
            return _report_of(wire)
        case WireHeartbeat():
            return Heartbeat(_parsed_member(wire), wire.sequence, wire.phase, wire.bytes_per_s, wire.batch_age_s)
        case WireWish():
            return Wish(wire.state, wire.by, wire.time_ms)
        case WireWanted():
            return Wanted(wire.kgs_version, wire.config_hash, wire.by, wire.time_ms)
        case _:
            raise AssertionError(wire)


def _target_of(wire: WireTarget) -> Target:
    return Target(
        algorithm=wire.algorithm,
        assignment={tp: ConsumerId(consumer) for tp, consumer in _flat(wire.assignment).items()},
        spares=tuple(ConsumerId(consumer) for consumer in wire.spares),
        speeds=_flat(wire.speeds_bytes_per_s),
        capacity=wire.capacity_bytes_per_s,
        rscore=wire.rscore,
        reason=wire.reason,
        known=tuple(_parsed_member(member) for member in wire.known),
        set_aside=tuple(ConsumerId(consumer) for consumer in wire.set_aside),
        time_ms=wire.time_ms,
        measurement_offset=wire.measurement_offset,
        pinned=_flat_set(wire.pinned),
        history=tuple(Change(**dict(change)) for change in wire.history),
    )


def _report_of(wire: WireReport) -> Report:
    return Report(
        member=_parsed_member(wire),
        sequence=wire.sequence,
        phase=wire.phase,
        bytes_per_s=wire.bytes_per_s,
        batch_age_s=wire.batch_age_s,
        process=Process(**dict(wire.process)),
        applied=wire.applied,
        owned=_flat_set(wire.owned),
        stopped=_flat(wire.stopped),
        positions=_flat(wire.positions),
        version=wire.kgs_version,
        config_hash=wire.config_hash,
        last_drain_s=wire.last_drain_s,
        max_drain_s=wire.max_drain_s,
        drains=wire.drains,
    )


def _parsed_member(wire: WireMember) -> Member:
    return Member(ConsumerId(wire.consumer), Incarnation(wire.incarnation))


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


def _flat_set(grouped: Mapping[str, Collection[int]]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for topic, numbers in grouped.items() for number in numbers)


def _flat(nested: Mapping[str, Mapping[int, _V]]) -> dict[TopicPartition, _V]:
    return {
        TopicPartition(topic, number): value for topic, values in nested.items() for number, value in values.items()
    }


def _name(message: Message) -> str:
    return type(message).__name__


def _one_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])[:200]}: {first['msg']}"
    return " ".join(str(error).split())[:300]
