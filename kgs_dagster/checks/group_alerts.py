"""Checks whether a group is well: partitions without a reader, silent consumers, partitions that are too hot.

As with `bad_records` the load sensor says so whenever it changes, and needs no run for it. What is wrong must last for
a while before it does: a change, a restart or a slow answer is none of it.
"""

import time
from collections.abc import Callable, Iterator, Sequence

import dagster as dg

from kgs_core.reporting.group_alerts import Alerts, GroupAlert, group_alerts
from kgs_core.reporting.status import observed_status
from kgs_dagster.assets.control_loop import HANDOVER, WRITE_SPEEDS
from kgs_dagster.checks.group_view import observed
from kgs_dagster.checks.results import by_hand, unless_shown
from kgs_dagster.metadata import bullets
from kgs_dagster.resources import rebalance_key
from kgs_dagster.settings import GroupConfig

LASTS_S = 60.0
"""Longer than a tick of the load sensor."""
_NOT_KNOWN = "not known: no measurement that is young enough"
_ABOUT = {
    GroupAlert.ALL_READ: (
        HANDOVER,
        dg.AssetCheckSeverity.ERROR,
        "Every partition has a reader that is heard, and none is stopped.",
    ),
    GroupAlert.ALL_HEARD: (HANDOVER, dg.AssetCheckSeverity.WARN, "No consumer is silent or quarantined."),
    GroupAlert.SPEEDS_KNOWN: (WRITE_SPEEDS, dg.AssetCheckSeverity.WARN, "The speed of every partition is known."),
    GroupAlert.NONE_HOT: (
        WRITE_SPEEDS,
        dg.AssetCheckSeverity.WARN,
        "No partition is written faster than a consumer reads.",
    ),
}


def group_alert_key(group: GroupConfig, alert: GroupAlert) -> dg.AssetCheckKey:
    """Key of a check."""
    return dg.AssetCheckKey(group.key(_ABOUT[alert][0]), alert.value)


def group_alert_checks(group: GroupConfig) -> dg.AssetChecksDefinition:
    """One check for each alert; by hand, all from one look at the group."""

    @dg.multi_asset_check(
        name=f"group_alerts{group.suffix}",
        specs=[
            dg.AssetCheckSpec(alert.value, asset=group.key(asset), description=f"{text} The load sensor says when not.")
            for alert, (asset, _, text) in _ABOUT.items()
        ],
        required_resource_keys={rebalance_key(group)},
        can_subset=True,
    )
    def alerts(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        state, _ = observed(context, group, measure=True)
        seen = observed_status(group.settings, state, state.listening.at)
        for alert, problems in group_alerts(seen, has_listened=True).items():
            key = group_alert_key(group, alert)
            if key in context.selected_asset_check_keys:
                found = _evaluation(group, alert, (_NOT_KNOWN,) if problems is None else problems)
                yield by_hand(found)

    return alerts


class LastingAlerts:
    """Memory of a sensor: since when something has been wrong. Lost with its process; then counting begins anew."""

    def __init__(self, group: GroupConfig, steady: Callable[[], float] = time.monotonic) -> None:
        self._group = group
        self._steady = steady
        self._since: dict[GroupAlert, float] = {}

    def changed(self, instance: dg.DagsterInstance, alerts: Alerts) -> Sequence[dg.AssetCheckEvaluation]:
        """What to report: what passes, or has failed for long enough, and is not what the UI shows.

        Raises:
            TransientError: Dagster's database does not answer.
        """
        now = self._steady()
        found = []
        for alert, problems in alerts.items():
            if problems is None:
                continue
            if not problems:
                self._since.pop(alert, None)
            elif now - self._since.setdefault(alert, now) < LASTS_S:
                continue
            if (news := unless_shown(instance, _evaluation(self._group, alert, problems))) is not None:
                found.append(news)
        return found


def _evaluation(group: GroupConfig, alert: GroupAlert, problems: Sequence[str]) -> dg.AssetCheckEvaluation:
    key = group_alert_key(group, alert)
    return dg.AssetCheckEvaluation(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=not problems,
        severity=_ABOUT[alert][1],
        description=bullets(problems) if problems else None,
    )
