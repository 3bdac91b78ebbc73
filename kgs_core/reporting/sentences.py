"""Sentences for people on what an observer sees of a group."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from kgs_core.group.controller.capacity import packing_in_use
from kgs_core.group.controller.desired_state import held_replacement
from kgs_core.group.controller.measuring import blind_wait
from kgs_core.group.controller.plan_request import FORCED_ONLY, request_wait
from kgs_core.group.controller.state import ControllerState
from kgs_core.group.protocol import RunState
from kgs_core.group.view.plain_text import clock_text, counted
from kgs_core.model import TopicPartition
from kgs_core.planning.overload import consumer_loads
from kgs_core.reporting.bad_shares import share_text
from kgs_core.reporting.capacity import capacity_sentences
from kgs_core.reporting.status import GroupStatus

_SHOWN = 3
_MB = 1e6


def sentences(found: GroupStatus, state: ControllerState, now: float) -> tuple[str, ...]:
    """Who reads, how much there is to read, who is silent, what is waited for; `found`: as of `state`."""
    return tuple(_all(found, state, now))


def _all(found: GroupStatus, state: ControllerState, now: float) -> Iterator[str]:
    is_running = found.run_state is RunState.RUNNING
    if not is_running:
        yield f"the group is to be {found.run_state}"
    yield _readers(found)
    if still := found.stopped:
        verb = "is" if len(still) == 1 else "are"
        yield f"{counted(len(still), 'partition')} {verb} stopped: {stopped_causes(still)}"
    yield _load(state, now)
    yield from capacity_sentences(found.capacity)
    for topic, share in found.bad_shares.items():
        yield f"topic {topic}: {share_text(share)} of its newest records are dead letters"
    yield from _members(state, now)
    yield from _held(found, state, now)
    if found.target is not None and is_running and found.waiting:
        yield f"waiting: {_some([f'{tp}: {why}' for tp, why in found.waiting.items()])}"


def _held(found: GroupStatus, state: ControllerState, now: float) -> Iterator[str]:
    """What is not done now, and why."""
    if (held := held_replacement(state)) is not None:
        yield str(held)
    if state.search.held_back is not None:
        yield str(state.search.held_back)
    yield from filter(None, (blind_wait(state, now), request_wait(state, now)))
    if found.quiet_until:
        yield f"until {found.quiet_until} only forced moves are made"
    elif found.forced_only:
        yield FORCED_ONLY


def _members(state: ControllerState, now: float) -> Iterator[str]:
    silent = sorted(state.view.members[i].member for i in state.suspects())
    if silent:
        yield f"silent: {_some([str(member) for member in silent])}"
    yield from _starts(state, now)


def stopped_causes(still: Mapping[TopicPartition, str]) -> str:
    """Topics of stopped partitions with how many there are and why, the first of them only."""
    counts = Counter((partition.topic, why) for partition, why in still.items())
    return _some([f"{topic} ({count}): {why}" for (topic, why), count in sorted(counts.items())])


def _readers(found: GroupStatus) -> str:
    target = found.target
    if target is None:
        return "no Target yet"
    owned = {partition: c for partition, c in found.current.items() if partition not in found.stopped}
    text = f"{counted(len(set(owned.values())), 'consumer')} read {len(owned.keys() & target.assignment.keys())} of "
    text += counted(len(target.assignment), "partition")
    if target.idle is not None:
        text = f"idle since {clock_text(target.idle.since_ms)}, everything is read"
    return text + (f", spare: {_some([str(c) for c in target.spares])}" if target.spares else "")


def _load(state: ControllerState, now: float) -> str:
    if state.measured is None:
        return "no measurement yet"
    if not state.fresh(now):
        return f"the last measurement is {now - state.measured.at:.0f} s old"
    load = state.measured
    text = f"{sum(load.speeds.values()) / _MB:.3g} MB/s in all"
    owned = {p: c for p, c in state.view.current().items() if p in load.speeds}
    loads = consumer_loads(owned, load.speeds)
    if loads:
        packing = packing_in_use(state)
        classes = packing.classes_of(state.view.classes())
        most = max(loads, key=lambda consumer: (loads[consumer] / classes.share(consumer), -consumer))
        capacity = packing.consumer_capacity * classes.share(most)
        text += f", most for consumer {most}: {loads[most] / _MB:.3g} of {capacity / _MB:.3g} MB/s"
    return text + (f", speed unknown: {counted(len(load.unknown), 'partition')}" if load.unknown else "")


def _starts(state: ControllerState, now: float) -> Iterator[str]:
    if state.fleet.runs is None:
        return
    starts = state.starts(now)
    if starts.starting:
        yield f"starting: {_some([str(c) for c in sorted(starts.starting)])}"
    for consumer, why in sorted(starts.trouble.items()):
        yield f"consumer {consumer} waits to start: {why}"
    if starts.held_s:
        yield f"no new consumer is started for {starts.held_s:.0f} s, because joined consumers keep failing"
    for consumer, wait_s in sorted(starts.waiting.items()):
        what = "quarantined for" if consumer in starts.quarantined else "tried again in"
        why = f": {starts.why[consumer]}" if consumer in starts.why else ""
        yield f"consumer {consumer} failed {counted(starts.failures[consumer], 'time')}, {what} {wait_s:.0f} s{why}"


def _some(names: Sequence[str]) -> str:
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join([*names[:_SHOWN], *more])
