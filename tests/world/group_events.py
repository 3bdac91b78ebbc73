"""Events of a group's history: records, and what is known from outside the topics."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from kgs_core.group.protocol import Heartbeat, Incarnation, Message, Received, Report, Tombstone

TRANSACTION_MS = 10_000
"""Within this time the records of one transaction are appended: longer, and Kafka ends it."""


class FactKind(StrEnum):
    DEAD = "dead"
    """Its death is confirmed."""
    SUSPECTED = "suspected"
    """It has been silent for too long."""
    HEARD = "heard"
    """It is not suspected any more."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that happened to an incarnation, and when by the brokers' clock, ms since 1970."""

    incarnation: Incarnation
    kind: FactKind
    time_ms: int


Event = Received[Message] | Fact


def in_time(events: Iterable[Event]) -> list[Event]:
    """Records of several partitions, and facts, in the order of the brokers' clock.

    Of equal times facts come first, then reports, then the rest: a controller acts on what it knows. Tombstones come
    earlier than they stand: the death was confirmed before the transaction, whose other records may stand before it.
    Records of one partition that are given in their order keep it.
    """
    kinds = {Fact: 0, Tombstone: 0, Report: 1, Heartbeat: 1}

    def place(event: Event) -> tuple[int, int]:
        kind = Fact if isinstance(event, Fact) else type(event.message)
        return _time_ms(event) - (TRANSACTION_MS if kind is Tombstone else 0), kinds.get(kind, 2)

    return sorted(events, key=place)


def silences(records: Iterable[Received[Message]], suspect_after_s: float) -> tuple[Fact, ...]:
    """Suspicions that the reports themselves show: gaps of more than `suspect_after_s` between two of an incarnation.

    A controller that has not read the report which ends a silence may still act on the silence, so it ends a little
    later. The newest report of anybody is taken for the end of the history.
    """
    last: dict[Incarnation, int] = {}
    facts: list[Fact] = []
    after_ms = round(suspect_after_s * 1000)
    end_ms = 0
    for record in records:
        if not isinstance(record.message, Report | Heartbeat):
            continue
        incarnation, time_ms = record.message.member.incarnation, record.timestamp_ms
        end_ms = max(end_ms, time_ms)
        if time_ms - last.get(incarnation, time_ms) > after_ms:
            facts.append(Fact(incarnation, FactKind.SUSPECTED, last[incarnation] + after_ms))
            facts.append(Fact(incarnation, FactKind.HEARD, time_ms + min(after_ms, TRANSACTION_MS)))
        last[incarnation] = time_ms
    facts += [Fact(i, FactKind.SUSPECTED, ms + after_ms) for i, ms in last.items() if end_ms - ms > after_ms]
    return tuple(sorted(facts, key=lambda fact: fact.time_ms))


def _time_ms(event: Event) -> int:
    return event.time_ms if isinstance(event, Fact) else event.timestamp_ms
