"""What Dagster loads and the settings it runs with: a mistake here shows only when somebody starts it."""

import importlib
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]


def test_definitions_load_with_an_empty_environment(tmp_path):
    """In a process of its own: no HOME, no DAGSTER_HOME, no kgs.yaml; Dagster must be able to show what is wrong."""
    code = (
        "from dagster import Definitions\n"
        "from kgs_dagster.definitions import defs\n"
        "Definitions.validate_loadable(defs)\n"
        "import sys; print(*sorted({'pyspark', 'pandas', 'dagster_k8s'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [], "every run pays for what the definitions import: import these inside functions"


def test_the_workspace_names_a_module_that_can_be_imported():
    (location,) = yaml.safe_load((ROOT / "workspace.yaml").read_text())["load_from"]
    module = location["python_module"]
    assert module["location_name"] == "kgs"
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # what libraries deprecate at import is not ours to mend
        assert importlib.import_module(module["module_name"]).defs


@pytest.fixture
def instance(tmp_path):
    from dagster import DagsterInstance

    shutil.copy(ROOT / "dagster.yaml", tmp_path)
    with DagsterInstance.from_config(str(tmp_path)) as instance:
        yield instance


def test_the_instance_settings_are_valid_and_mean_what_they_should(instance):
    from dagster._core.run_coordinator import QueuedRunCoordinator

    assert isinstance(instance.run_coordinator, QueuedRunCoordinator)
    assert instance.run_coordinator.dequeue_interval_seconds == 1
    runs = instance.get_concurrency_config().run_queue_config
    assert runs.max_concurrent_runs == -1
    assert runs.tag_concurrency_limits == [
        {"key": "kgs/group-rebalance", "value": {"applyLimitPerUniqueValue": True}, "limit": 1}
    ]
    assert not instance.telemetry_enabled
    assert not instance.nux_enabled
    assert instance.get_settings("sensors") == {"use_threads": True, "num_workers": 4}


def test_the_instance_settings_name_no_path_of_a_machine():
    text = (ROOT / "dagster.yaml").read_text()
    assert not [line for line in text.splitlines() if "base_dir" in line or os.sep + "home" in line]
