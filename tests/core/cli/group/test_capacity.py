"""`kgs capacity` that is ended before it has read anything."""

from click.testing import CliRunner

from kgs_core.cli.main import cli
from kgs_core.runtime.capacity_test import CapacityResult
from tests.configuration import YAML


def test_one_that_was_ended_at_its_start_says_so(monkeypatch, tmp_path):
    file = tmp_path / "kgs.yaml"
    file.write_text(YAML)

    def run(_settings, _seconds, _progress, stop):
        stop.set()
        return CapacityResult((), 0.0, 1, 1, 0)

    monkeypatch.setattr("kgs_core.runtime.capacity_test.run_capacity_test", run)
    result = CliRunner().invoke(cli, ["capacity", "--config", str(file)])
    assert (result.exit_code, result.stderr) == (1, "error: capacity: ended before anything was read\n")
