"""The controller as a pure state machine: `step(state, event, now) -> (state, commands)`.

The driver carries out commands in order, one at a time, and passes the answer to each (see `events`) back at once. If
one fails, it drops those after it. It also passes on reports of the topics, the fleet and the monitor, and a Tick
about once a second; a rebalance run passes fleet and measurement before its first Tick.
Theory of operation: `transitions`.
"""

from dataclasses import replace
from typing import assert_never

from kgs_core.errors import ProtocolError
from kgs_core.group.controller.assignment_diff import differences
from kgs_core.group.controller.change_progress import with_change_over, with_started, with_target_written
from kgs_core.group.controller.desired_state import assignments_for, held_replacement, is_settled, upsets_now
from kgs_core.group.controller.launches import launch_consumers, take_fleet, take_refusal
from kgs_core.group.controller.measuring import blind_wait, take_measured
from kgs_core.group.controller.plan_request import packing_wait, request_wait
from kgs_core.group.controller.reading import read_from_beginning, read_on
from kgs_core.group.controller.state import (
    ChangeProgress,
    ControllerOutcome,
    ControllerState,
    Listening,
    Options,
    Result,
    VainSearch,
)
from kgs_core.group.controller.target_selection import TargetDecision, select_target, unread_to_place
from kgs_core.group.protocol import MemberAssignment, Target, Tombstone
from kgs_core.group.view.events import (
    Command,
    Event,
    Fence,
    Fenced,
    FleetSeen,
    Note,
    ReadToEnd,
    RecordsRead,
    StartFailed,
    Tick,
    WriteFailed,
    Written,
)
from kgs_core.group.view.group_health import described
from kgs_core.group.view.transitions import Cause, State, follow
from kgs_core.planning.load import Load

Step = tuple[ControllerState, tuple[Command, ...]]


def begin(options: Options, now: float, time_ms: int) -> Step:
    """A controller that has just started, and the commands that it begins with."""
    state = ControllerState(options, time_ms - now * 1000, entered_at=now, listening=Listening(now))
    return state, (Fence(), ReadToEnd())


def step(state: ControllerState, event: Event, now: float) -> Step:
    """State after `event`, and the commands to carry out. ProtocolError: an answer that no command asked for."""
    if state.name is State.ENDED:
        return state, ()
    taken, notes = _take(state, event, now)
    if taken.name is State.ENDED or taken.writing is not None or isinstance(event, WriteFailed):
        return taken, notes
    if taken.name is State.SYNCHRONIZE:
        return taken, notes
    acted, commands = _act(taken, event, now)
    return acted, notes + commands


def _take(state: ControllerState, event: Event, now: float) -> Step:
    """What `event` says, taken in; only answers to commands lead to another state."""
    match event:
        case RecordsRead():
            return _read_first(state, event, now) if state.name is State.SYNCHRONIZE else _read(state, event, now)
        case Written():
            return _written(state, event, now)
        case WriteFailed():
            again, notes = _go(replace(state, writing=None), Cause.OUTCOME_UNKNOWN, now, event.why)
            return again, (*notes, Fence(), ReadToEnd())
        case Fenced():
            return _end(state, Cause.FENCED, ControllerOutcome(Result.FENCED, "a newer controller has taken over"), now)
        case _:
            return _hear(state, event, now)


def _hear(state: ControllerState, event: FleetSeen | Load | StartFailed | Tick, now: float) -> Step:
    match event:
        case FleetSeen():
            return take_fleet(state, event, now), ()
        case Load():
            return take_measured(state, event, now), ()
        case StartFailed():
            note = Note("start failed", {"consumer": event.consumer, "why": event.why})
            return take_refusal(state, event, now), (note,)
        case Tick():
            return state, ()
        case _:
            assert_never(event)


def _read_first(state: ControllerState, event: RecordsRead, now: float) -> Step:
    read = read_from_beginning(state, event.messages, now, event.report_age_s)
    return _go(read, Cause.ASKED if state.options.until_done else Cause.SYNCHRONIZED, now)


def _read(state: ControllerState, event: RecordsRead, now: float) -> Step:
    """Take in newer records.

    A Target, assignment or tombstone of another writer means that it has the right to write. If this controller went on
    starting consumers beside it, they would be doubled.
    """
    if any(_is_foreign(state, one.message, one.offset) for one in event.messages):
        return _end(state, Cause.FENCED, ControllerOutcome(Result.FENCED, "a newer controller has written"), now)
    return read_on(state, event.messages, now), ()


def _is_foreign(state: ControllerState, message: object, offset: int) -> bool:
    match message:
        case Target():
            return state.view.target is None or offset > state.view.target.offset
        case MemberAssignment():
            member = state.view.members.get(message.member.incarnation)
            is_new = member is None or member.assignment is None or offset > member.assignment.offset
            return is_new and message.member.incarnation not in state.view.dead
        case Tombstone():
            return message.member in state.view.unmarked or message.member.incarnation in state.view.members
        case _:
            return False


def _written(state: ControllerState, event: Written, now: float) -> Step:
    write = state.writing
    if write is None:
        raise ProtocolError(
            "controller: told of a Write that it did not ask for: tell it the answers to its commands only"
        )
    notes = differences(state.view, write)
    done = replace(state, view=state.view.take_all(event.messages, now), writing=None)
    if write.target is None:
        return done, notes
    managing, more = _manage(with_target_written(done, write.target, now), Cause.TARGET_WRITTEN, now)
    return managing, (*notes, *more)


