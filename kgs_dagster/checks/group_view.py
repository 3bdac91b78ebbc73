"""The group as a check sees it: read anew, without the right to write."""

import dagster as dg

from kgs_core.group.controller.state import ControllerState
from kgs_core.group.protocol import Incarnation
from kgs_dagster.assets.control_loop import rebalance_of
from kgs_dagster.run_process import failures_named
from kgs_dagster.settings import GroupConfig


def observed(
    context: dg.AssetCheckExecutionContext, group: GroupConfig, *, measure: bool = False
) -> tuple[ControllerState, frozenset[Incarnation]]:
    """All that an observer knows, by a measurement if asked to, and who has been silent for too long.

    Raises:
        Failure: Kafka or the fleet does not answer.
    """
    run = rebalance_of(context, group).run
    with failures_named():
        state = (run.observe_measured() if measure else run.observe()).state
    silent = state.view.suspects(state.listening.at, group.settings.membership.suspect_after_s)
    return state, silent
