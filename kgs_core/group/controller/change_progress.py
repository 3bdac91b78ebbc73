"""Progress of the change to the newest Target: who is awaited, when it was over, and what of that is kept."""

from dataclasses import replace

from kgs_core.group.controller.state import ControllerState
from kgs_core.group.protocol import Change, Target
from kgs_core.group.view.events import Command, Note
from kgs_core.group.view.response_times import Response


def with_target_written(state: ControllerState, target: Target, now: float) -> ControllerState:
    """`state` at the beginning of the change to `target`, which has just been written."""
    readers, joined = set(target.assignment.values()), state.view.joined(state.suspects())
    response = (state.response or Response()).written(readers, joined, now)
    return replace(state, packed_at=now, settled_s=None, held_back=None, response=response)


def with_started(state: ControllerState, now: float) -> ControllerState:
    """`state`, with when the last consumer joined that the change awaits."""
    response = state.response
    if response is None or not response.is_starting or not response.awaited <= state.view.joined(state.suspects()):
        return state
    return replace(state, response=replace(response, started_at=now))


def with_change_over(state: ControllerState, now: float) -> tuple[ControllerState, tuple[Command, ...]]:
    """`state` of a group that is as it shall be, and a line for the log when that is so for the first time."""
    if state.settled_s is not None or state.packed_at is None:
        return state, ()
    state = replace(state, settled_s=now - state.packed_at)
    if state.target is None or not state.target.history:
        return state, ()
    change = with_times(state.target.history[-1], state)
    return state, (Note("change done", {name: None if s is None else round(s, 3) for name, s in change.times}),)


def with_times(change: Change, state: ControllerState) -> Change:
    """The newest change, with its times as far as this controller has seen them."""
    times = state.response or Response()
    return replace(
        change,
        duration_s=state.settled_s,
        seen_s=times.seen_s,
        decided_s=times.decided_s,
        started_s=times.started_s,
    )
