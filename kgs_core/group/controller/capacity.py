"""Capacity that the controller packs by: as configured, or as consumers have shown it; see `planning`."""

from collections.abc import Collection, Mapping

from kgs_core.config.packing import PackingSettings
from kgs_core.group.controller.state import ControllerState
from kgs_core.group.protocol import ClassOfTarget, Incarnation, LearntCapacity, Target, of_target
from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.rolling_replacement import Replacement, outdated
from kgs_core.model import BytesPerSecond, ConsumerId
from kgs_core.planning.learnt_capacity import BytesPerOffset, Capacity, capacity_of, learn
from kgs_core.planning.overload import consumer_loads
from kgs_core.planning.plan import Plan
from kgs_core.planning.triggers import Watched


def group_capacity(state: ControllerState) -> Capacity:
    """The learnt capacity beside the configured one, and the settings with those in use."""
    sizes = state.measured.bytes_per_offset if state.measured is not None else {}
    options = state.options
    return capacity_seen(state.view, options.packing, sizes, state.suspects(), options.first_flat_out)


def packing_in_use(state: ControllerState) -> PackingSettings:
    """The settings to pack by."""
    return capacity_in_use(state)[0]


def capacity_in_use(state: ControllerState) -> tuple[PackingSettings, LearntCapacity | None]:
    """Settings to pack by, and the capacity that a Target packed by them records; reads reports only if needed."""
    packing = state.options.packing
    if not packing.learns_capacity:
        return packing, None
    found = group_capacity(state)
    return found.packing, found.memory


def capacity_seen(
    view: GroupView,
    packing: PackingSettings,
    bytes_per_offset: BytesPerOffset,
    suspects: Collection[Incarnation],
    first: BytesPerSecond | None = None,
) -> Capacity:
    """Like `group_capacity`, for callers without a controller's state.

    Args:
        bytes_per_offset: topic -> stored bytes of one offset, by the newest measurement.
        suspects: silent incarnations, whose last reports do not count.
        first: what a consumer is taken to read flat out before anything is learnt, stored bytes/s; None: not known.
    """
    reports = [
        member.report
        for incarnation, member in view.members.items()
        if member.report is not None and not member.ended and incarnation not in suspects
    ]
    target = view.target.message if view.target is not None else None
    learnt = learn(reports, bytes_per_offset, packing.classes)
    if target is None:
        return capacity_of(packing, learnt, None, first)
    sizes = {name: found.capacity / target.capacity for name, found in target.classes.items()}
    return capacity_of(packing, learnt, target.learnt, first, sizes)


def capacities_to_keep(packing: PackingSettings, target: Target | None) -> Mapping[str, BytesPerSecond]:
    """Of the classes that have had consumers, as they are packed to now: else what is learnt would go with the last."""
    sizes = packing.classes_of({}).sizes
    return {name: sizes[name].capacity for name in (target.classes if target is not None else ()) if name in sizes}


def classes_planned(
    plan: Plan, packing: PackingSettings, target: Target | None, watched: Watched
) -> Mapping[str, ClassOfTarget]:
    """Classes of a plan's consumers, and of those that are quarantined."""
    failing = {consumer: watched.classes[consumer] for consumer in watched.failing & watched.classes.keys()}
    return of_target(plan.classes, plan.capacity_of, capacities_to_keep(packing, target), failing)


def classes_after(
    step: Replacement, state: ControllerState, target: Target, quarantined: Collection[ConsumerId]
) -> Mapping[str, ClassOfTarget]:
    """Classes of the consumers of this step; capacities are those that the Target was packed to."""
    unsaid = dict.fromkeys(target.consumers, "")  # who runs without a class is of the first
    classes = packing_in_use(state).classes_of({**unsaid, **state.view.classes()}, quarantined)
    if not classes.sizes:
        return {}
    leaver = next(iter(outdated(state.view, tuple(set(step.assignment.values())))), None)
    load = max(consumer_loads(step.assignment, target.speeds).values(), default=0.0)
    new = classes.cheapest_for(load) if leaver is None else classes.name(leaver)  # who is to take over from it
    chosen = classes.with_new({*step.assignment.values(), *step.spares}, new)
    known = {name: found.capacity for name, found in target.classes.items()}
    kept = {name: capacity for name, capacity in known.items() if name in classes.sizes}
    failing = {consumer: classes.name(consumer) for consumer in quarantined if consumer in classes.of}
    return of_target(chosen.of, lambda c: known.get(chosen.of[c], target.capacity * chosen.share(c)), kept, failing)
