"""Who is started now, who has to wait, and who is set aside: worked out from past and present runs and their reports.

Nothing is remembered but what the fleet and the topics say, so a new controller goes on where the last one was killed.
A run and a report belong together when the report's `run_id` is the run's handle.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from kgs_core.config.membership import MembershipSettings
from kgs_core.model import ConsumerId
from kgs_core.ports import Run
from kgs_core.protocol import Heartbeat, Incarnation, Member, Message, Phase, Received, Report

SET_ASIDE_FACTOR = 10
"""A consumer that keeps failing is tried again after so many times its longest back-off."""


@dataclass(frozen=True, slots=True)
class Life:
    """What the topic says of how long an incarnation has lived.

    Attributes:
        run_id: of its run; empty where it has none.
        first_ms: the broker's clock at its first report.
        last_ms: at its last one.
        ended: it has ended in order.
    """

    member: Member
    run_id: str
    first_ms: int
    last_ms: int
    ended: bool = False


Lives = Mapping[Incarnation, Life]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A start that the fleet refused: there is no run of it."""

    consumer: ConsumerId
    age_s: float


@dataclass(frozen=True, slots=True)
class History:
    """Everything that has been started, as far as anybody knows. Ages are seconds before now.

    Attributes:
        runs: as the fleet has them.
        lives: of the incarnations that have reported.
        refusals: starts that the fleet refused.
        launched: consumers that were started and that the fleet does not show yet -> age.
        excused: handles of runs that were stopped because nobody wanted them: their end is no failure.
        present: consumers with a fresh report of a living incarnation.
    """

    runs: Sequence[Run] = ()
    lives: Lives = field(default_factory=dict)
    refusals: Sequence[Refusal] = ()
    launched: Mapping[ConsumerId, float] = field(default_factory=dict)
    excused: frozenset[str] = frozenset()
    present: frozenset[ConsumerId] = frozenset()


@dataclass(frozen=True, slots=True)
class Starts:
    """What follows from a history.

    Attributes:
        launch: wanted consumers to start now, ascending.
        waiting: consumers whose next start has to wait -> seconds; those set aside among them.
        set_aside: consumers whose last starts all failed, `start_attempts` in a row or more.
        starting: consumers with a run that has time left for its first report.
        running: consumers with a run that has not ended, starting or not.
        overdue: handles of runs that have not reported in time.
        failures: consumers whose last starts failed -> how many in a row.
    """

    launch: tuple[ConsumerId, ...] = ()
    waiting: Mapping[ConsumerId, float] = field(default_factory=dict)
    set_aside: frozenset[ConsumerId] = frozenset()
    starting: frozenset[ConsumerId] = frozenset()
    running: frozenset[ConsumerId] = frozenset()
    overdue: frozenset[str] = frozenset()
    failures: Mapping[ConsumerId, int] = field(default_factory=dict)


class _Fate(StrEnum):
    STARTING = "no report yet"
    OVERDUE = "no report in time"
    LIVING = "reported, and not over"
    SETTLED = "ended in order, or after it had lived for a while"
    FAILED = "over, and never settled"


_FAILURES = frozenset({_Fate.OVERDUE, _Fate.FAILED})


def plan_starts(wanted: Collection[ConsumerId], history: History, settings: MembershipSettings) -> Starts:
    """Who is to be started now.

    A consumer is never started while it has a run that has not ended, or a fresh report: so losing the fleet's memory
    doubles nothing. A start has failed when its run is over before its first report, or within `start_timeout_s` after
    it without having ended in order; and when no report comes within `start_timeout_s`: such a run is `overdue`, to be
    stopped. After the n-th failure in a row the next start comes `start_backoff_s` x 2^(n-1) after the last one, and
    from `start_attempts` on after `retry_after_s`.

    Args:
        wanted: consumers that shall run.
        history: what was started.
        settings: attempts, back-off and timeout.
    """
    fates = _Fates(history, settings)
    starts = fates.by_consumer()
    running = frozenset(run.consumer for run in history.runs if not run.is_over) | history.launched.keys()
    counts = {consumer: _failures_in_a_row([fate for _, fate in attempts]) for consumer, attempts in starts.items()}
    failures = {consumer: count for consumer, count in counts.items() if count}
    waits = {consumer: _back_off_s(count, settings) - starts[consumer][-1][0] for consumer, count in failures.items()}
    waiting = {consumer: wait_s for consumer, wait_s in waits.items() if wait_s > 0}
    absent = frozenset(wanted) - running - history.present
    is_starting = frozenset(c for c, attempts in starts.items() if attempts[-1][1] is _Fate.STARTING)
    return Starts(
        launch=tuple(sorted(absent - waiting.keys())),
        waiting=waiting,
        set_aside=frozenset(c for c in waiting if failures[c] >= settings.start_attempts) - history.present,
        starting=is_starting | history.launched.keys(),
        running=running,
        overdue=frozenset(run.handle for run in history.runs if fates.of(run) is _Fate.OVERDUE),
        failures=failures,
    )


