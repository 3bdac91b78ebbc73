"""Request of a person to carry out once what the packer wants: `kgs plan --apply`.

The request is a field of the newest DesiredState, its answer a field of the Target. While the two differ, the
controller looks for a better packing at once, also where `packing.apply` is `forced_only`, and takes the plan as it
takes any other. The Target that it writes then names the request: a better packing, or the standing one where there is
none. So a controller that is killed before that write leaves the request open to the next one, and killed after it,
answered: hence once. Whatever else people ask of the group takes the place of a request that is still open.
"""

import math

from kgs_core.group.controller.state import ControllerState
from kgs_core.group.protocol import DesiredState, RunState, Target
from kgs_core.group.view.plain_text import printable, ranges
from kgs_core.group.view.rolling_replacement import is_trying

ASKED = "asked for by "
"""Part of a Target's reason, in front of the requester's name."""
FORCED_ONLY = "changes that are not forced wait for `kgs plan --apply`"
"""For people, where `packing.apply` is `forced_only`."""


def open_request(desired: DesiredState | None, target: Target | None) -> DesiredState | None:
    """The request that is still to be answered; None: there is none."""
    if desired is None or desired.apply_ms is None:
        return None
    return desired if target is None or target.applied_ms != desired.apply_ms else None


def packing_wait(state: ControllerState, now: float) -> str:
    """Why no better packing is sought, even after a long time; empty: one is sought."""
    packing, target = state.options.packing, state.target
    if until := packing.forced_only_until(state.time_ms(now)):
        return f"only forced moves are made (packing.apply) until {until}"
    if target is not None and is_trying(state.view, target, state.view.joined(state.suspects())):
        return "a replacement is under way"
    return FORCED_ONLY if packing.apply == "forced_only" and not _asks(state) else ""


def since_packing_s(state: ControllerState, now: float) -> float:
    """Time since partitions were packed, as exit conditions count it: 0 while nobody looks for a better packing.

    A request does not wait, unless the last search found a better packing that the budget holds back.
    """
    if packing_wait(state, now):
        return 0.0
    return math.inf if _asks(state) and state.search.held_back is None else state.since_packing_s(now)


def request_wait(state: ControllerState, now: float) -> str:
    """What an open request waits for, for people; empty: none is open, or it is carried out now."""
    request = open_request(state.view.desired_state, state.target)
    if request is None or state.view.run_state is not RunState.RUNNING:
        return ""
    why = packing_wait(state, now) or _unknown(state, now) or str(state.search.held_back or "")
    return f"`kgs plan --apply` of {printable(request.by)} waits: {why}" if why else ""


def _asks(state: ControllerState) -> bool:
    return state.options.applies_plan or open_request(state.view.desired_state, state.target) is not None


def _unknown(state: ControllerState, now: float) -> str:
    load = state.fresh(now)
    if load is None:
        return "no measurement is fresh enough"
    if load.unknown:
        return f"the write speed is unknown: {ranges(load.unknown)}"
    unread = load.speeds.keys() - state.view.current().keys()
    return f"unread partitions come first: {ranges(unread)}" if unread else ""
