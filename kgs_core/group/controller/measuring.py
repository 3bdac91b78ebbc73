"""A measurement taken in: one look at which a partition is missing does not say that it is gone.

A broker whose metadata lag, or that is being started, answers for a moment as if a topic were not there. Unknown is not
zero: such a partition keeps its consumer and its last known speed until it has been missing for a while.
"""

from dataclasses import replace

from kgs_core.group.controller.state import ControllerState
from kgs_core.group.protocol import RunState, Target
from kgs_core.group.view.events import Measured
from kgs_core.group.view.plain_text import ranges
from kgs_core.planning.load import Load

SECOND_LOOK_S = 5.0
"""A partition is gone that is missing in measurements so far apart, and in all between them."""


def take_measured(state: ControllerState, event: Measured, now: float) -> ControllerState:
    """`state` with a measurement.

    A rebalance run has one look only: it takes the word of its measurement, in which a partition that was seen within
    the monitor's window is unknown, and not missing.
    """
    at = now - event.age_s
    speeds, unknown = event.load.speeds, event.load.unknown
    standing = state.target.assignment if state.target else {}
    missing = {p: state.missing.get(p, at) for p in standing if p not in speeds and p not in unknown}
    kept = frozenset(p for p, since in missing.items() if at - since < SECOND_LOOK_S)
    if kept and not state.options.until_done:
        event = replace(event, load=replace(event.load, unknown=event.load.unknown | kept))
    return replace(state, measured=event, measured_at=at, measured_read_at=now, missing=missing)


def remembered(load: Load, target: Target | None) -> Load:
    """`load`, with the speeds that the Target was packed with: as earlier ones, and where the monitor knows none.

    Such a speed may hold a share of a backlog, so none is added to it once more.
    """
    last = target.speeds if target else {}
    known = {p: last[p] for p in load.unknown - load.speeds.keys() if p in last}
    lags = {p: lag for p, lag in load.lag_bytes.items() if p not in known}
    return replace(load, speeds={**known, **load.speeds}, lag_bytes=lags, earlier=last)


def blind_wait(state: ControllerState, now: float) -> str:
    """Why nobody looks for a better packing though it is time: consumers may run that the load no longer needs.

    Empty: somebody does, or it is not time yet.
    """
    if (
        state.target is None
        or state.desired_run_state is not RunState.RUNNING
        or state.measured is None
        or not state.is_fresh(now)
        or state.options.packing.apply == "forced_only"
    ):
        return ""
    unknown = state.measured.load.unknown
    if not unknown or state.since_packing_s(now) < state.options.packing.sentinel_timeout_s:
        return ""
    return f"no better packing is looked for: not known how fast {ranges(unknown)} grows"