def retry_after_s(settings: MembershipSettings) -> float:
    """Age of its last start at which a consumer that was set aside may be tried again."""
    return SET_ASIDE_FACTOR * _longest_back_off_s(settings) + settings.start_timeout_s


def take_lives(lives: Lives, received: Iterable[Received[Message]]) -> Lives:
    """`lives` with what these reports and heartbeats add."""
    taken = dict(lives)
    for one in received:
        message = one.message
        if not isinstance(message, Report | Heartbeat):
            continue
        known = taken.get(message.member.incarnation)
        run_id = message.process.run_id if isinstance(message, Report) else known.run_id if known else ""
        if known is None:
            known = Life(message.member, run_id, one.timestamp_ms, one.timestamp_ms)
        taken[message.member.incarnation] = replace(
            known,
            run_id=run_id,
            last_ms=max(known.last_ms, one.timestamp_ms),
            ended=known.ended or message.phase is Phase.ENDED,
        )
    return taken


class _Fates:
    """What became of each start."""

    def __init__(self, history: History, settings: MembershipSettings) -> None:
        self._history = history
        self._settings = settings
        self._named: dict[str, Life] = {}
        self._nameless: dict[ConsumerId, Life] = {}
        for life in sorted(history.lives.values(), key=lambda life: life.last_ms):
            if life.run_id:
                self._named[life.run_id] = life
            else:
                self._nameless[life.member.consumer] = life

    def by_consumer(self) -> dict[ConsumerId, list[tuple[float, _Fate]]]:
        """Consumer -> age and fate of each start that counts, the latest last."""
        history = self._history
        starts = [
            (run.started_s, run.consumer, self.of(run))
            for run in history.runs
            if not (run.is_over and run.handle in history.excused)
        ]
        starts += [(refusal.age_s, refusal.consumer, _Fate.FAILED) for refusal in history.refusals]
        found: dict[ConsumerId, list[tuple[float, _Fate]]] = {}
        for age_s, consumer, fate in sorted(starts, key=lambda start: -start[0]):
            found.setdefault(consumer, []).append((age_s, fate))
        return found

    def of(self, run: Run) -> _Fate:
        """What became of one run."""
        # Where a report names no run, any one of the consumer will do: better than to stop a run that lives
        life = self._named.get(run.handle) or self._nameless.get(run.consumer)
        timeout_s = self._settings.start_timeout_s
        if not run.is_over:
            if life is not None:
                return _Fate.LIVING
            return _Fate.STARTING if run.started_s <= timeout_s else _Fate.OVERDUE
        if life is None:
            return _Fate.FAILED
        return _Fate.SETTLED if life.ended or life.last_ms - life.first_ms >= timeout_s * 1000 else _Fate.FAILED


def _failures_in_a_row(fates: Sequence[_Fate]) -> int:
    """How many of the last ones."""
    count = 0
    for fate in reversed(fates):
        if fate not in _FAILURES:
            break
        count += 1
    return count


def _back_off_s(failures: int, settings: MembershipSettings) -> float:
    if failures >= settings.start_attempts:
        return retry_after_s(settings)
    return settings.start_backoff_s * 2.0 ** (failures - 1)


def _longest_back_off_s(settings: MembershipSettings) -> float:
    return settings.start_backoff_s * 2.0 ** (settings.start_attempts - 1)
