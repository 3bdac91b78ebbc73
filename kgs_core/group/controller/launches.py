"""Runs of consumers: the fleet's report, launches, and runs that are asked to end."""

from collections.abc import Iterator
from dataclasses import replace

from kgs_core.group.controller.state import ControllerState, KnownRuns
from kgs_core.group.protocol import RunState
from kgs_core.group.view.events import Command, FleetSeen, Launch, Note, StartFailed, Stop
from kgs_core.group.view.restart_policy import Starts, retry_after_s
from kgs_core.model import ConsumerId
from kgs_core.planning.shares import shares_of
from kgs_core.ports import Run

SPARES_WAIT_S = 15.0
"""How long a spare is not launched for the sake of a consumer that starts to read; most have joined by then."""
_SLACK_S = 1.0
"""A run may look this much older than its launch and still be its run: fleets use other clocks."""


def take_fleet(state: ControllerState, event: FleetSeen, now: float) -> ControllerState:
    """`state` with the fleet's report; entries that are of no use any more are dropped."""
    view, known, listening = state.view.bury(event.dead), state.fleet, state.listening
    handles = {run.handle for run in event.runs}
    settings = state.options.membership
    fleet = KnownRuns(
        runs=tuple(event.runs),
        seen_at=now,
        launched={
            consumer: at
            for consumer, at in known.launched.items()
            if now - at <= settings.start_timeout_s and not _is_shown(consumer, now - at, event)
        },
        refusals=tuple((c, at) for c, at in known.refusals if now - at <= retry_after_s(settings)),
        stopped=known.stopped & handles,
        excused=known.excused & handles,
    )
    lives = {i: life for i, life in listening.lives.items() if i not in view.dead or life.run_id in handles}
    return replace(state, view=view, fleet=fleet, listening=replace(listening, lives=lives))


def take_refusal(state: ControllerState, event: StartFailed, now: float) -> ControllerState:
    """A launch that the fleet has refused."""
    launched = {c: at for c, at in state.fleet.launched.items() if c != event.consumer}
    refusals = (*state.fleet.refusals, (event.consumer, now))
    return replace(state, fleet=replace(state.fleet, launched=launched, refusals=refusals))


def launch_consumers(state: ControllerState, now: float) -> tuple[ControllerState, tuple[Command, ...]]:
    """Launch missing consumers, and ask runs to end that are unwanted or never join; each only once.

    Does nothing before the first report of the fleet, or while the group is paused.
    """
    desired = state.view.run_state
    has_word = desired is RunState.STOPPED or (desired is RunState.RUNNING and state.target is not None)
    fleet = state.fleet
    if not state.options.launches or fleet.runs is None or not has_word:
        return state, ()
    starts = state.starts(now)
    launch = _launched_now(state, starts)
    unwanted = sorted({run.handle for run in _unwanted(state)} - fleet.stopped)
    overdue = sorted(starts.overdue - fleet.stopped - {*unwanted})
    asked = replace(
        fleet,
        launched={**fleet.launched, **dict.fromkeys(launch, now)},
        stopped=fleet.stopped.union(unwanted, overdue),
        excused=fleet.excused.union(unwanted),
    )
    commands: list[Command] = [
        Note(
            "quarantined",
            {"consumer": c, "failures": starts.failures[c]} | ({"why": starts.why[c]} if starts.why.get(c) else {}),
        )
        for c in sorted(starts.quarantined - state.said.quarantined)
    ]
    commands += [Stop(handle) for handle in (*unwanted, *overdue)]
    classes = state.target.class_of if state.target is not None else {}
    commands += [Launch(consumer, classes.get(consumer, "")) for consumer in launch]
    said = replace(state.said, quarantined=starts.quarantined)
    return replace(state, fleet=asked, said=said), tuple(commands)


def _launched_now(state: ControllerState, starts: Starts) -> tuple[ConsumerId, ...]:
    """Who is due; spares only once the readers have joined, for one that starts beside them takes their processors."""
    readers = shares_of(state.target.assignment).keys() if state.target else ()
    just_launched = {consumer for consumer, age_s in starts.starting.items() if age_s < SPARES_WAIT_S}
    due = [consumer for consumer in starts.launch if consumer in readers]
    return tuple(due) if due or just_launched.intersection(readers) else starts.launch


def _is_shown(consumer: ConsumerId, age_s: float, event: FleetSeen) -> bool:
    """Whether the fleet shows the run of a launch `age_s` ago."""
    mine = [run for run in event.runs if run.consumer == consumer]
    return any(not run.is_over or run.started_s <= age_s + _SLACK_S for run in mine)


def _unwanted(state: ControllerState) -> Iterator[Run]:
    """Unwanted runs that no assignment reaches: they have not joined, or are silent.

    Consumers that have joined are told to end by an assignment, once they have let go of their partitions. A run is
    unwanted if its consumer is not in the Target, or if another run of it is heard: somebody has doubled it.
    """
    wanted, suspects = state.wanted(), state.suspects()
    joined = {incarnation: life for incarnation, life in state.listening.lives.items() if not life.is_starting}
    heard = {life.run_id for incarnation, life in joined.items() if incarnation not in suspects}
    nameless = {life.member.consumer for life in joined.values() if not life.run_id}
    going_on = [run for run in state.fleet.runs or () if not run.is_over]
    oldest_s = {run.consumer: run.started_s for run in going_on if run.handle in heard}
    for run in going_on:
        is_double = run.started_s < oldest_s.get(run.consumer, 0.0)
        if (run.consumer not in wanted or is_double) and run.handle not in heard and run.consumer not in nameless:
            yield run
