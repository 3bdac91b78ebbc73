"""Scale to zero: when a group may sleep because everything is read, and what wakes it.

While it sleeps, its Target gives nothing to anybody and holds the proof, `Idle`: up to where everything was read. So
whoever controls the group next compares that with the ends of the logs, however long ago the last report was. Whatever
is not as the proof says wakes the group: more records, other topics, an end that is not known. To wake in vain costs a
start, and the group sleeps again no sooner than `packing.idle_after_s` after its Target.

That nothing was written meanwhile follows from the reports: a consumer reads only what was written, so if its position
of long ago is the end of the log now, nothing came in between.
"""

from collections.abc import Collection, Mapping

from kgs_core.group.controller.state import ControllerState
from kgs_core.group.protocol import Idle
from kgs_core.group.view.plain_text import ranges
from kgs_core.group.view.transitions import State
from kgs_core.model import TopicPartition
from kgs_core.planning.load import Load

_SHOWN = 5


def due_sleep(state: ControllerState, now: float) -> Idle | None:
    """The proof by which the group may sleep from now on; None: it may not, or sleeps already."""
    after_s, measured, target = state.options.packing.idle_after_s, state.fresh(now), state.target
    if after_s is None or measured is None or target is None or target.idle is not None:
        return None
    if measured.unknown or any(measured.speeds.values()) or measured.speeds.keys() != measured.ends.keys():
        return None
    since, packed_at = _read_since(state, measured.ends), state.change.packed_at
    if since is None or packed_at is None or now - max(since, packed_at) < after_s:
        return None
    return Idle(state.time_ms(since), measured.ends, measured.topic_ids)


def waking_reason(state: ControllerState, now: float) -> str:
    """Why a sleeping group must wake; empty: it may sleep on, or does not sleep."""
    idle = state.target.idle if state.target is not None else None
    if idle is None:
        return ""
    if state.options.packing.idle_after_s is None:
        return "packing.idle_after_s is null"
    if (load := state.fresh(now)) is None:
        return "" if blind_load(state, now) is None else "the ends of the logs are not known"
    if load.ends == idle.ends and load.topic_ids == idle.topic_ids:
        return ""
    unknown = (load.unknown | load.speeds.keys()) - load.ends.keys()
    other = {tp for tp in load.ends if idle.topic_ids.get(tp.topic) != load.topic_ids.get(tp.topic)}
    more = {tp for tp, end in load.ends.items() if idle.ends.get(tp) != end} - other
    found = (("records to read", more), ("other topics", other), ("ends of logs not known", unknown))
    return "; ".join(f"{what}: {_some(tps)}" for what, tps in found if tps)


def blind_load(state: ControllerState, now: float) -> Load | None:
    """What to wake a sleeping group by where nobody measures: nothing is known of what was read to its end.

    None: the group does not sleep, or it is not certain yet that nobody measures.
    """
    idle, limit_s = state.target.idle if state.target else None, state.options.membership.max_measurement_age_s
    has_waited = state.name is State.SENTINEL and now - state.entered_at > limit_s
    if idle is None or state.fresh(now) is not None or not has_waited:
        return None
    return Load({}, frozenset(idle.ends), read_at=now)


def _some(partitions: Collection[TopicPartition]) -> str:
    more = f" and {len(partitions) - _SHOWN} more" if len(partitions) > _SHOWN else ""
    return ranges(sorted(partitions)[:_SHOWN]) + more


def _read_since(state: ControllerState, ends: Mapping[TopicPartition, int]) -> float | None:
    """Since when reports say that everything up to `ends` is read; None: not all of it is, for all that is known."""
    suspects = state.suspects()
    read: dict[TopicPartition, int] = {}
    times = []
    for incarnation, member in state.view.members.items():
        if not member.possibly_owned:
            continue
        report, since = member.report, member.positions_since
        if report is None or since is None or report.stopped or incarnation in suspects:
            return None
        read.update(report.positions)
        times.append(since)
    return max(times) if times and read == ends else None
