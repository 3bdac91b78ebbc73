"""State of the controller between two steps, and what follows from it at a moment."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from kgs_core.config.membership import MembershipSettings
from kgs_core.config.packing import FIRST_FLAT_OUT, PackingSettings
from kgs_core.group.controller.target_size import UnwritableTarget
from kgs_core.group.protocol import Incarnation, RunState, Target, Terms
from kgs_core.group.view.events import Measured, Write
from kgs_core.group.view.group_health import Disruption
from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.lifetimes import Lives
from kgs_core.group.view.response_times import Response
from kgs_core.group.view.restart_policy import History, Refusal, Starts, mute_after_s, plan_starts
from kgs_core.group.view.transitions import State
from kgs_core.model import BytesPerSecond, ConsumerId, TopicPartition
from kgs_core.packing import RandomSource
from kgs_core.planning.rebalance_budget import HeldBack
from kgs_core.planning.shares import shares_of
from kgs_core.ports import Run

_NOBODY: frozenset[Incarnation] = frozenset()


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a controller.

    Attributes:
        new_random: see `make_plan`.
        launches: it starts consumers and stops runs that nobody wants; else somebody else does.
        until_done: it carries out one change at most and ends.
        applies_plan: it is started to carry out what the packer wants, as `kgs plan --apply` asks for.
        terms: what the Target says that who joins must have; None: it says nothing.
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
class ControllerState:
    """Everything that a controller knows. `now` is seconds on a steady clock, the same in every call.

    Attributes:
        name: which state it is in, since `entered_at`.
        wall_ms: what the wall clock says when the steady clock says 0, ms.
        view: what the topics say; read to the end `read_at` for the last time.
        silence_counts_from: after a gap in reading, silence says nothing before then.
        lives: how long the incarnations have reported.
        runs: the fleet's answer at `runs_at`; None: nothing yet.
        launched: consumers that were launched and that the fleet has not shown yet -> when.
        refusals: launches that the fleet refused, and when.
        stopped: handles of runs that were asked to end.
        excused: those among them that nobody wanted.
        measured: the last measurement, made at `measured_at`, read at `measured_read_at`.
        missing: partitions of the Target that the last measurements do not know -> since when.
        writing: the Write that is under way.
        packed_at: when the Target was written.
        looked_at: when a better packing was looked for in vain; `held_back`: one was found then, and must wait or
            cannot be written.
        settled_s: how long the change to the Target took; None: it is not over.
        response: where that time goes; None: another controller has written the Target.
        accepted: what was amiss when Group Management began.
        suspected: who was suspected at the last step; `quarantined` likewise.
        waits: what was waited for at the last Tick, for people; empty: nothing.
        outcome: None until it has ended.
    """

    options: Options
    wall_ms: float
    name: State = State.SYNCHRONIZE
    entered_at: float = 0.0
    view: GroupView = field(default_factory=GroupView)
    read_at: float = 0.0
    silence_counts_from: float = 0.0
    lives: Lives = field(default_factory=dict)
    runs: tuple[Run, ...] | None = None
    runs_at: float = 0.0
    launched: Mapping[ConsumerId, float] = field(default_factory=dict)
    refusals: tuple[tuple[ConsumerId, float], ...] = ()
    stopped: frozenset[str] = frozenset()
    excused: frozenset[str] = frozenset()
    measured: Measured | None = None
    measured_at: float = 0.0
    measured_read_at: float = 0.0
    missing: Mapping[TopicPartition, float] = field(default_factory=dict)
    writing: Write | None = None
    packed_at: float | None = None
    looked_at: float | None = None
    held_back: HeldBack | UnwritableTarget | None = None
    settled_s: float | None = None
    response: Response | None = None
    accepted: frozenset[Disruption] = frozenset()
    suspected: frozenset[Incarnation] = frozenset()
    quarantined: frozenset[ConsumerId] = frozenset()
    waits: str = ""
    outcome: ControllerOutcome | None = None

    @property
    def target(self) -> Target | None:
        """The newest Target."""
        return self.view.target.message if self.view.target else None

    @property
    def desired_run_state(self) -> RunState:
        """What people want of the group as a whole."""
        return self.view.run_state

    @property
    def strict(self) -> bool:
        """Whether only a confirmed death frees a partition."""
        return self.options.membership.strict_handover

    def suspects(self) -> frozenset[Incarnation]:
        """Who has been silent for too long while the controller listened."""
        if self.read_at < self.silence_counts_from:
            return _NOBODY
        return self.view.suspects(self.read_at, self.options.membership.suspect_after_s)

    def wanted(self) -> frozenset[ConsumerId]:
        """Consumers that shall be started where they are missing."""
        if self.target is None or self.desired_run_state is not RunState.RUNNING:
            return frozenset()
        return frozenset((*shares_of(self.target.assignment), *self.target.spares))

    def starts(self, now: float) -> Starts:
        """Who is to be started now, as far as that is known."""
        return plan_starts(self.wanted(), self._history(now), self.options.membership)

    def terms(self) -> Terms | None:
        """What a Target written now says that who joins must have."""
        own, asked = self.options.terms, self.view.asked
        if own is None or asked is None or asked.message.config_hash in own.config_hashes:
            return own
        return replace(own, config_hashes=(*own.config_hashes, asked.message.config_hash))

    def time_ms(self, now: float) -> int:
        """The wall clock, ms since 1970."""
        return round(self.wall_ms + now * 1000)

    def since_packing_s(self, now: float) -> float:
        """Time since partitions were packed last, or a better packing was looked for in vain."""
        return now - max(self.packed_at or 0.0, self.looked_at or 0.0)

    def is_fresh(self, now: float) -> bool:
        """Whether there is a measurement to pack by."""
        return self.measured is not None and now - self.measured_at <= self.options.membership.max_measurement_age_s

    def _history(self, now: float) -> History:
        suspects = self.suspects()
        alive = [
            m for i, m in self.view.members.items() if i not in suspects and not m.ended and m.last_seen_at is not None
        ]
        runs, since_s = self.runs or (), now - self.runs_at
        return History(
            runs=[replace(run, started_s=run.started_s + since_s) for run in runs] if since_s else runs,
            lives=self.lives,
            refusals=[Refusal(consumer, now - at) for consumer, at in self.refusals],
            launched={consumer: now - at for consumer, at in self.launched.items()},
            stopped=self.stopped,
            excused=self.excused,
            present=frozenset(m.member.consumer for m in alive),
            mute=self._mute(),
        )

    def _mute(self) -> frozenset[Incarnation]:
        """Who waited with its start and has fallen silent, while the controller listened."""
        if self.read_at < self.silence_counts_from:
            return _NOBODY
        since = self.read_at - mute_after_s(self.options.membership)
        return frozenset(
            i for i, life in self.lives.items() if life.notified_at is not None and life.notified_at < since
        )
