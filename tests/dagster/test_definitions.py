"""What Dagster loads and the settings it runs with: a mistake here shows only when somebody starts it."""

import importlib
import re
import subprocess
import sys
import warnings
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.workspace.autodiscovery import loadable_targets_from_python_file

from kgs_core.fleet.consumer_pod import grace_period_s
from kgs_dagster.definitions import build_defs
from tests.configuration import YAML, text_of
from tests.dagster.groups import group, two_groups

ROOT = Path(__file__).parents[2]


HEAVY = {
    "pyspark",
    "matplotlib",
    "pandas",
    "dagster_k8s",
    "kubernetes",
    "deltalake",
    "pyarrow",
    "confluent_kafka",
    "kafka",
}
CODE = f"""
from dagster import Definitions
from kgs_dagster.definitions import defs
Definitions.validate_loadable(defs)
import sys
print(*sorted({HEAVY!r} & set(sys.modules)))
print(*sorted(job.name for job in defs.get_repository_def().get_all_jobs() if not job.name.startswith("__")))
"""
EXPERIMENTS = "experiments_job experiments_report_job register_workload_job"


def loaded(folder, **environ):
    """What a process of its own loads: no HOME, no DAGSTER_HOME."""
    return subprocess.run(
        [sys.executable, "-c", CODE],
        env={"PYTHONPATH": str(ROOT), **environ},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_definitions_load_with_an_empty_environment(tmp_path):
    """Dagster must be able to show what is wrong."""
    done = loaded(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["", EXPERIMENTS], "experiments need no group"
    assert done.stderr == "", "a warning would be told by every run"


@pytest.mark.parametrize("environ", [{}, {"KGS_EXPERIMENTS": "lab"}])
def test_definitions_load_while_kafka_and_lake_are_away_and_without_what_is_heavy(tmp_path, environ):
    """The experiments only where somebody has asked for them: else they stand in the lineage as never made."""
    (tmp_path / "kgs.yaml").write_text(YAML)
    done = loaded(tmp_path, **environ)
    assert done.returncode == 0, done.stderr
    heavy, jobs = done.stdout.splitlines()
    assert heavy == "", "every run pays for what the definitions import: import these inside functions"
    ours = "bill_job consumer_job lake_audit_job lake_maintenance_job prune_runs_job rebalance_job"
    assert jobs.split() == sorted([*ours.split(), "redrive_job", *(EXPERIMENTS.split() if environ else [])])


def test_a_configuration_that_is_wrong_is_reported_in_its_own_words(tmp_path):
    (tmp_path / "mine.yaml").write_text(YAML.replace("lake:", "lakes:"))
    done = loaded(tmp_path, KGS_CONFIG="mine.yaml")
    assert done.returncode != 0
    assert "mine.yaml: lakes: unknown" in done.stderr


def test_several_groups_share_no_name():
    defs = build_defs(groups=two_groups())
    dg.Definitions.validate_loadable(defs)
    repository = defs.get_repository_def()
    assert repository.get_job("rebalance_job_a_b").executor_def.name == "in_process"
    jobs = [job.name for job in repository.get_all_jobs() if not job.name.startswith("__")]
    names = [*jobs, *(each.name for each in (*repository.sensor_defs, *repository.schedule_defs))]
    assert len(names) == 28
    assert all(name.endswith(("_a_b", "_c_d")) for name in names)
    assert {spec.key.path[0] for spec in defs.resolve_all_asset_specs()} == {"a.b", "c-d"}


def test_experiments_are_there_once_whatever_groups_there_are():
    defs = dg.Definitions.merge(build_defs(groups=two_groups(), experiments=True), build_defs(groups=[]))
    dg.Definitions.validate_loadable(defs)
    assert {
        spec.key.to_user_string() for spec in defs.resolve_all_asset_specs() if spec.group_name == "experiments"
    } == {f"experiments/{name}" for name in ("workload", "packing_run", "algorithm_summary", "pareto_front")}


LATEST = (
    "[{topic: orders, table: bronze/orders, format: json, schema: {id: long}, "
    "newest_rows: {key: [id], table: gold/orders, deletes: ignore}}, {pattern: 'x.*'}]"
)


def test_everything_says_what_it_is_and_every_asset_whose_it_is():
    defs = build_defs(groups=[group(topics=LATEST)], experiments=True)
    specs = defs.resolve_all_asset_specs()
    assert len(specs) == 14, "the control loop, three tables, two topics, a bill, the experiments"
    tags = {spec.key.path[0]: spec.tags.get("kgs/group") for spec in specs}
    assert tags == {"g": "g", "experiments": None}
    needed = ("description", "kinds", "group_name")
    assert [(spec.key, name) for spec in specs for name in needed if not getattr(spec, name)] == []
    repository = defs.get_repository_def()
    checks = [spec for each in defs.asset_checks or () for spec in each.check_specs]
    jobs = [job for job in repository.get_all_jobs() if not job.name.startswith("__")]
    sensors = [each for each in repository.sensor_defs if not isinstance(each, dg.AutomationConditionSensorDefinition)]
    every = [*checks, *jobs, *sensors, *repository.schedule_defs]  # the other one is Dagster's own
    assert [each.name for each in every if not each.description] == []


def test_resources_can_be_replaced_by_name():
    mine = object()
    defs = build_defs({"kgs_pyspark": mine, "unknown": mine}, [group()])
    assert defs.resources is not None
    assert defs.resources["kgs_pyspark"] is mine
    assert "unknown" not in defs.resources


def test_the_documented_sample_is_a_project_of_ones_own(tmp_path, monkeypatch):
    """Without the experiments, which nobody has asked for there."""
    topics = "[{topic: t, table: bronze/departures}]"
    (tmp_path / "kgs.yaml").write_text(text_of(group="flights", topics=topics))
    monkeypatch.setenv("KGS_CONFIG", str(tmp_path / "kgs.yaml"))
    page = (ROOT / "docs/dagster.md").read_text().partition("## In your own project")[2]
    (tmp_path / "own.py").write_text(page.partition("```python\n")[2].partition("```")[0])
    (found,) = loadable_targets_from_python_file(str(tmp_path / "own.py"))
    merged = found.target_definition
    dg.Definitions.validate_loadable(merged)
    specs = {spec.key.to_user_string(): spec for spec in merged.resolve_all_asset_specs()}
    (upstream,) = specs.pop("report").deps
    assert upstream.asset_key.to_user_string() in specs
    assert {name.partition("/")[0] for name in specs} == {"flights"}


def test_the_workspace_names_a_module_that_can_be_imported():
    (location,) = yaml.safe_load((ROOT / "workspace.yaml").read_text())["load_from"]
    module = location["python_module"]
    assert module["location_name"] == "kgs"
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # what libraries deprecate at import is not ours to mend
        assert importlib.import_module(module["module_name"]).defs


def test_the_instance_settings_are_valid_and_mean_what_they_should(local_instance):
    from dagster._core.run_coordinator import QueuedRunCoordinator

    instance = local_instance
    assert not re.search("base_dir|/home", (ROOT / "dagster.yaml").read_text()), "no path of a machine"
    assert isinstance(instance.run_coordinator, QueuedRunCoordinator)
    assert instance.run_coordinator.dequeue_interval_seconds == 1
    assert instance.run_coordinator.dequeue_use_threads, "a rebalance would wait behind consumers that start"
    runs = instance.get_concurrency_config().run_queue_config
    assert runs.max_concurrent_runs == -1
    assert runs.tag_concurrency_limits == [
        {"key": "kgs/group-rebalance", "value": {"applyLimitPerUniqueValue": True}, "limit": 1}
    ]
    pools = instance.get_concurrency_config().pool_config
    assert (pools.pool_granularity.value, pools.default_pool_limit) == ("run", 2)
    assert instance.run_monitoring_enabled, "a rebalance run that hangs is ended by it where no sensor goes"
    longest_end_s = grace_period_s(group().settings)
    assert instance.run_monitoring_cancel_timeout_seconds > longest_end_s, "a consumer that drains is not given up"
    assert not instance.telemetry_enabled
    assert not instance.nux_enabled
    assert instance.get_settings("sensors") == {"use_threads": True, "num_workers": 4}


def test_dagster_leaves_the_consumers_of_another_fleet_alone():
    """A rebalance run would take the right to write from `kgs control`, which ends then for good."""
    found = build_defs(groups=[group(fleet="kubernetes", kubernetes="{image: 'kgs:1'}")])
    dg.Definitions.validate_loadable(found)
    jobs = {job.name for job in found.resolve_all_job_defs()}
    sensors = {sensor.name for sensor in found.sensors}
    assert jobs >= {"lake_audit_job", "lake_maintenance_job"}
    assert not jobs & {"rebalance_job", "consumer_job"}
    assert sensors == {"lake_sensor", "lost_runs_sensor"}
    ours = build_defs(groups=[group()])
    assert {job.name for job in ours.resolve_all_job_defs()} >= {"rebalance_job", "consumer_job"}
