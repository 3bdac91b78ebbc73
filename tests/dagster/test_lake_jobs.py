"""Audit, upkeep and the end of old runs."""

import asyncio
from datetime import timedelta

import dagster as dg
import pytest
from dagster import DagsterRunStatus as Status
from dagster._core.loader import LoadingContextForTest
from dagster._time import get_current_datetime, get_current_timestamp

from kgs_core.lake.rule import DerivedAudit, Fault, Finding, LakeAudit, PartitionAudit, StoredPositions, TableAudit
from kgs_core.lake.topics.stats import LakeSnapshot, TableView
from kgs_core.model import OffsetRange, TopicId
from kgs_core.ports import Upkeep
from kgs_dagster.assets.lake import lake_assets, lake_layout
from kgs_dagster.automation import lake_sensor
from kgs_dagster.checks.lake import CHECK, lake_checks
from kgs_dagster.jobs.lake import lake_audit_job, lake_maintenance_job
from kgs_dagster.jobs.prune import prune_runs_job
from kgs_dagster.retention import delete_looks, delete_run
from tests.dagster.groups import group
from tests.dagster.results import WHY, evaluations, failure, output, refusing

LOST = Finding(Fault.LOST, 3, (OffsetRange(17, 20),), "in the log")


def audited(topic, *findings):
    partition = PartitionAudit(StoredPositions(TopicId("x"), 0, 0, 20), 20, 1, findings, unread=7)
    return TableAudit(topic, f"bronze/{topic}", "one_to_one", 7, (partition,), ("a note",))


def run_audit(instance, audit):
    ours = group()
    defs = dg.Definitions(
        assets=lake_assets(ours), asset_checks=[lake_checks(ours, audit)], jobs=[lake_audit_job(ours)]
    )
    return defs.resolve_job_def("lake_audit_job").execute_in_process(instance=instance, raise_on_error=False)


def test_the_audit_checks_every_table_and_says_what_is_wrong(instance):
    tables = (audited("orders"), audited("flights.a"), audited("flights.b", LOST))
    done = run_audit(instance, lambda _: LakeAudit(tables))
    found = {asset: each for (asset, _), each in evaluations(done).items()}
    assert {name: each.passed for name, each in found.items()} == {"orders": True, "flights.any": False}
    assert found["flights.any"].severity is dg.AssetCheckSeverity.ERROR
    values = {name: value.value for name, value in found["flights.any"].metadata.items()}
    assert (values["lost"], values["rows"], values["dead_letters"], values["tables"]) == (3, 40, 2, 2)
    assert (values["unread"], values["deleted_unread"]) == (14, 0)
    assert "flights.b:0: lost 3: 17-19 (in the log)" in values["findings"]


def test_newest_rows_that_are_wrong_fail_the_check_of_their_source(instance):
    derived = (DerivedAudit("gold/orders", "bronze/orders", 7, 100, missing=1, differing=2),)
    done = run_audit(instance, lambda _: LakeAudit((audited("orders"), audited("flights.a")), derived))
    found = {asset: each for (asset, _), each in evaluations(done).items()}
    assert {name: each.passed for name, each in found.items()} == {"orders": False, "flights.any": True}
    assert found["orders"].metadata["newest_rows_wrong"].value == 3
    assert (
        "100 newest rows of bronze/orders as of its version 7: WRONG: 1 missing"
        in found["orders"].metadata["findings"].value
    )


def shown_by_the_ui(instance, key):
    """The check's result as Dagster's UI shows it; None: `Not Evaluated`."""
    record = instance.get_latest_asset_check_evaluation_record(key)
    is_shown = asyncio.run(record.targets_latest_materialization(LoadingContextForTest(instance)))
    return record.evaluation and record.evaluation.passed if is_shown else None


def test_the_last_result_of_the_audit_stays_visible_whatever_is_recorded_of_the_table(instance):
    table = lake_layout(group())[0].table
    key, cursor, seen = dg.AssetCheckKey(table, CHECK), None, []

    def look(rows):
        nonlocal cursor
        view = TableView("orders", "bronze/orders", rows, 1, 1, 0, rows, positions={0: rows}, ends={0: rows})
        sensor = lake_sensor(group(), lambda: LakeSnapshot((view,), ()), lambda: 60.0 * rows)
        result = sensor(dg.build_sensor_context(instance=instance, cursor=cursor))
        cursor = result.cursor
        for event in result.asset_events:  # as the daemon does
            instance.report_runless_asset_event(event)
        seen.append((rows, shown_by_the_ui(instance, key)))

    run_audit(instance, lambda _: LakeAudit((audited("orders"), audited("flights.a"))))
    for rows in (1, 2):
        look(rows)
    assert failure(run_audit(instance, refusing))[1] == WHY
    look(3)
    last = instance.get_latest_asset_check_evaluation_record(key).evaluation
    assert "ended without a result" in last.description, "an audit that could not look has not passed"
    run_audit(instance, lambda _: LakeAudit((audited("orders", LOST), audited("flights.a"))))
    for rows in (4, 5):
        look(rows)
    assert seen == [(1, True), (2, True), (3, False), (4, False), (5, False)]
    results = instance.event_log_storage.get_asset_check_execution_history(key, limit=100)
    assert len(results) == 3 + 3, "repeated once after each run, not with every look"


