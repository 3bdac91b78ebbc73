"""A fleet of somebody else's, chosen by its name."""

import os
import signal

import pytest
from click.testing import CliRunner

import kgs_core.cli.group.control  # noqa: F401 - its help names the fleets that there are when it is loaded
from kgs_core.cli.main import cli
from kgs_core.errors import TransientError
from kgs_core.fleet.fleets import FLEETS
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.model import ConsumerId
from kgs_core.ports import Run
from tests.configuration import YAML


class Nobody:
    """A fleet whose consumers never end by themselves."""

    def __init__(self, settings, options):
        self.group, self.options, self.ended = settings.group, options, []

    def runs(self):
        return [Run(ConsumerId(number), f"run-{number}", 1.0, is_over=number == 2) for number in (1, 2, 4)]

    def end_all(self, timeout_s, interrupt):
        self.ended.append(timeout_s)
        return (ConsumerId(4),)


@pytest.fixture
def control(tmp_path):
    file = tmp_path / "kgs.yaml"
    file.write_text(YAML)
    return lambda *more: CliRunner().invoke(cli, ["control", "--config", str(file), *more])


@pytest.fixture
def built(monkeypatch):
    """Fleets `nobody` that were built; a controller is asked to end while it waits for Kafka."""
    fleets = []

    def build(settings, options):
        fleets.append(Nobody(settings, options))
        return fleets[-1]

    def asked_to_end(*_):
        os.kill(os.getpid(), signal.SIGTERM)
        raise TransientError("Kafka 127.0.0.1:9: no answer", 0.0)

    monkeypatch.setitem(FLEETS, "nobody", build)
    monkeypatch.setattr(KafkaAdmin, "describe", asked_to_end)
    return fleets


def test_a_new_fleet_is_a_line_in_the_table(control, built, tmp_path):
    """Asked to end, the controller has this fleet end the consumers."""
    result = control("--fleet", "nobody", "--end-consumers", "--log-dir", str(tmp_path / "logs"))
    assert result.stderr.splitlines()[-1].startswith("error: consumers 4: did not end in time and were killed")
    (fleet,) = built
    assert (fleet.group, fleet.ended) == ("g", [300.0])
    assert fleet.options.log_dir == tmp_path / "logs"
    assert not (tmp_path / "logs").exists(), "nothing of another fleet is made"


def test_a_controller_that_ends_says_who_reads_on_and_how_to_end_them(control, built, monkeypatch):
    result = control("--fleet", "nobody")
    assert (result.exit_code, built[0].ended) == (0, [])
    assert result.stderr.splitlines()[-1] == (
        "consumers 1, 4 keep running for the next controller; to end them: kgs control --fleet nobody --end-now"
    )
    monkeypatch.setattr(Nobody, "runs", lambda _: ())
    assert "keep running" not in control("--fleet", "nobody").stderr


def test_consumers_are_ended_where_no_controller_runs(control, built, monkeypatch):
    def refuse(*_):
        raise AssertionError("no controller is started, nobody is fenced")

    monkeypatch.setattr(KafkaAdmin, "describe", refuse)
    result = control("--fleet", "nobody", "--end-now")
    assert built[0].ended == [300.0]
    assert result.stderr.startswith("error: consumers 4: did not end in time and were killed")


OTHERS = f"'moon': write {', '.join(FLEETS)}"


@pytest.mark.parametrize(
    ("more", "arguments", "said"),
    [
        ("", "--fleet moon", f"--fleet: {OTHERS}"),
        ("fleet: moon\n", "", f"kgs.yaml: fleet: {OTHERS}"),
        (
            "",
            "--fleet kubernetes --end-with 1",
            "--end-with: consumers in a cluster cannot see a process of this machine",
        ),
    ],
)
def test_a_fleet_that_cannot_be_is_refused_before_anything_is_made(control, tmp_path, more, arguments, said):
    (tmp_path / "kgs.yaml").write_text(YAML + more)
    result = control(*arguments.split())
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr
    assert not (tmp_path / "logs").exists()


def test_help_names_the_fleets(control):
    assert f"Where consumers run: {', '.join(FLEETS)}." in " ".join(control("--help").stdout.split())
