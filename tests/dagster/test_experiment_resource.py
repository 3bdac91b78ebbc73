"""What whoever may launch a run cannot have it do: a folder or a file is named by the environment."""

import dagster as dg
import pytest

from kgs_core.errors import ConfigError
from kgs_dagster.definitions import build_defs
from kgs_dagster.experiment_resource import EXPERIMENT_RESOURCE, ExperimentResource
from tests.dagster.results import failure


@pytest.fixture
def recordings(tmp_path, monkeypatch):
    """The folder of recorded loads; beside it lies what is nobody's business."""
    (tmp_path / "secret.csv").write_text("password")
    folder = tmp_path / "recordings"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    monkeypatch.setenv("KGS_EXPERIMENTS_RECORDINGS", str(folder))
    return folder


def register(instance, file):
    job = build_defs(groups=[], experiments=True).resolve_job_def("register_workload_job")
    config = {"ops": {"register_workload": {"config": {"file": str(file)}}}}
    return failure(job.execute_in_process(run_config=config, instance=instance, raise_on_error=False))[1]


def test_no_run_can_name_a_folder(instance):
    """It would write where the caller likes."""
    job = build_defs(groups=[], experiments=True).resolve_job_def("experiments_report_job")
    with pytest.raises(dg.DagsterInvalidConfigError, match="unexpected config entry"):
        job.execute_in_process(
            run_config={"resources": {EXPERIMENT_RESOURCE: {"config": {"folder": "/tmp/elsewhere"}}}}, instance=instance
        )


@pytest.mark.parametrize("name", ["/etc/passwd", "../secret.csv", "link/secret.csv", "nothing/../../there.csv"])
def test_a_file_elsewhere_is_refused_whether_it_is_there_or_not(instance, recordings, name):
    said = register(instance, name)
    assert said == f"file: '{name}' is not in KGS_EXPERIMENTS_RECORDINGS: put it there, and name it"


@pytest.mark.parametrize("name", ["/etc/passwd", "../secret.csv", "nothing/../../there.csv"])
def test_a_recording_in_a_store_lies_below_the_folder_there(instance, monkeypatch, name):
    monkeypatch.setenv("KGS_EXPERIMENTS_RECORDINGS", "s3://bucket/recordings")
    assert str(ExperimentResource().recording("a/week.jsonl")) == "s3://bucket/recordings/a/week.jsonl"
    said = register(instance, name)
    assert said == f"file: '{name}' is not in KGS_EXPERIMENTS_RECORDINGS: put it there, and name it"


def test_a_file_in_the_folder_is_found_by_its_name_or_its_whole_path(recordings):
    for name in ("week.jsonl", recordings / "week.jsonl"):
        assert ExperimentResource().recording(str(name)) == recordings / "week.jsonl"


def test_without_a_folder_for_them_no_file_is_read(instance, tmp_path, monkeypatch):
    monkeypatch.delenv("KGS_EXPERIMENTS_RECORDINGS", raising=False)
    (tmp_path / "week.jsonl").write_text('{"time": 0, "speeds": {"a": {"0": 60}}}\n')
    assert "name it by KGS_EXPERIMENTS_RECORDINGS" in register(instance, tmp_path / "week.jsonl")


def test_what_is_no_name_of_a_file_is_refused(recordings):
    with pytest.raises(ConfigError, match="not the name of a file"):
        ExperimentResource().recording("week\0.jsonl")
