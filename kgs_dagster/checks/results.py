"""Results of checks as Dagster's UI shows them.

It shows a result until the asset is materialized by another run than the result's, and `Not Evaluated` from then on.
What a sensor records has no run, and counts as being of one and the same.
"""

from typing import TYPE_CHECKING

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationTargetMaterializationData

from kgs_dagster.run_process import ENDED, database

if TYPE_CHECKING:
    from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord

_NO_RUN = ""


def by_hand(found: dg.AssetCheckEvaluation) -> dg.AssetCheckResult:
    """What a sensor would report, as the result of a check that runs."""
    return dg.AssetCheckResult(
        passed=found.passed,
        asset_key=found.asset_key,
        check_name=found.check_name,
        severity=found.severity,
        description=found.description,
    )


def unless_shown(instance: dg.DagsterInstance, now: dg.AssetCheckEvaluation) -> dg.AssetCheckEvaluation | None:
    """Result to be reported, of the asset's newest materialization; None where the UI shows the same verdict.

    Raises:
        TransientError: Dagster's database does not answer.
    """
    with database("checks cannot be read"):
        record = instance.get_latest_asset_check_evaluation_record(now.asset_check_key)
        newest = next(iter(instance.fetch_materializations(now.asset_key, limit=1).records), None)
    last = None if record is None else _result(record)
    if record is not None and last is not None and (last.passed, last.severity) == (now.passed, now.severity):
        target = last.target_materialization_data
        if newest is None or newest.run_id == record.run_id or (target and target.storage_id == newest.storage_id):
            return None
    if newest is None:
        return now
    return dg.AssetCheckEvaluation(
        asset_key=now.asset_key,
        check_name=now.check_name,
        passed=now.passed,
        severity=now.severity,
        description=now.description,
        target_materialization_data=AssetCheckEvaluationTargetMaterializationData(
            storage_id=newest.storage_id, run_id=newest.run_id, timestamp=newest.timestamp
        ),
    )


def result_to_repeat(instance: dg.DagsterInstance, key: dg.AssetCheckKey) -> dg.AssetCheckEvaluation | None:
    """Last result of a run of a check, to be reported once more without a run: so it stays visible.

    A run that ended without one could not look, which is no passed check. While a run is at work nothing is reported:
    it would hide its result.
    """
    newest = instance.get_latest_asset_check_evaluation_record(key)
    if newest is None or newest.run_id == _NO_RUN:
        return None
    found = _result(newest)
    if found is None and ((run := instance.get_run_by_id(newest.run_id)) is None or run.status in ENDED):
        why = f"not known: run {newest.run_id} of the check ended without a result: see its log, and run it again"
        return dg.AssetCheckEvaluation(asset_key=key.asset_key, check_name=key.name, passed=False, description=why)
    return found


def _result(record: "AssetCheckExecutionRecord") -> dg.AssetCheckEvaluation | None:
    found: object = record.evaluation  # of a check that is only planned Dagster gives the plan here
    return found if isinstance(found, dg.AssetCheckEvaluation) else None
