"""Checks of the group as its topics have it now: they read, need no right to write, and can be run at any time."""

from collections.abc import Iterator

import dagster as dg

from kgs_core.group.controller.write_guard import check_owners
from kgs_core.group.invariants.assignments import check_target
from kgs_core.planning.learnt_capacity import Capacity
from kgs_core.reporting.capacity import capacity_sentences, capacity_values
from kgs_dagster.assets.control_loop import ASSIGNMENT, HANDOVER, checked, rebalance_of
from kgs_dagster.checks.group_view import observed
from kgs_dagster.resources import rebalance_key
from kgs_dagster.run_process import failures_named
from kgs_dagster.settings import GroupConfig

TARGET_NOW, OWNERS_NOW, CAPACITY_NOW = "newest_target", "owners_now", "capacity_now"


def control_loop_checks(group: GroupConfig) -> dg.AssetChecksDefinition:
    """S6 of the newest Target, and S1 of what consumers report."""
    assignment, handover = group.key(ASSIGNMENT), group.key(HANDOVER)

    @dg.multi_asset_check(
        name=f"group_now{group.suffix}",
        specs=[
            dg.AssetCheckSpec(
                TARGET_NOW,
                asset=assignment,
                description="S6: the newest Target covers all partitions; no consumer needlessly exceeds the capacity.",
            ),
            dg.AssetCheckSpec(
                OWNERS_NOW, asset=handover, description="S1: no two consumers that are heard say to own a partition."
            ),
            dg.AssetCheckSpec(
                CAPACITY_NOW,
                asset=assignment,
                description="Consumers that are flat out read as much as the configured capacity counts on.",
            ),
        ],
        required_resource_keys={rebalance_key(group)},
        can_subset=True,
    )
    def group_now(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        state, silent = observed(context, group)
        most, target = group.settings.packing.max_consumers, state.target
        wrong, owners = check_target(target, max_consumers=most) if target else (), check_owners(state.view, silent)
        results = [
            checked(assignment, TARGET_NOW, wrong),
            checked(handover, OWNERS_NOW, owners, dg.AssetCheckSeverity.ERROR),
        ]
        if control_loop_check_keys(group)[-1] in context.selected_asset_check_keys:  # the feed is asked for this alone
            with failures_named():
                results.append(_capacity(group, rebalance_of(context, group).run.capacity()))
        for key, result in zip(control_loop_check_keys(group), results, strict=False):
            if key in context.selected_asset_check_keys:
                yield result

    return group_now


def control_loop_check_keys(group: GroupConfig) -> list[dg.AssetCheckKey]:
    """Their keys: a rebalance run does without them, for it makes checks of its own."""
    return [
        dg.AssetCheckKey(group.key(ASSIGNMENT), TARGET_NOW),
        dg.AssetCheckKey(group.key(HANDOVER), OWNERS_NOW),
        dg.AssetCheckKey(group.key(ASSIGNMENT), CAPACITY_NOW),
    ]


def _capacity(group: GroupConfig, found: Capacity) -> dg.AssetCheckResult:
    wrong = tuple(capacity_sentences(found)) if found.falls_short else ()
    result = checked(group.key(ASSIGNMENT), CAPACITY_NOW, wrong)
    return result._replace(metadata={**result.metadata, "capacity": dg.MetadataValue.json(capacity_values(found))})
