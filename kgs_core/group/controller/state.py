"""State of the controller between two steps, and values derived from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from kgs_core.config.membership import MembershipSettings
from kgs_core.config.packing import FIRST_FLAT_OUT, PackingSettings
from kgs_core.group.controller.target_size import UnwritableTarget
from kgs_core.group.protocol import Incarnation, RunState, Target, Terms
from kgs_core.group.view.events import Write
from kgs_core.group.view.group_health import Disruption
from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.lifetimes import Lives
from kgs_core.group.view.restart_policy import History, Starts, mute_after_s, plan_starts
from kgs_core.group.view.transitions import State
from kgs_core.model import BytesPerSecond, ConsumerId
from kgs_core.packing import RandomSource
from kgs_core.planning.load import Load
from kgs_core.planning.rebalance_budget import HeldBack
from kgs_core.planning.shares import shares_of
from kgs_core.ports import Run


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a controller.

    Attributes:
        new_random: see `make_plan`.
        launches: it starts consumers and stops unwanted runs; False: somebody else does.
        until_done: it carries out one change at most and ends.
        applies_plan: it is started to carry out what the packer wants, as `kgs plan --apply` asks for.
        first_flat_out: what a consumer is taken to read flat out before anything is known, stored bytes/s.
    """

    packing: PackingSettings
    membership: MembershipSettings
    new_random: Callable[[], RandomSource]
    launches: bool = True
    until_done: bool = False
    applies_plan: bool = False
    terms: Terms | None = None
    first_flat_out: BytesPerSecond = FIRST_FLAT_OUT


class Result(StrEnum):
    """Result of a controller."""

    CONVERGED = "converged"
    SUPERSEDED = "superseded"
    TIMED_OUT = "timed out"
    NOTHING_TO_DO = "nothing to do"
    FENCED = "fenced"


@dataclass(frozen=True, slots=True)
class ControllerOutcome:
    """Outcome of a controller: how it ended, and why, for people."""

    result: Result
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Listening:
    """Progress of reading the topics, and what follows from it for silence and lives.

    Attributes:
        at: when they were read to the end for the last time.
        silence_counts_from: after a gap in reading, silence says nothing before then.
        lives: how long the incarnations have reported.
    """

    at: float = 0.0
    silence_counts_from: float = 0.0
    lives: Lives = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KnownRuns:
    """What the fleet has said, and what was asked of it.

    Attributes:
        runs: its answer at `seen_at`; None: nothing yet.
        launched: consumers that were launched and that it has not shown yet -> when.
        refusals: launches that it refused, and when.
        stopped: handles of runs that were asked to end.
        excused: the unwanted ones among them.
    """

    runs: tuple[Run, ...] | None = None
    seen_at: float = 0.0
    launched: Mapping[ConsumerId, float] = field(default_factory=dict)
    refusals: tuple[tuple[ConsumerId, float], ...] = ()
    stopped: frozenset[str] = frozenset()
    excused: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ChangeProgress:
    """The change to the newest Target: seen, decided, started, handed over; instants on the controller's steady clock.

    Attributes:
        packed_at: when the Target was written.
        measured_at: when the load was measured that it is packed by; None: something else asked for it.
        read_at: when the controller had read that measurement; None likewise.
        awaited: consumers that it reads by and that had not joined then; None: another controller has written it.
        started_at: when all of them had joined; None: not yet.
        settled_s: how long the change took; None: it is not over.
        accepted: what was amiss when Group Management began.
    """

    packed_at: float | None = None
    measured_at: float | None = None
    read_at: float | None = None
    awaited: frozenset[ConsumerId] | None = None
    started_at: float | None = None
    settled_s: float | None = None
    accepted: frozenset[Disruption] = frozenset()

    @property
    def seen_s(self) -> float | None:
        """Seconds from the measurement until the controller had read it."""
        return _between(self.measured_at, self.read_at)

    @property
    def decided_s(self) -> float | None:
        """Seconds from the reading until the Target was written."""
        return _between(self.read_at, self.packed_at)

    @property
    def started_s(self) -> float | None:
        """Seconds from the Target until all its readers had joined."""
        return _between(self.packed_at, self.started_at)


