"""When results of experiments are out of date, and what is made again: by Dagster's own judgement."""

import dagster as dg
import pytest

from kgs_dagster.assets import experiments
from kgs_dagster.assets.experiment_reports import FRONT, SUMMARY
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
    cell, reports = f"mwf|{LOAD}", [FRONT]
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
