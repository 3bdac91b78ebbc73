"""An observer without the right to write: what a group needs now, by the controller's own rules.

It takes the same events as the controller but writes nothing, so it does not disturb the writer. A rebalance run
checks the observer's requests again. No state is kept from one observer to the next, so a restart loses none.

Silence counts only while somebody listens, as for the controller. An observer listens for less than a minute, which
may be shorter than `suspect_after_s`: so the age of the newest report counts too, by its own clock. But it suspects
nobody before it has listened for long enough to hear every living consumer, so a wrong clock makes no suspects.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kgs_core.group.controller.desired_state import assignments_for
from kgs_core.group.controller.launches import launch_consumers, take_fleet
from kgs_core.group.controller.measuring import take_measured
from kgs_core.group.controller.reading import read_from_beginning, read_on
from kgs_core.group.controller.state import ControllerState, Options, VainSearch
from kgs_core.group.controller.target_selection import select_target
from kgs_core.group.protocol import Heartbeat, Message, Received, Report
from kgs_core.group.view.events import FleetSeen, Launch, Stop, Write
from kgs_core.group.view.transitions import State
from kgs_core.model import ConsumerId
from kgs_core.planning.load import Load

HEARTBEATS_TO_HEAR = 3
"""Number of heartbeats within which every living consumer is heard."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Recommendation of what is to be done now.

    Attributes:
        reason: why a change is due; empty: none is.
        is_urgent: somebody is above capacity, or something is unread, until it is begun; or deaths are to be recorded,
            which takes a moment and is no reason for a run.
        packs: the Target that is due is what cannot wait, and not only assignments or deaths.
        launch: consumers to start, ascending; nobody while another Target is to be written, which may want others.
        unwanted: handles of runs to end because nobody wants them: their end is no failure.
        overdue: handles of runs to end because they have not reported in time.
    """

    reason: str = ""
    is_urgent: bool = False
    packs: bool = False
    launch: tuple[ConsumerId, ...] = ()
    unwanted: tuple[str, ...] = ()
    overdue: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewestReport:
    """The newest report or heartbeat of any consumer.

    Attributes:
        at: when it came, by the caller's steady clock.
    """

    offset: int
    at: float


@dataclass(frozen=True, slots=True)
class GroupObserver:
    """One observer; every call gives a new one. `now` is seconds on a steady clock, the same in every call.

    Attributes:
        state: what the controller would know.
    """

    state: ControllerState
    newest_report: NewestReport | None = None

    @classmethod
    def begin(
        cls, options: Options, messages: Sequence[Received[Message]], now: float, time_ms: int
    ) -> "GroupObserver":
        """An observer that has read all that the topics say."""
        newest = _newest_report(messages)
        age_s = max(0.0, (time_ms - newest.timestamp_ms) / 1000) if newest else 0.0
        state = ControllerState(
            replace(options, launches=True, until_done=False),
            time_ms - now * 1000,
            name=State.SENTINEL,
            entered_at=math.inf,  # so that it wakes no group for want of a measurement: the run would have none either
        )
        read = read_from_beginning(state, messages, now, age_s)
        heard_from = now + HEARTBEATS_TO_HEAR * options.membership.heartbeat_s
        return cls(
            replace(read, listening=replace(read.listening, silence_counts_from=heard_from)),
            NewestReport(newest.offset, now - age_s) if newest else None,
        )

    @property
    def target_offset(self) -> int | None:
        """Of the newest Target; None before the first."""
        return self.state.view.target.offset if self.state.view.target else None

    def read(self, messages: Sequence[Received[Message]], now: float) -> "GroupObserver":
        """Observer after newer records, see `read_on`; another Target counts as written just now."""
        read = read_on(self.state, messages, now)
        if read.view.target is not None and read.view.target.offset != self.target_offset:
            read = replace(read, change=replace(read.change, packed_at=now), search=VainSearch())
        newest = _newest_report(messages)
        return GroupObserver(read, NewestReport(newest.offset, now) if newest else self.newest_report)

    def observed(self, news: FleetSeen | Load, now: float) -> "GroupObserver":
        """Observer after news of the fleet or the monitor."""
        if isinstance(news, FleetSeen):
            return replace(self, state=take_fleet(self.state, news, now))
        return replace(self, state=take_measured(self.state, news, now))

    def recommend(self, now: float, *, target_stands: bool = False) -> tuple["GroupObserver", Recommendation]:
        """What is due now; the observer counts launches and stops as done.

        `target_stands`: no other Target will be written soon, so the consumers of the newest one are started: others
        may be waiting for them.
        """
        found = select_target(self.state, now)
        state = self.state
        if found.looked_in_vain:
            state = replace(state, search=VainSearch(now, found.held_back))
        changes = assignments_for(self.state, self.state.target)
        is_urgent = found.is_urgent or bool(changes)
        if found.target is not None and not target_stands:
            return replace(self, state=state), Recommendation(found.target.reason, is_urgent, found.is_urgent)
        reason = found.target.reason if found.target else _reason(self.state, changes, now)
        before = state.fleet.excused
        state, commands = launch_consumers(state, now)
        stops = [command.handle for command in commands if isinstance(command, Stop)]
        recommendation = Recommendation(
            reason=reason,
            is_urgent=is_urgent,
            packs=found.is_urgent,
            launch=tuple(command.consumer for command in commands if isinstance(command, Launch)),
            unwanted=tuple(handle for handle in stops if handle in state.fleet.excused - before),
            overdue=tuple(handle for handle in stops if handle not in state.fleet.excused),
        )
        return replace(self, state=state), recommendation


def _reason(state: ControllerState, changes: Write, now: float) -> str:
    """Why assignments or tombstones ask for a run; empty: they do not.

    Tombstones alone can wait: if others take over the partitions of a dead consumer, their assignments ask for a run,
    and a run for each other dead one would cost more than it brings.
    """
    if changes.assignments:
        return f"Assignments are due: {', '.join(str(assignment.member) for assignment in changes.assignments)}"
    if changes.tombstones and state.since_packing_s(now) >= state.options.packing.sentinel_timeout_s:
        gone = [f"consumer {t.member.consumer} (process {t.member.incarnation[:8]})" for t in changes.tombstones]
        return f"ended processes are to be recorded: {', '.join(gone)}"
    return ""


def _newest_report(messages: Sequence[Received[Message]]) -> Received[Message] | None:
    reports = [one for one in messages if isinstance(one.message, Report | Heartbeat)]
    return max(reports, key=lambda one: one.offset, default=None)
