"""Plan that the controller would make now, whether one is due or not, beside those of other algorithms.

For callers with the controller's state, as a run under Dagster. `kgs.plan` has none: it uses the newest Target and
knows neither reports nor fleet. Both take the plan from `make_plan`, and what is due from `planning.triggers`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kgs_core.config.packing import PackingSettings
from kgs_core.group.controller.capacity import packing_in_use
from kgs_core.group.controller.measuring import remembered
from kgs_core.group.controller.state import ControllerState
from kgs_core.group.controller.target_selection import watched_group
from kgs_core.planning.group import Group
from kgs_core.planning.load import Load
from kgs_core.planning.plan import Plan, make_plan


@dataclass(frozen=True, slots=True)
class Preview:
    """A plan, and what it was made from.

    Attributes:
        load: with the last known speeds in the place of unknown ones.
        packing: the settings that it was made by, with the capacities in use.
    """

    plan: Plan
    load: Load
    group: Group
    packing: PackingSettings


def preview(state: ControllerState, now: float, compare: Sequence[str] = ()) -> Preview | None:
    """Result of a look at the group; None without a measurement."""
    if state.measured is None:
        return None
    group = watched_group(state, now).group()
    load = remembered(state.measured, state.target)
    packing = packing_in_use(state)
    plan = make_plan(load, group, packing, state.options.new_random, compare)
    return Preview(plan, load, group, packing)