@dataclass(frozen=True, slots=True)
class VainSearch:
    """The last search for a better packing that found none, or none that may be written.

    Attributes:
        at: time of the search.
        held_back: a better packing that was found, but must wait or cannot be written.
    """

    at: float | None = None
    held_back: HeldBack | UnwritableTarget | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """State of the last log lines: suspected and quarantined consumers, and waits; empty: none."""

    suspected: frozenset[Incarnation] = frozenset()
    quarantined: frozenset[ConsumerId] = frozenset()
    waits: str = ""


@dataclass(frozen=True, slots=True)
class ControllerState:
    """Everything that a controller knows. `now` is seconds on a steady clock, the same in every call.

    Attributes:
        wall_ms: wall clock at the steady clock's 0, ms.
        name: which state it is in, since `entered_at`.
    """

    options: Options
    wall_ms: float
    name: State = State.SYNCHRONIZE
    entered_at: float = 0.0
    view: GroupView = field(default_factory=GroupView)
    listening: Listening = field(default_factory=Listening)
    fleet: KnownRuns = field(default_factory=KnownRuns)
    measured: Load | None = None
    change: ChangeProgress = field(default_factory=ChangeProgress)
    search: VainSearch = field(default_factory=VainSearch)
    writing: Write | None = None
    said: Said = field(default_factory=Said)
    outcome: ControllerOutcome | None = None

    @property
    def target(self) -> Target | None:
        """The newest Target."""
        return self.view.target.message if self.view.target else None

    @property
    def strict(self) -> bool:
        """Whether only a confirmed death frees a partition."""
        return self.options.membership.strict_handover

    def suspects(self) -> frozenset[Incarnation]:
        """Who has been silent for too long while the controller listened."""
        if not self._listens:
            return frozenset()
        return self.view.suspects(self.listening.at, self.options.membership.suspect_after_s)

    @property
    def _listens(self) -> bool:
        return self.listening.at >= self.listening.silence_counts_from

    def wanted(self) -> frozenset[ConsumerId]:
        """Consumers to start if they are missing."""
        if self.target is None or self.view.run_state is not RunState.RUNNING:
            return frozenset()
        return frozenset((*shares_of(self.target.assignment), *self.target.spares))

    def starts(self, now: float) -> Starts:
        """Who is to be started now, as far as that is known."""
        return plan_starts(self.wanted(), self._history(now), self.options.membership)

    def terms(self) -> Terms | None:
        """Terms of joining that a Target written now states."""
        own, asked = self.options.terms, self.view.asked
        if own is None or asked is None or asked.message.config_hash in own.config_hashes:
            return own
        return replace(own, config_hashes=(*own.config_hashes, asked.message.config_hash))

    def time_ms(self, now: float) -> int:
        """The wall clock, ms since 1970."""
        return round(self.wall_ms + now * 1000)

    def since_packing_s(self, now: float) -> float:
        """Seconds since the last packing, or the last vain search for a better one."""
        return now - max(self.change.packed_at or 0.0, self.search.at or 0.0)

    def fresh(self, now: float) -> Load | None:
        """The measurement to pack by; None: there is none that is young enough."""
        limit_s = self.options.membership.max_measurement_age_s
        return self.measured if self.measured is not None and now - self.measured.at <= limit_s else None

    def _history(self, now: float) -> History:
        suspects, fleet = self.suspects(), self.fleet
        alive = [
            m for i, m in self.view.members.items() if i not in suspects and not m.ended and m.last_seen_at is not None
        ]
        runs, since_s = fleet.runs or (), now - fleet.seen_at
        return History(
            runs=[replace(run, started_s=run.started_s + since_s) for run in runs] if since_s else runs,
            lives=self.listening.lives,
            refusals=[(consumer, now - at) for consumer, at in fleet.refusals],
            launched={consumer: now - at for consumer, at in fleet.launched.items()},
            stopped=fleet.stopped,
            excused=fleet.excused,
            present=frozenset(m.member.consumer for m in alive),
            mute=self._mute() if self._listens else frozenset(),
        )

    def _mute(self) -> frozenset[Incarnation]:
        since = self.listening.at - mute_after_s(self.options.membership)
        lives = self.listening.lives.items()
        return frozenset(i for i, life in lives if life.notified_at is not None and life.notified_at < since)


def _between(earlier: float | None, later: float | None) -> float | None:
    return None if earlier is None or later is None else max(0.0, later - earlier)
