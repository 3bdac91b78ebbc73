"""The group as a check sees it: read anew, without the right to write."""

import dagster as dg

from kgs_core.controller.group_view import GroupView
from kgs_core.controller.state import ControllerState
from kgs_core.errors import KgsError
from kgs_core.planning.learnt_capacity import Capacity
from kgs_core.protocol import Incarnation, Target
from kgs_dagster.resources import Rebalance, rebalance_key
from kgs_dagster.settings import GroupConfig


def seen_by(
    context: dg.AssetCheckExecutionContext, group: GroupConfig
) -> tuple[GroupView, Target | None, frozenset[Incarnation]]:
    """What the topics say, the newest Target, and who has been silent for too long.

    Raises:
        Failure: Kafka or the fleet does not answer.
    """
    state, silent = observed(context, group)
    return state.view, state.target, silent


def observed(
    context: dg.AssetCheckExecutionContext, group: GroupConfig, *, measure: bool = False
) -> tuple[ControllerState, frozenset[Incarnation]]:
    """All that an observer knows, and who has been silent for too long.

    Args:
        context: of the check.
        group: whom it is about.
        measure: also by the newest measurement, or one of its own.

    Raises:
        Failure: Kafka or the fleet does not answer.
    """
    run = _rebalance(context, group).run
    try:
        state = (run.look()[0] if measure else run.observe()).state
    except KgsError as e:
        raise dg.Failure(str(e), allow_retries=False) from e
    silent = state.view.suspects(state.read_at, group.settings.membership.suspect_after_s)
    return state, silent


def capacity_now(context: dg.AssetCheckExecutionContext, group: GroupConfig) -> Capacity:
    """The learnt capacity beside the configured one.

    Raises:
        Failure: Kafka does not answer.
    """
    try:
        return _rebalance(context, group).run.capacity()
    except KgsError as e:
        raise dg.Failure(str(e), allow_retries=False) from e


def _rebalance(context: dg.AssetCheckExecutionContext, group: GroupConfig) -> Rebalance:
    found = getattr(context.resources, rebalance_key(group))
    if not isinstance(found, Rebalance):
        raise dg.DagsterInvariantViolationError(f"resource {rebalance_key(group)}: {type(found).__name__}")
    found.claim(context.instance, context.run.run_id)
    return found
