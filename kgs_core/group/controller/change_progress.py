"""Progress of the change to the newest Target: awaited consumers, its end, and the times that are kept."""

from dataclasses import replace

from kgs_core.group.controller.state import ControllerState
from kgs_core.group.protocol import Change, Target
from kgs_core.group.view.events import Command, Note


def with_target_written(state: ControllerState, target: Target, now: float) -> ControllerState:
    """`state` at the beginning of the change to `target`, which has just been written."""
    readers, joined = set(target.assignment.values()), state.view.joined(state.suspects())
    awaited = frozenset(readers - joined)
    change = replace(state.change, packed_at=now, awaited=awaited, started_at=None if awaited else now, settled_s=None)
    return replace(state, change=change, search=replace(state.search, held_back=None))


def with_started(state: ControllerState, now: float) -> ControllerState:
    """`state`, with the time at which the last awaited consumer joined."""
    change = state.change
    if change.awaited is None or change.started_at is not None:
        return state
    if not change.awaited <= state.view.joined(state.suspects()):
        return state
    return replace(state, change=replace(change, started_at=now))


def with_change_over(state: ControllerState, now: float) -> tuple[ControllerState, tuple[Command, ...]]:
    """`state` of a group that has reached its goal, and a line for the log when it does so for the first time."""
    if state.change.settled_s is not None or state.change.packed_at is None:
        return state, ()
    state = replace(state, change=replace(state.change, settled_s=now - state.change.packed_at))
    if state.target is None or not state.target.history:
        return state, ()
    change = with_times(state.target.history[-1], state)
    return state, (Note("change done", {name: None if s is None else round(s, 3) for name, s in change.times}),)


def with_times(change: Change, state: ControllerState) -> Change:
    """The newest change, with its times as far as this controller has seen them."""
    seen = state.change
    return replace(
        change, duration_s=seen.settled_s, seen_s=seen.seen_s, decided_s=seen.decided_s, started_s=seen.started_s
    )
