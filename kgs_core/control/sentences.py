"""What an observer sees of a group, in sentences for people."""

from collections.abc import Iterator, Sequence

from kgs_core.control.controller_state import ControllerState
from kgs_core.control.overload import consumer_loads
from kgs_core.control.reconcile import waiting
from kgs_core.protocol import RunState

_SHOWN = 3
_MB = 1e6


def sentences(state: ControllerState, now: float) -> tuple[str, ...]:
    """Who reads, how much there is to read, who is silent, what is waited for."""
    return tuple(_all(state, now))


def _all(state: ControllerState, now: float) -> Iterator[str]:
    if state.wish is not RunState.RUNNING:
        yield f"people want the group {state.wish}"
    yield _readers(state)
    yield _load(state, now)
    members = state.view.members
    silent = sorted(members[i].member for i in state.suspects())
    if silent:
        yield f"silent: {_some([str(member) for member in silent])}"
    yield from _starts(state, now)
    if state.held_back is not None:
        yield str(state.held_back)
    if state.target is not None and state.wish is RunState.RUNNING:
        late = waiting(state.view, state.target.assignment, state.suspects())
        if late:
            yield f"waiting: {_some([str(one) for one in late])}"


def _readers(state: ControllerState) -> str:
    if state.target is None:
        return "no Target yet"
    owned = state.view.current()
    wanted, spares = state.target.assignment, state.target.spares
    text = f"{_count(len(set(owned.values())), 'consumer')} read {len(owned.keys() & wanted.keys())} of "
    return f"{text}{_count(len(wanted), 'partition')}" + (
        f", spare: {_some([str(c) for c in spares])}" if spares else ""
    )


def _load(state: ControllerState, now: float) -> str:
    if state.measured is None:
        return "no measurement yet"
    if not state.is_fresh(now):
        return f"the last measurement is {now - state.measured_at:.0f} s old"
    load = state.measured.load
    text = f"{sum(load.speeds.values()) / _MB:.3g} MB/s in all"
    owned = {p: c for p, c in state.view.current().items() if p in load.speeds}
    loads = consumer_loads(owned, load.speeds)
    if loads:
        most = max(loads, key=lambda consumer: (loads[consumer], -consumer))
        capacity = state.options.packing.consumer_capacity_bytes_per_s
        text += f", most for consumer {most}: {loads[most] / _MB:.3g} of {capacity / _MB:.3g} MB/s"
    return text + (f", speed unknown: {_count(len(load.unknown), 'partition')}" if load.unknown else "")


def _starts(state: ControllerState, now: float) -> Iterator[str]:
    if state.runs is None:
        return
    starts = state.starts(now)
    if starts.starting:
        yield f"starting: {_some([str(c) for c in sorted(starts.starting)])}"
    for consumer, wait_s in sorted(starts.waiting.items()):
        what = "set aside for" if consumer in starts.set_aside else "tried again in"
        yield f"consumer {consumer} failed to start {_count(starts.failures[consumer], 'time')}, {what} {wait_s:.0f} s"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _some(names: Sequence[str]) -> str:
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join([*names[:_SHOWN], *more])
