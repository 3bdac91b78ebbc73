"""What an engineer must know of a group now, as an observer sees it: the alerts that need no history."""

from collections.abc import Collection, Mapping
from enum import StrEnum

from kgs_core.controller.state import ControllerState
from kgs_core.protocol import Incarnation, RunState

Alerts = Mapping["GroupAlert", tuple[str, ...] | None]
"""Alert -> what is wrong, a line each; empty: nothing; None: not known."""


class GroupAlert(StrEnum):
    """What should be true of a group that is well."""

    ALL_READ = "every_partition_read"
    ALL_HEARD = "consumers_heard"
    SPEEDS_KNOWN = "speeds_known"
    NONE_HOT = "no_hot_partition"


def group_alerts(state: ControllerState, silent: Collection[Incarnation] | None, now: float) -> Alerts:
    """How it is with each.

    Args:
        state: what an observer knows.
        silent: who is suspected; None: it has not listened for long enough to tell.
        now: steady clock, seconds.
    """
    is_measured = state.measured is not None and state.is_fresh(now)
    return {
        GroupAlert.ALL_READ: None if silent is None else _unread(state, silent),
        GroupAlert.ALL_HEARD: None if silent is None else _unheard(state, silent),
        GroupAlert.SPEEDS_KNOWN: _unknown(state) if is_measured else None,
        GroupAlert.NONE_HOT: _hot(state) if is_measured else None,
    }


def _unread(state: ControllerState, silent: Collection[Incarnation]) -> tuple[str, ...]:
    heard = [
        member.report
        for incarnation, member in state.view.members.items()
        if member.report is not None and not member.ended and incarnation not in silent
    ]
    stopped = {tp: why for report in heard for tp, why in report.stopped.items()}
    lines = [f"{tp} stands still: {why}" for tp, why in sorted(stopped.items())]
    if state.target is None or state.desired_run_state is not RunState.RUNNING:
        return tuple(lines)
    owned = {tp for report in heard for tp in report.owned}
    return (*(f"{tp} has no reader" for tp in sorted(state.target.assignment.keys() - owned)), *lines)


def _unheard(state: ControllerState, silent: Collection[Incarnation]) -> tuple[str, ...]:
    members = sorted(state.view.members[each].member for each in silent)
    quarantined = sorted(state.target.quarantined) if state.target is not None else []
    return (
        *(f"consumer {member} is silent" for member in members),
        *(f"consumer {consumer} is quarantined: its starts fail" for consumer in quarantined),
    )


def _unknown(state: ControllerState) -> tuple[str, ...]:
    load = state.measured.load if state.measured is not None else None
    return tuple(f"{tp}: its speed is not known" for tp in sorted(load.unknown)) if load is not None else ()


def _hot(state: ControllerState) -> tuple[str, ...]:
    load = state.measured.load if state.measured is not None else None
    limit = state.options.packing.consumer_capacity_bytes_per_s
    fast = sorted((tp, speed) for tp, speed in load.speeds.items() if speed > limit) if load is not None else []
    return tuple(f"{tp}: {speed:.3g} bytes/s, and a consumer reads {limit:.3g}" for tp, speed in fast)
