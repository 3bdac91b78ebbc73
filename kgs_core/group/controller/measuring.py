"""Measurements taken in: a partition that one measurement lacks is not gone yet.

A broker with stale metadata, or one that is starting, may answer as if a topic did not exist. Unknown is not
zero: such a partition keeps its consumer and its last known speed until it has been missing for a while.
"""

from dataclasses import replace

from kgs_core.group.controller.state import ControllerState
from kgs_core.group.protocol import RunState, Target
from kgs_core.group.view.plain_text import ranges
from kgs_core.model import TopicPartition
from kgs_core.planning.load import Load

SECOND_LOOK_S = 5.0
"""A partition is gone if measurements so far apart lack it, and all between them."""


def take_measured(state: ControllerState, event: Load, now: float) -> ControllerState:
    """`state` with a measurement.

    A rebalance run has one measurement only and trusts it: there, a partition that was seen within the monitor's window
    is unknown, not missing.
    """
    at = now - event.age_s
    standing = state.target.assignment if state.target else {}
    since = state.measured.missing if state.measured else {}
    missing = {p: since.get(p, at) for p in standing if p not in event.speeds and p not in event.unknown}
    kept = frozenset(p for p, first in missing.items() if at - first < SECOND_LOOK_S)
    unknown = event.unknown if state.options.until_done or not kept else event.unknown | kept
    return replace(state, measured=replace(event, unknown=unknown, read_at=now, missing=missing))


def remembered(load: Load, target: Target | None) -> Load:
    """`load` with the Target's speeds: as the earlier ones, and where the monitor does not know a speed."""
    last = target.speeds if target else {}
    known = {p: last[p] for p in load.unknown - load.speeds.keys() if p in last}
    return replace(load, speeds={**known, **load.speeds}, earlier=last)


def blind_wait(state: ControllerState, now: float) -> str:
    """Why no better packing is sought although it is time: there may be more consumers than the load needs.

    Empty: one is sought, or it is not time yet.
    """
    measured, packing = state.fresh(now), state.options.packing
    if state.target is None or state.view.run_state is not RunState.RUNNING or packing.apply == "forced_only":
        return ""
    unknown = measured.unknown if measured is not None else frozenset[TopicPartition]()
    if not unknown or state.since_packing_s(now) < packing.sentinel_timeout_s:
        return ""
    return f"not looking for a better packing: the write speed of {ranges(unknown)} is unknown"