def _act(state: ControllerState, event: Event, now: float) -> Step:
    """Act on what is known; passes through the states at most once.

    The Sentinel acts on a Tick only: by then all news are in, so that a spare replaces a dead consumer before it is
    started anew. Launches wait for a write's answer: what stands behind a write that fails is dropped.
    """
    is_tick = isinstance(event, Tick)
    held_back = state.search.held_back
    state, commands = _note_silence(state)
    if state.name is State.GROUP_MANAGEMENT:
        state, more = _leave(with_started(state, now), now)
        commands += more
    if is_tick and state.name in {State.SENTINEL, State.REASSIGN}:
        state, more = _sentinel(state, now)
        commands += more
    if state.name is State.GROUP_MANAGEMENT:
        state, more = _write_assignments(state)
        commands += more
    may_launch = state.name is State.GROUP_MANAGEMENT or (
        isinstance(event, Tick | Written) and state.name is State.SENTINEL
    )
    if may_launch and state.writing is None:
        state, more = launch_consumers(state, now)
        commands += more
    if state.search.held_back not in (None, held_back):
        commands += (Note(str(state.search.held_back)),)
    if is_tick and state.writing is None:
        state, more = _note_wait(state, now)
        commands += more
    return state, commands


def _sentinel(state: ControllerState, now: float) -> Step:
    """Begin another Target, or other assignments, if they are due; a rebalance run does the same in Reassign."""
    found = select_target(state, now)
    if found.looked_in_vain:
        state = replace(state, search=VainSearch(now, found.held_back))
    if found.target is not None:
        return _reassign(state, found, now)
    is_run = state.options.until_done
    if assignments_for(state, state.target) or (is_run and not is_settled(state)):
        return _manage(state, Cause.TARGET_STANDS if is_run else Cause.OTHER_ASSIGNMENTS, now)
    if not is_run:
        return state, ()
    reason = str(found.held_back or "") or packing_wait(state, now) or "the group matches the Target"
    why = reason if state.fresh(now) else "no measurement is fresh enough to pack by"
    return _end(state, Cause.DONE, ControllerOutcome(Result.NOTHING_TO_DO, why), now)


def _reassign(state: ControllerState, found: TargetDecision, now: float) -> Step:
    notes: tuple[Command, ...] = ()
    if state.name is State.SENTINEL:
        state, notes = _go(state, Cause.ANOTHER_TARGET, now)
    write = replace(assignments_for(state, found.target), target=found.target)
    measured = state.measured if found.is_measured else None
    change = ChangeProgress(state.change.packed_at, accepted=state.change.accepted)
    if measured is not None:
        change = replace(change, measured_at=measured.at, read_at=measured.read_at)
    return replace(state, writing=write, change=change), (*notes, _rebalance_note(state, found), write)


def _write_assignments(state: ControllerState) -> Step:
    write = assignments_for(state, state.target)
    return (replace(state, writing=write), (write,)) if write else (state, ())


def _leave(state: ControllerState, now: float) -> Step:
    new = upsets_now(state, now) - state.change.accepted
    timeout_s = state.options.membership.group_management_timeout_s
    notes: tuple[Command, ...] = ()
    if is_settled(state):
        state, notes = with_change_over(state, now)
        cause, outcome = Cause.CONVERGED, ControllerOutcome(Result.CONVERGED)
    elif new or (unread := unread_to_place(state, now)):
        why = described(new) or f"a joined consumer can read {unread}"
        cause, outcome = Cause.SUPERSEDED, ControllerOutcome(Result.SUPERSEDED, why)
    elif now - state.entered_at >= timeout_s:
        cause, outcome = Cause.TIMED_OUT, ControllerOutcome(Result.TIMED_OUT, f"not finished after {timeout_s:g} s")
    else:
        return state, ()
    if state.options.until_done:
        left, more = _end(state, Cause.DONE, outcome, now)
    else:
        left, more = _go(state, cause, now, outcome.reason)
    return left, (*notes, *more)


def _manage(state: ControllerState, cause: Cause, now: float) -> Step:
    """Enter Group Management; disruptions that exist already do not end it."""
    change = replace(state.change, accepted=upsets_now(state, now))
    return _go(replace(state, change=change), cause, now)


def _go(state: ControllerState, cause: Cause, now: float, why: str = "") -> Step:
    to = follow(state.name, cause)
    note = Note("state", {"from": str(state.name), "to": str(to), "cause": str(cause), "why": why})
    return replace(state, name=to, entered_at=now), (note,)


def _end(state: ControllerState, cause: Cause, outcome: ControllerOutcome, now: float) -> Step:
    ended, notes = _go(state, cause, now, outcome.reason)
    return replace(ended, writing=None, outcome=outcome), notes


def _rebalance_note(state: ControllerState, found: TargetDecision) -> Note:
    before = set(state.target.assignment.values()) if state.target else set()
    after = set(found.target.assignment.values()) if found.target else set()
    return Note(
        "rebalance",
        {
            "reason": found.target.reason if found.target else "",
            "rscore": found.target.rscore if found.target else 0.0,
            "moved": found.moved,
            "consumers_before": len(before),
            "consumers_after": len(after),
            "overloaded": found.overloaded,
        },
    )


def _note_wait(state: ControllerState, now: float) -> Step:
    held = held_replacement(state)
    found = (str(held) if held is not None else "", blind_wait(state, now), request_wait(state, now))
    waits = "; ".join(filter(None, found))
    if waits == state.said.waits:
        return state, ()
    return replace(state, said=replace(state.said, waits=waits)), (Note(waits),) if waits else ()


def _note_silence(state: ControllerState) -> Step:
    suspected, said, members = state.suspects(), state.said.suspected, state.view.members
    news = [("suspected", i) for i in sorted(suspected - said)]
    news += [("heard again", i) for i in sorted(said - suspected) if i in members]
    notes = (Note(text, {"consumer": members[i].member.consumer, "incarnation": i}) for text, i in news)
    return replace(state, said=replace(state.said, suspected=suspected)), tuple(notes)
