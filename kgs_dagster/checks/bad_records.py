"""Check whether the records of a topic fit its rule, by what the consumers say of the last thousand or so.

The load sensor says so whenever it changes: it hears the consumers anyway, and needs no run for it. By hand the check
hears them itself.
"""

from collections.abc import Iterator, Mapping, Sequence

import dagster as dg

from kgs_core.reporting.bad_shares import judged_topics, share_text
from kgs_dagster.assets.lake import LakeAsset, lake_layout
from kgs_dagster.checks.group_view import observed
from kgs_dagster.checks.results import by_hand, unless_shown
from kgs_dagster.metadata import bullets
from kgs_dagster.resources import rebalance_key
from kgs_dagster.settings import GroupConfig

BAD_RECORDS = "bad_records"
NOT_KNOWN = "not known: no consumer that is heard reads it"
Judged = Mapping[str, float | None]
"""Topic -> share of bad records (0 to 1) where too many are; None where they are few. Others are not known."""


def bad_records_checks(group: GroupConfig) -> dg.AssetChecksDefinition:
    """One check a table, all of them from one look at the group."""
    layout = lake_layout(group)

    @dg.multi_asset_check(
        name=f"lake_bad_records{group.suffix}",
        specs=[
            dg.AssetCheckSpec(
                BAD_RECORDS,
                asset=asset.table,
                description="Of the last 1,000 records at most half are dead letters; an error when "
                "all are. The load sensor says when this changes.",
            )
            for asset in layout
        ],
        required_resource_keys={rebalance_key(group)},
        can_subset=True,
    )
    def lake_bad_records(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        state, silent = observed(context, group)
        judged = judged_topics(state.view, silent)
        for asset in layout:
            if dg.AssetCheckKey(asset.table, BAD_RECORDS) in context.selected_asset_check_keys:
                unknown = _evaluation(asset, passed=False, description=NOT_KNOWN)
                yield by_hand(evaluation(group, asset, judged) or unknown)

    return lake_bad_records


def evaluation(group: GroupConfig, asset: LakeAsset, judged: Judged) -> dg.AssetCheckEvaluation | None:
    """How it is with the topics of a rule; None where nobody is heard who reads one."""
    ours = {topic: share for topic, share in judged.items() if asset.holds(group.settings, topic)}
    if not ours:
        return None
    bad = {topic: share for topic, share in sorted(ours.items()) if share is not None}
    is_error = any(share >= 1 for share in bad.values())
    lines = [f"{topic}: {share_text(share)} of its newest records are dead letters" for topic, share in bad.items()]
    return _evaluation(asset, passed=not bad, description=bullets(lines) if lines else None, is_error=is_error)


def _evaluation(
    asset: LakeAsset, *, passed: bool, description: str | None, is_error: bool = False
) -> dg.AssetCheckEvaluation:
    severity = dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN
    return dg.AssetCheckEvaluation(
        asset_key=asset.table, check_name=BAD_RECORDS, passed=passed, severity=severity, description=description
    )


def changed_evaluations(
    group: GroupConfig, instance: dg.DagsterInstance, judged: Judged
) -> Sequence[dg.AssetCheckEvaluation]:
    """Those that say other than what the UI shows of their table, by the sensor or by hand.

    Raises:
        TransientError: Dagster's database does not answer.
    """
    now = (evaluation(group, asset, judged) for asset in lake_layout(group))
    news = (unless_shown(instance, each) for each in now if each is not None)
    return [each for each in news if each is not None]
