"""What an engineer must know of a group now, as an observer sees it: the alerts that need no history."""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from kgs_core.group.protocol import Member, RunState
from kgs_core.reporting.status import GroupStatus

Alerts = Mapping["GroupAlert", tuple[str, ...] | None]
"""Alert -> what is wrong, a line each; empty: nothing; None: not known."""


class GroupAlert(StrEnum):
    """What should be true of a group that is well."""

    ALL_READ = "every_partition_read"
    ALL_HEARD = "consumers_heard"
    SPEEDS_KNOWN = "speeds_known"
    NONE_HOT = "no_hot_partition"


def group_alerts(found: GroupStatus, *, has_listened: bool) -> Alerts:
    """How it is with each; `has_listened`: for long enough to tell who is silent."""
    load, hot = found.facts.load, found.hot_partitions or {}
    limit = found.largest_capacity
    lines = {
        GroupAlert.ALL_READ: _unread(found) if has_listened else None,
        GroupAlert.ALL_HEARD: _unheard(found) if has_listened else None,
        GroupAlert.SPEEDS_KNOWN: (f"{tp}: its speed is not known" for tp in sorted(load.unknown if load else ())),
        GroupAlert.NONE_HOT: (f"{tp}: {v:.3g} bytes/s, and a consumer reads {limit:.3g}" for tp, v in hot.items()),
    }
    unmeasured = (GroupAlert.SPEEDS_KNOWN, GroupAlert.NONE_HOT) if load is None else ()
    return {alert: None if said is None or alert in unmeasured else tuple(said) for alert, said in lines.items()}


def _unread(found: GroupStatus) -> Iterator[str]:
    read = found.partition_states
    if found.target is not None and found.run_state is RunState.RUNNING:
        yield from (f"{tp} has no reader" for tp in sorted(found.target.assignment.keys() - read.keys()))
    yield from (f"{tp} is stopped: {why}" for tp, why in sorted(found.stopped.items()) if tp in read)


def _unheard(found: GroupStatus) -> Iterator[str]:
    silent = (Member(row.consumer, row.incarnation) for row in found.consumers if row.incarnation and row.is_silent)
    yield from (f"consumer {member} is silent" for member in silent)
    for consumer in sorted(found.target.quarantined) if found.target is not None else ():
        yield f"consumer {consumer} is quarantined: its starts fail"
