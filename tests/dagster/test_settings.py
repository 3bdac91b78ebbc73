"""Which groups Dagster looks after."""

import os
from pathlib import Path

import pytest

from kgs_core.errors import ConfigError
from kgs_dagster.settings import ExperimentSettings, experiment_settings, groups, name_groups
from tests.configuration import text_of
from tests.dagster.groups import settings


@pytest.fixture(autouse=True)
def environ(monkeypatch, tmp_path):
    """Of the working directory, which is empty, and of these variables alone."""
    monkeypatch.chdir(tmp_path)
    for name in ("KGS_CONFIG", "KGS_EXPERIMENTS", "KGS_EXPERIMENTS_RECORDINGS"):
        monkeypatch.delenv(name, raising=False)
    return lambda **variables: [monkeypatch.setenv(*each) for each in variables.items()]


@pytest.fixture
def config(tmp_path):
    def write(name, group):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text_of(group=group, lake="{root: lake}"))
        return path

    return write


def test_kgs_yaml_of_the_working_directory_counts_when_nothing_is_named(config, environ, tmp_path):
    assert groups() == ()
    path = config("kgs.yaml", "g")
    (found,) = groups()
    assert (found.name, found.path, found.suffix) == ("g", path, "")
    assert found.settings.lake.root == str(tmp_path / "lake")
    config("other.yaml", "other")
    environ(KGS_CONFIG="other.yaml")
    (found,) = groups()
    assert (found.name, found.suffix) == ("other", "")


def test_several_files_are_several_groups_with_names_that_dagster_takes(config, environ):
    paths = [config("a/kgs.yaml", "a.b"), config("c/kgs.yaml", "c-d")]
    environ(KGS_CONFIG=os.pathsep.join(map(str, paths)))
    found = groups()
    assert [(group.name, group.suffix) for group in found] == [("a.b", "_a_b"), ("c-d", "_c_d")]
    assert found[0].key("lake", "t").path == ["a.b", "lake", "t"]


def test_a_name_that_is_wrong_is_reported_and_not_passed_over(environ):
    environ(KGS_CONFIG="nowhere.yaml")
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: no such file"):
        groups()


@pytest.mark.parametrize("other", ["a.b", "a_b"])
def test_two_groups_that_dagster_could_not_tell_apart_are_refused(other, tmp_path):
    with pytest.raises(ConfigError, match=f"groups 'a.b' of .* and '{other}' of .* are one to Dagster"):
        name_groups([(settings("a.b"), tmp_path / "1.yaml"), (settings(other), tmp_path / "2.yaml")])


def test_the_environment_says_where_experiments_are_kept(environ, tmp_path):
    assert experiment_settings() == ExperimentSettings()
    environ(KGS_EXPERIMENTS="lab", KGS_EXPERIMENTS_RECORDINGS="/data")
    assert experiment_settings() == ExperimentSettings(tmp_path / "lab", Path("/data"))


@pytest.mark.parametrize("variable", ["KGS_EXPERIMENTS", "KGS_EXPERIMENTS_RECORDINGS"])
def test_results_and_recordings_may_lie_in_a_store_that_there_is(environ, variable):
    environ(**{variable: "s3://bucket/lab"})
    found = experiment_settings()
    assert str(found.folder or found.recordings) == "s3://bucket/lab"
    environ(**{variable: "ftp://bucket/lab"})
    with pytest.raises(ConfigError, match=f"^{variable}: ftp://bucket/lab: this scheme is not supported"):
        experiment_settings()
