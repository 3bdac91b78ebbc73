"""Modules of transforms come from the folder of kgs.yaml; nothing ever comes from the working directory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kgs_core.config.file import load_settings
from kgs_core.config.settings import SparkSettings
from kgs_core.demo.dagster_control import DagsterHome
from kgs_core.fleet.local import consume_command, kgs_command
from kgs_core.ingest.worker.topic_job import load_hook
from kgs_core.spark.session import prepare_spark
from kgs_core.system.transform_folder import use_folder_of
from tests.configuration import text_of

pytestmark = pytest.mark.slow

HOSTILE = "open(__file__ + '.was_run', 'w').close()\nraise ImportError('from the working directory')\n"


def config(folder, **rule):
    folder.mkdir(exist_ok=True)
    (folder / "kgs.yaml").write_text(text_of(topics=[{"topic": "t", **rule}]))
    return folder / "kgs.yaml"


def module(folder, name, says):
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(f"def f(table, topic):\n    return {says!r}\n")


@pytest.fixture(autouse=True)
def path(monkeypatch):
    """The path is put back, and so are the modules that came by it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "/of/the/user")
    yield
    for name in ("clean_rows",):
        sys.modules.pop(name, None)


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A working directory with modules that are named as libraries of ours are, and as the user's own."""
    folder = tmp_path / "cwd"
    folder.mkdir()
    for name in ("yaml", "click", "psutil", "dagster", "clean_rows"):
        (folder / f"{name}.py").write_text(HOSTILE)
    monkeypatch.chdir(folder)
    return folder


def was_run(folder):
    return sorted(file.name for file in folder.glob("*.was_run"))


def test_a_module_beside_the_configuration_is_found_before_any_other(tmp_path, hostile):
    module(tmp_path / "mine", "clean_rows", "beside kgs.yaml")
    module(tmp_path / "installed", "clean_rows", "installed")
    sys.path.insert(0, str(tmp_path / "installed"))
    file = config(tmp_path / "mine", transform_arrow="clean_rows:f")
    use_folder_of(Path(os.path.relpath(file)), load_settings(file, {}))
    assert load_hook("clean_rows:f")(None, "t") == "beside kgs.yaml"
    assert sys.path[0] == str(tmp_path / "mine")
    assert os.environ["PYTHONPATH"] == f"{tmp_path / 'mine'}{os.pathsep}/of/the/user"  # for Spark's workers
    use_folder_of(file, load_settings(file, {}))
    assert sys.path.count(str(tmp_path / "mine")) == 1
    assert os.environ["PYTHONPATH"].count("mine") == 1


def test_without_a_function_no_code_is_looked_for_there(tmp_path):
    file = config(tmp_path / "mine")
    use_folder_of(file, load_settings(file, {}))
    assert str(tmp_path / "mine") not in sys.path
    assert os.environ["PYTHONPATH"] == "/of/the/user"


def test_what_we_start_runs_nothing_that_lies_in_the_working_directory(tmp_path, hostile):
    """Real processes: what Python puts on its path depends on how it is started."""
    file = config(tmp_path / "mine")
    home = DagsterHome(tmp_path / "dagster", 1, 2)
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for command in (
        [*kgs_command(), "plan", "--help"],
        [*consume_command(file)(1), "--help"],
        [*home.daemon_command()[:4], "--help"],
        [*home.code_server_command(), "--help"],
    ):
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        assert (done.returncode, was_run(hostile)) == (0, []), done.stderr


def test_dagsters_code_server_is_not_told_to_search_the_working_directory(tmp_path):
    assert "--empty-working-directory" in DagsterHome(tmp_path, 1, 2).code_server_command()


def test_workers_of_spark_do_not_search_the_working_directory():
    """How they go about it is seen in tests/system/test_ingest.py."""
    assert prepare_spark(SparkSettings(), "g")["spark.executorEnv.PYTHONSAFEPATH"] == "1"
