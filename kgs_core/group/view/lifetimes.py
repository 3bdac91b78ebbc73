"""Lifetimes of incarnations and how they ended, as far as the group's topics say. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kgs_core.group.protocol import Ending, Heartbeat, Incarnation, Member, Message, Phase, Received, Report, Starting

LONG_LIFE_S = 1800.0
"""Who ends by an error of its own after it has reported for so long has not failed to start: its row begins anew."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Lifetime of one incarnation as the topic tells it.

    Attributes:
        first_ms: the broker's clock at its first report.
        ending: why it drains or has ended, as it says.
        why: in words, where an error of its own ends it; which trouble it waits for, while it starts.
        is_starting: it has not joined: it only says that it waits.
        notified_at: when it said so last, steady clock; None where it has joined.
    """

    member: Member
    run_id: str
    first_ms: int
    last_ms: int
    ended: bool = False
    ending: Ending | None = None
    why: str = ""
    is_starting: bool = False
    notified_at: float | None = None

    @property
    def lived_s(self) -> float:
        """From its first report to its last."""
        return (self.last_ms - self.first_ms) / 1000


Lives = Mapping[Incarnation, Lifetime]


def take_lives(lives: Lives, received: Sequence[Received[Message]], now: float) -> Lives:
    """`lives` with what these reports and heartbeats add; the newest of them has come `now`, by the steady clock."""
    taken = dict(lives)
    newest_ms = max((one.timestamp_ms for one in received), default=0)
    for one in received:
        message = one.message
        if isinstance(message, Starting):
            _take_starting(taken, message, one.timestamp_ms, now - (newest_ms - one.timestamp_ms) / 1000)
        if not isinstance(message, Report | Heartbeat):
            continue
        known = taken.get(message.member.incarnation)
        run_id = message.process.run_id if isinstance(message, Report) else known.run_id if known else ""
        if known is None or known.is_starting:
            known = Lifetime(message.member, run_id, one.timestamp_ms, one.timestamp_ms)
        taken[message.member.incarnation] = replace(
            known,
            run_id=run_id,
            last_ms=max(known.last_ms, one.timestamp_ms),
            ended=known.ended or message.phase is Phase.ENDED,
            ending=message.ending if isinstance(message, Report) and message.ending else known.ending,
            why=message.why if isinstance(message, Report) and message.why else known.why,
        )
    return taken


def _take_starting(lives: dict[Incarnation, Lifetime], message: Starting, time_ms: int, notified_at: float) -> None:
    known = lives.get(message.member.incarnation)
    if known is None or known.is_starting:  # a late one says nothing of who has joined
        run_id, why = message.process.run_id, message.why
        lives[message.member.incarnation] = Lifetime(
            message.member, run_id, time_ms, time_ms, why=why, is_starting=True, notified_at=notified_at
        )