def test_an_audit_that_lacks_a_table_whose_topic_is_not_known_fails_beside_the_checks_of_the_others(instance):
    left = TableAudit("", "bronze/x", "one_to_one", None, problem="table bronze/x: Input/output error")
    done = run_audit(instance, lambda _: LakeAudit((audited("orders"), audited("flights.a"), left)))
    assert failure(done)[1] == "table bronze/x: Input/output error"
    assert [each.passed for each in done.get_asset_check_evaluations()] == [True, True]


def test_maintenance_reports_what_it_did_and_fails_after_the_last_table_when_one_had_a_problem(instance):
    def maintain(work):
        return lake_maintenance_job(group(), work).execute_in_process(instance=instance, raise_on_error=False)

    def work(*upkeeps):
        return lambda _, done: [done(upkeep) for upkeep in upkeeps]

    good = Upkeep("bronze/orders", (10, 2), (100, 90), 3, 30, 0.1)
    found = output(maintain(work(good)))
    assert found.items() >= {"files_before": 10, "files_after": 2, "removed_bytes": 30}.items()
    bad = Upkeep("bronze/x", (10, 10), (100, 100), 0, 0, 0.1, "compaction: no space")
    assert failure(maintain(work(bad, good)))[1] == "table bronze/x: compaction: no space"
    assert failure(maintain(refusing))[1] == WHY


@pytest.fixture
def prune(instance):
    """Prunes as it would be done so many days from now; gives the run that did it."""

    def run(days, **config):
        job = prune_runs_job(group(), lambda: get_current_timestamp() + days * 86_400)
        done = job.execute_in_process(instance=instance, run_config={"ops": {"prune_runs": {"config": config}}})
        assert done.success
        return done.run_id

    return run


def kept(instance, *without):
    return {run.run_id for run in instance.get_runs()} - {*without}


def test_old_runs_go_and_failures_stay_longer(instance, run_of, prune):
    ended = {run_of(1, Status.SUCCESS), run_of(2, Status.CANCELED)}
    failed, open_ = run_of(1, Status.FAILURE), run_of(3, Status.STARTED)
    others = run_of(1, Status.SUCCESS, of=group("another"))
    first = prune(10)
    assert kept(instance, first) == {*ended, failed, open_, others}
    second = prune(20)
    assert kept(instance, second) == {failed, open_, others}
    third = prune(70)
    assert kept(instance, third) == {open_, others}
    run_of(1, Status.SUCCESS)
    run_of(1, Status.FAILURE)
    own = prune(2, keep_days=1, keep_failed_days=1)
    assert kept(instance) == {open_, others, own}, "how long is set by the job's config"


@pytest.mark.parametrize("where", ["instance", "local_instance"])
def test_old_looks_at_the_lake_go_and_nothing_else_does(where, request):
    """One a minute for each table: they would fill the database."""
    instance = request.getfixturevalue(where)
    mine, others = group().key("lake", "bronze", "orders"), dg.AssetKey(["others"])

    def look():
        instance.report_runless_asset_event(dg.AssetObservation(mine))
        instance.report_runless_asset_event(dg.AssetMaterialization(mine))
        instance.report_runless_asset_event(dg.AssetMaterialization(others))

    def left(key):
        found = [*instance.fetch_observations(key, 9).records, *instance.fetch_materializations(key, 9).records]
        return len(found)

    look()
    assert delete_looks(instance, [mine], get_current_datetime() - timedelta(hours=1)) == 0
    then = get_current_datetime()
    look()
    assert delete_looks(instance, [mine], then) == 2
    assert (left(mine), left(others)) == (2, 2)
    assert delete_looks(instance, [mine], get_current_datetime() + timedelta(hours=1)) == 0, "the newest stay"
    assert len(instance.all_logs("")) == 4


def test_nothing_is_left_of_a_run_that_was_deleted(local_instance, tmp_path):
    """SQLite keeps a file per run, and the logs are files, too: the disk would fill up with both."""

    @dg.op
    def talk(context):
        context.log.info("words")
        print("more words")

    @dg.job(executor_def=dg.in_process_executor)
    def talking():
        talk()

    run_id = talking.execute_in_process(instance=local_instance).run_id

    def left():
        return [path for path in tmp_path.rglob("*") if run_id in str(path)]

    assert left()
    delete_run(local_instance, run_id)
    assert left() == []
    assert local_instance.get_run_by_id(run_id) is None
