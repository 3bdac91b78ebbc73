"""`kgs pause`, `resume`, `stop`, `replace`: what waiting for them means, and what is asked first."""

import pytest
from click.testing import CliRunner

from kgs_core.cli.main import cli
from kgs_core.cli.wishes import wait_for
from kgs_core.control.overview import Overview, Surroundings
from kgs_core.errors import PermanentError, TransientError
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.protocol import RunState, Wish

A = TopicPartition("t", 0)
MINE = Wish(RunState.PAUSED, "me", 1)
CONFIG = "group: g\nkafka: {bootstrap_servers: '127.0.0.1:9'}\nlake: {root: /lake}\ntopics: [{topic: t}]\n"


def seen(**changes):
    found = {
        "group": "g",
        "controller_is_heard": True,
        "target": None,
        "current": {},
        "is_converged": False,
        "waiting": {},
        "consumers": (),
        "lag": None,
        "surroundings": Surroundings(),
        "wish": MINE,
    }
    return Overview(**{**found, **changes})


def converged(found):
    return found.is_converged if found.wish == MINE else None


def test_waits_until_it_has_happened():
    looks = [seen(waiting={A: "held by 1@one"}), seen(is_converged=True)]
    wait_for(lambda: looks.pop(0), converged, 60)
    assert looks == []


def test_another_wish_ends_the_waiting():
    with pytest.raises(PermanentError, match=r"group g: another wish has come meanwhile \(by you\)"):
        wait_for(lambda: seen(is_converged=True, wish=Wish(RunState.RUNNING, "you", 2)), converged, 60)


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        ({"waiting": {A: "consumer 1 is to let it go"}}, "not there yet: t:0 (consumer 1 is to let it go)"),
        ({"controller_is_heard": False, "waiting": {A: "x"}}, "the controller is down, start `kgs control`"),
        ({"outdated": (ConsumerId(3),)}, "still to be replaced: consumers 3"),
        ({}, "consumers start or end"),
    ],
)
def test_what_it_waited_for_in_vain_is_said(lacking, said):
    with pytest.raises(TransientError) as caught:
        wait_for(lambda: seen(**lacking), converged, 0)
    assert str(caught.value) == f"group g: not in 0 s, {said}: the wish stands; see `kgs status`"


@pytest.fixture
def config(tmp_path):
    (tmp_path / "kgs.yaml").write_text(CONFIG)
    return str(tmp_path / "kgs.yaml")


def test_a_stop_is_asked_for_first(config):
    """No answer is no yes: nothing is written, and Kafka, which is not there, is not asked."""
    result = CliRunner().invoke(cli, ["stop", "--config", config], input="n\n")
    assert result.exit_code == 1
    assert "End all consumers of group g? Nobody reads until `kgs resume` [y/N]" in result.stdout
    assert result.stderr == "Aborted!\n"


@pytest.mark.parametrize("command", ["pause", "resume", "stop", "replace"])
def test_every_wish_can_be_waited_for(command):
    shown = CliRunner().invoke(cli, [command, "--help"]).stdout
    assert {"--config", "--wait", "--timeout"} <= set(shown.split())
