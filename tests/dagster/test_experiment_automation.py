"""When results of experiments are out of date, and what is made again: by Dagster's own judgement."""

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest

from kgs_dagster.assets import experiments
from kgs_dagster.assets.experiment_reports import BILL, FRONT, LATENCY, SUMMARY
from kgs_dagster.assets.experiments import PACKING_RUN, WORKLOAD
from kgs_dagster.definitions import build_defs
from kgs_dagster.partitions import register

LOAD = "uniform-delta05-seed1-p8-t2-n10"


@pytest.fixture(autouse=True)
def results(instance, tmp_path, monkeypatch):
    monkeypatch.setenv("KGS_EXPERIMENTS", str(tmp_path))
    register(instance, [LOAD])


def run(instance, job, **what):
    found = build_defs(groups=[], experiments=True).resolve_job_def(job)
    return found.execute_in_process(instance=instance, **what).success


def test_results_of_other_code_are_stale(instance, monkeypatch):
    cells = {WORKLOAD: LOAD, PACKING_RUN: f"mwf|{LOAD}"}

    def states():
        graph = build_defs(groups=[], experiments=True).get_repository_def().asset_graph
        found = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
        return {found.get_status(key, partition).value for key, partition in cells.items()}

    workload = build_defs(groups=[], experiments=True).resolve_assets_def(WORKLOAD)
    assert states() == {"MISSING"}
    assert dg.materialize([workload], partition_key=LOAD, instance=instance).success
    assert run(instance, "experiments_job", partition_key=cells[PACKING_RUN])
    assert states() == {"FRESH"}
    monkeypatch.setattr(experiments, "code_version", lambda: "of a later release")
    assert states() == {"STALE"}


def test_the_version_is_that_of_the_code_that_decides(tmp_path):
    for name in ("packing/search.py", "simulation/replay.py", "cli/main.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1")

    def version():
        experiments.code_version.cache_clear()
        return experiments.code_version(tmp_path)

    first = version()
    (tmp_path / "cli/main.py").write_text("2")
    assert version() == first
    (tmp_path / "packing/search.py").write_text("2")
    assert version() != first


def test_reports_follow_the_runs_that_they_are_about(instance):
    """By declarative automation; a grid with holes is no reason to wait."""
    cell, reports = f"mwf|{LOAD}", [FRONT, LATENCY, BILL]
    defs = build_defs(groups=[], experiments=True)
    cursor = None

    def wanted():
        nonlocal cursor
        everything = dg.AssetSelection.all()
        found = dg.evaluate_automation_conditions(defs, instance, everything, cursor=cursor)
        cursor = found.cursor
        return {key for key in (SUMMARY, *reports) if found.get_num_requested(key)}

    assert wanted() == set()
    assert run(instance, "experiments_job", partition_key=cell)
    assert wanted() == {SUMMARY, *reports}
    assert wanted() == set()
    # As the sensor asks for it: with a selection
    assert run(instance, "experiments_report_job", asset_selection=[SUMMARY, *reports])
    assert wanted() == set()
