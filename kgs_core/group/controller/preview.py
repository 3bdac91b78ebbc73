"""Plan that the controller would make now, whether one is due or not, beside those of other algorithms.

For callers with the controller's state, as a run under Dagster. `kgs.plan` has none: it uses the newest Target and
knows neither reports nor fleet. Both take the plan from `make_plan`, and what is due from `planning.triggers`.
"""

from collections.abc import Sequence

from kgs_core.group.controller.capacity import packing_in_use
from kgs_core.group.controller.measuring import remembered
from kgs_core.group.controller.state import ControllerState
from kgs_core.group.controller.target_selection import watched_group
from kgs_core.planning.plan import Plan, make_plan


def preview(state: ControllerState, now: float, compare: Sequence[str] = ()) -> Plan | None:
    """By the last known speeds in the place of unknown ones, and the capacities in use; None without a measurement."""
    if state.measured is None:
        return None
    group = watched_group(state, now).group()
    load = remembered(state.measured, state.target)
    return make_plan(load, group, packing_in_use(state), state.options.new_random, compare)
