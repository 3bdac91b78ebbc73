"""The fields of a record, checked, as the message that they say."""

from collections.abc import Collection, Mapping
from typing import TypeVar

from pydantic import BaseModel

from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.protocol.messages import (
    Change,
    DesiredState,
    DesiredVersion,
    Ending,
    Heartbeat,
    Incarnation,
    Member,
    Message,
    Order,
    Process,
    Report,
    Starting,
    Target,
    Terms,
)
from kgs_core.protocol.wire import (
    WireDesiredState,
    WireDesiredVersion,
    WireHeartbeat,
    WireMember,
    WireOrder,
    WireReport,
    WireStarting,
    WireTarget,
)

_V = TypeVar("_V")


def message_of(wire: BaseModel) -> Message:
    """The message that a record's checked fields say."""
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
        case WireStarting():
            return Starting(_parsed_member(wire), Process(**dict(wire.process)), wire.why)
        case WireDesiredState() | WireDesiredVersion():
            return _word_of_people(wire)
        case _:
            raise AssertionError(wire)


def _word_of_people(wire: WireDesiredState | WireDesiredVersion) -> DesiredState | DesiredVersion:
    if isinstance(wire, WireDesiredState):
        return DesiredState(wire.state, wire.by, wire.time_ms)
    return DesiredVersion(wire.kgs_version, wire.config_hash, wire.by, wire.time_ms)


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
        terms=_terms_of(wire),
    )


def _terms_of(wire: WireTarget) -> Terms | None:
    if wire.lake_root is None or wire.suspect_after_s is None:
        return None
    return Terms(wire.lake_root, wire.suspect_after_s, wire.config_hashes)


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
        bad_shares=wire.bad_shares,
        ready=None if wire.ready is None else _flat_set(wire.ready),
        unready=_flat(wire.unready),
        ending=Ending(wire.ending) if wire.ending in list(Ending) else None,
        why=wire.why,
    )


def _parsed_member(wire: WireMember) -> Member:
    return Member(ConsumerId(wire.consumer), Incarnation(wire.incarnation))


def _flat_set(grouped: Mapping[str, Collection[int]]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for topic, numbers in grouped.items() for number in numbers)


def _flat(nested: Mapping[str, Mapping[int, _V]]) -> dict[TopicPartition, _V]:
    return {
        TopicPartition(topic, number): value for topic, values in nested.items() for number, value in values.items()
    }
