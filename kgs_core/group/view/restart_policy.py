"""Restart policy: who is started now, who waits, and who is quarantined, by past and present runs and their reports.

Nothing is remembered but what the fleet and the topics say, so a new controller goes on where the last one was killed.
A run and a report belong together when the report's `run_id` is the run's handle.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kgs_core.config.membership import MembershipSettings
from kgs_core.group.protocol import Ending, Incarnation
from kgs_core.group.view.lifetimes import LONG_LIFE_S, Lifetime, Lives
from kgs_core.model import ConsumerId, grouped
from kgs_core.ports import Run

NOTIFIED_AGAIN_S = 60.0
"""Who waits with its start for passing trouble says so again well within this time."""
QUARANTINE_FACTOR = 10
"""A consumer that keeps failing is tried again after so many times its longest back-off."""


@dataclass(frozen=True, slots=True)
class History:
    """Everything that has been started, as far as anybody knows. Ages are seconds before now.

    Attributes:
        refusals: starts that the fleet refused -> age; there is no run of them.
        launched: consumers that were started and that the fleet does not show yet -> age.
        stopped: handles of runs that were told to end.
        excused: those among them that nobody wanted: their end is no failure.
        present: consumers with a fresh report of a living incarnation.
        mute: incarnations that said that they wait with their start, and have not for so long that they are stuck.
    """

    runs: Sequence[Run] = ()
    lives: Lives = field(default_factory=dict)
    refusals: Sequence[tuple[ConsumerId, float]] = ()
    launched: Mapping[ConsumerId, float] = field(default_factory=dict)
    stopped: frozenset[str] = frozenset()
    excused: frozenset[str] = frozenset()
    present: frozenset[ConsumerId] = frozenset()
    mute: frozenset[Incarnation] = frozenset()


@dataclass(frozen=True, slots=True)
class Starts:
    """Conclusions from a history of starts.

    Attributes:
        launch: wanted consumers to start now, ascending.
        waiting: consumers whose next start has to wait -> seconds; those quarantined among them.
        quarantined: consumers whose last starts all failed, `start_attempts` in a row or more.
        starting: consumers with a run that has time left for its first report -> its age, s.
        running: consumers with a run that has not ended, starting or not.
        overdue: handles of runs that have not reported in time.
        failures: consumers whose last starts failed -> how many in a row.
        why: those of them that a reason is known of -> what the last one reported, or else its fleet.
        trouble: consumers that are starting and wait for passing trouble to end, as they or their fleet say -> which.
        held_s: for how long nobody is started but who died, because consumers that had joined keep failing.
    """

    launch: tuple[ConsumerId, ...] = ()
    waiting: Mapping[ConsumerId, float] = field(default_factory=dict)
    quarantined: frozenset[ConsumerId] = frozenset()
    starting: Mapping[ConsumerId, float] = field(default_factory=dict)
    running: frozenset[ConsumerId] = frozenset()
    overdue: frozenset[str] = frozenset()
    failures: Mapping[ConsumerId, int] = field(default_factory=dict)
    why: Mapping[ConsumerId, str] = field(default_factory=dict)
    trouble: Mapping[ConsumerId, str] = field(default_factory=dict)
    held_s: float = 0.0


class _Fate(StrEnum):
    STARTING = "no report yet"
    OVERDUE = "no report in time"
    LIVING = "reported, and not over"
    SETTLED = "ended in order, or after it had lived for long enough"
    FAILED = "over too soon, or by an error of its own"


_FAILURES = frozenset({_Fate.OVERDUE, _Fate.FAILED})


def plan_starts(wanted: Collection[ConsumerId], history: History, settings: MembershipSettings) -> Starts:
    """Who is to be started now.

    A consumer is never started while it has a run that has not ended, or a fresh report: so losing the fleet's memory
    doubles nothing. A start has failed

    - when no report comes within `start_timeout_s`, or when one that waits falls silent: such a run is `overdue`, to be
      stopped;
    - when its run is over before its first report, unless it has ended well and nobody had told it to end;
    - when it is over within `start_timeout_s` after its first report, without a last word;
    - when its last word is an error of its own, within `LONG_LIFE_S` after its first report. One that has read well
      for longer and then fails is started again as if it had ended in order.

    A run that says that it waits for passing trouble is starting for as long as it does; the rest of its start it
    limits itself. Whoever was asked to end, was retired or superseded has not failed. After the n-th failure in a row
    the next start comes `start_backoff_s` x 2^(n-1) later, and from `start_attempts` on after `retry_after_s`. That
    counts from the last start; where its last word was an error, from that, as far as that can be told without
    comparing clocks.

    What ends consumers may be something that they read. Then it goes on to the next number, which fails as well, and
    each time partitions move. So with each number that is quarantined after it had joined, everybody's next start comes
    twice as late after the last such failure, up to `retry_after_s`. Not that of who was ended from outside (killed, or
    asked to): it reads what has not ended it.
    """
    fates = _Fates(history, settings)
    starts = fates.by_consumer()
    running = frozenset(run.consumer for run in history.runs if not run.is_over) | history.launched.keys()
    counts = {consumer: _failures_in_a_row([fate for _, fate in attempts]) for consumer, attempts in starts.items()}
    failures = {consumer: count for consumer, count in counts.items() if count}
    waits = {consumer: _back_off_s(count, settings) - starts[consumer][-1][0] for consumer, count in failures.items()}
    said = {consumer: words for consumer in failures if (words := fates.why(consumer))}
    of_fleet = {run.consumer: run.why for run in history.runs if run.is_over and run.why and run.consumer in failures}
    waiting = {consumer: wait_s for consumer, wait_s in waits.items() if wait_s > 0}
    quarantined = frozenset(c for c in waiting if failures[c] >= settings.start_attempts) - history.present
    held_s = _held_s(quarantined & said.keys(), starts, settings)
    absent = frozenset(wanted) - running - history.present - waiting.keys()
    shown = {c: attempts[-1][0] for c, attempts in starts.items() if attempts[-1][1] is _Fate.STARTING}
    return Starts(
        launch=tuple(sorted(c for c in absent if not held_s or fates.was_ended(c))),
        waiting=waiting,
        quarantined=quarantined,
        starting={**shown, **history.launched},
        running=running,
        overdue=frozenset(run.handle for run, fate in fates.of_runs if fate is _Fate.OVERDUE),
        failures=failures,
        why={**of_fleet, **said},
        trouble={run.consumer: trouble_of_run for run in history.runs if (trouble_of_run := fates.trouble(run))},
        held_s=held_s,
    )


def retry_after_s(settings: MembershipSettings) -> float:
    """After how long a consumer that was quarantined may be tried again; see `plan_starts`."""
    return QUARANTINE_FACTOR * _longest_back_off_s(settings) + settings.start_timeout_s


def mute_after_s(settings: MembershipSettings) -> float:
    """How long who waits with its start may say nothing: the rest of a start is limited to `start_timeout_s`."""
    return NOTIFIED_AGAIN_S + 2 * settings.start_timeout_s


class _Fates:
    """Outcome of each start."""

    def __init__(self, history: History, settings: MembershipSettings) -> None:
        self._history = history
        self._settings = settings
        self._named: dict[str, Lifetime] = {}
        self._nameless: dict[ConsumerId, Lifetime] = {}
        for life in sorted(history.lives.values(), key=lambda life: life.last_ms):
            if life.run_id:
                self._named[life.run_id] = life
            else:
                self._nameless[life.member.consumer] = life
        self.of_runs = [(run, self._of(run)) for run in history.runs]

    def by_consumer(self) -> dict[ConsumerId, list[tuple[float, _Fate]]]:
        """Consumer -> age and fate of each start that counts, the latest last; after a last word, the age of that."""
        history = self._history
        starts = [
            (run.started_s - self._lived_s(run), run.consumer, fate)
            for run, fate in self.of_runs
            if not (run.is_over and run.handle in history.excused)
        ]
        starts += [(age_s, consumer, _Fate.FAILED) for consumer, age_s in history.refusals]
        oldest_first = sorted(starts, key=lambda start: -start[0])
        return grouped((consumer, (age_s, fate)) for age_s, consumer, fate in oldest_first)

    def _of(self, run: Run) -> _Fate:
        life = self._life_of(run)
        timeout_s = self._settings.start_timeout_s
        if not run.is_over:
            if life is not None and life.is_starting:
                return _Fate.OVERDUE if life.member.incarnation in self._history.mute else _Fate.STARTING
            if life is not None:
                return _Fate.LIVING
            return _Fate.STARTING if run.started_s <= timeout_s else _Fate.OVERDUE
        if life is None or life.is_starting:
            # Its reports may have expired; who starts too slowly and is told to end for it ends well, too
            ended_well = run.exit_code == 0 and run.handle not in self._history.stopped
            return _Fate.SETTLED if ended_well else _Fate.FAILED
        if _has_failed(life, run):
            return _Fate.FAILED if life.lived_s < LONG_LIFE_S else _Fate.SETTLED
        return _Fate.SETTLED if life.ended or life.lived_s >= timeout_s else _Fate.FAILED

    def trouble(self, run: Run) -> str:
        """What it waits for while it starts; empty: it has reported nothing."""
        life = self._life_of(run)
        if run.is_over or (life is not None and not life.is_starting):
            return ""
        return life.why if life is not None else run.why

    def why(self, consumer: ConsumerId) -> str:
        """The reason of its end that its last incarnation reported; empty where it reported nothing."""
        last = self._last_of(consumer)
        return "" if last is None or last.is_starting else last.why

    def was_ended(self, consumer: ConsumerId) -> bool:
        """Whether its last incarnation had joined, and then something from outside ended it."""
        last = self._last_of(consumer)
        if last is None or last.is_starting:
            return False
        return last.ending is Ending.ASKED or (last.ending is None and not last.ended)

    def _last_of(self, consumer: ConsumerId) -> Lifetime | None:
        own = [life for life in self._history.lives.values() if life.member.consumer == consumer]
        return max(own, key=lambda life: life.last_ms, default=None)

    def _life_of(self, run: Run) -> Lifetime | None:
        # Where a report names no run, any one of the consumer will do: better than to stop a run that lives
        return self._named.get(run.handle) or self._nameless.get(run.consumer)

    def _lived_s(self, run: Run) -> float:
        life = self._life_of(run)
        has_reported_error = life is not None and run.is_over and life.ending is Ending.FAILED
        return min(life.lived_s, run.started_s) if life is not None and has_reported_error else 0.0


def _has_failed(life: Lifetime, run: Run) -> bool:
    """Whether an error of its own has ended it. A kgs that gives no reason gives a status at least."""
    if life.ending is None and life.ended:
        return bool(run.exit_code)
    return life.ending is Ending.FAILED


def _failures_in_a_row(fates: Sequence[_Fate]) -> int:
    count = 0
    for fate in reversed(fates):
        if fate not in _FAILURES:
            break
        count += 1
    return count


def _held_s(
    failing: Collection[ConsumerId],
    starts: Mapping[ConsumerId, Sequence[tuple[float, _Fate]]],
    settings: MembershipSettings,
) -> float:
    """How long to wait with any start, for the sake of numbers that are quarantined and had joined."""
    if not failing:
        return 0.0
    newest_s = min(starts[consumer][-1][0] for consumer in failing)
    return max(0.0, min(_longest_back_off_s(settings) * 2.0 ** len(failing), retry_after_s(settings)) - newest_s)


def _back_off_s(failures: int, settings: MembershipSettings) -> float:
    if failures >= settings.start_attempts:
        return retry_after_s(settings)
    return settings.start_backoff_s * 2.0 ** (failures - 1)


def _longest_back_off_s(settings: MembershipSettings) -> float:
    return settings.start_backoff_s * 2.0 ** (settings.start_attempts - 1)
