"""Dagster in a demonstration: its folder, its processes one after the other, ended after the consumers."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from kgs_core.config import parse_settings
from kgs_core.demo import dagster_control
from kgs_core.demo.dagster_control import DagsterControl, DagsterHome, is_open
from kgs_core.demo.layout import Layout
from kgs_core.errors import PermanentError, TransientError
from kgs_core.system.shutdown import StopFlag
from kgs_core.system.tcp_ports import HOST, PortReservation
from tests.loopback_http import LoopbackServer, QuietHandler
from tests.waiting import wait_until

SERVES = """
import socket, sys, time
taken = socket.socket()
taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
taken.bind(("127.0.0.1", int(sys.argv[1])))
taken.listen()
time.sleep(600)
"""

MAKES = """
import pathlib, time
while not pathlib.Path("may-end").exists():
    time.sleep(0.01)
"""


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Its processes are programs of the test's, which listen where the real ones do."""
    monkeypatch.setattr(DagsterHome, "storage_command", lambda _: [sys.executable, "-c", MAKES])
    monkeypatch.setattr(DagsterHome, "code_server_command", lambda home: serving(home.code_port))
    monkeypatch.setattr(DagsterHome, "daemon_command", lambda _: [sys.executable, "-c", "import time; time.sleep(600)"])
    monkeypatch.setattr(DagsterHome, "webserver_command", lambda home: serving(home.web_port))
    monkeypatch.chdir(tmp_path)
    settings = parse_settings(Layout(tmp_path).configuration("127.0.0.1:1").encode(), "kgs.yaml", {})
    logged = []
    control = DagsterControl(Layout(tmp_path), settings, {}, logged.append)
    yield control, logged
    control.kill()


def serving(port):
    return [sys.executable, "-c", SERVES, str(port)]


def bring_up(control, logged):
    Path("may-end").touch()
    control.start()

    def is_up():
        control.look_after()
        return logged[-1].startswith("Dagster's UI is at http://127.0.0.1:")

    wait_until(is_up, 20, f"it is up: {logged}")


def test_the_address_is_shown_first_and_stands_in_the_table(made):
    control, logged = made
    bring_up(control, logged)
    address = logged[-1].rpartition(" ")[2]
    assert address in logged[0]
    assert control.state == f"Dagster at {address}"


def test_daemon_and_webserver_wait_for_the_definitions(made):
    control, logged = made
    control.look_after()
    assert logged == []
    assert control.state.startswith("Dagster starts at http://")


def test_all_wait_for_the_tables(made):
    """Seen: two made them, their version stood there twice, and neither daemon nor webserver could start ever after."""
    control, logged = made
    control.start()
    control.look_after()
    assert not control._code_server.has_begun
    bring_up(control, logged)


def test_before_there_is_a_daemon_nobody_has_to_be_told_to_end(made):
    control, logged = made
    control.start()
    assert control.end(StopFlag()) == []
    assert len(logged) == 1


@pytest.fixture
def asked_to_stop(monkeypatch):
    written = []
    monkeypatch.setattr(DagsterControl, "_write_stopped", lambda _: written.append("stop"))
    return written


def test_dagster_ends_when_no_run_is_open_any_more(made, asked_to_stop, monkeypatch):
    answers = [frozenset({"a", "b"}), None, frozenset({"a"}), frozenset()]
    monkeypatch.setattr(DagsterHome, "open_runs", lambda _: answers.pop(0))
    control, logged = made
    bring_up(control, logged)
    assert control.end(StopFlag()) == []
    assert (asked_to_stop, answers) == (["stop"], [])


def test_runs_that_are_killed_at_once_are_reported(made, asked_to_stop, monkeypatch):
    interrupt = StopFlag()

    def open_runs(_):
        interrupt.set()
        return frozenset({"a", "b"})

    monkeypatch.setattr(DagsterHome, "open_runs", open_runs)
    control, logged = made
    bring_up(control, logged)
    assert control.end(interrupt)[0].startswith("2 runs did not end in order and were killed")


def test_where_kafka_does_not_take_the_desired_state_that_is_reported(made, monkeypatch):
    def refuse(_):
        raise TransientError("Kafka 127.0.0.1:1: no answer")

    monkeypatch.setattr(DagsterControl, "_write_stopped", refuse)
    control, logged = made
    bring_up(control, logged)
    (problem,) = control.end(StopFlag())
    assert problem == "the consumers could not be told to end, and were killed: Kafka 127.0.0.1:1: no answer"


@pytest.fixture
def ports():
    reserved = PortReservation()
    yield reserved
    reserved.release()


@pytest.fixture
def home(tmp_path, ports):
    return DagsterHome(tmp_path / "dagster", ports.reserve(), ports.reserve())


@pytest.fixture
def answering(home):
    """A webserver that gives the answer set on it; what it was asked is kept."""

    class Answer(QuietHandler):
        def do_POST(self):  # noqa: N802 - the name that http.server asks for
            given.asked.append(json.loads(self.body()))
            self.reply(200, given.answer)

    given = SimpleNamespace(answer=b"", asked=[])
    with LoopbackServer(Answer, home.web_port):
        yield given


def test_the_home_has_the_settings_of_one_machine_and_one_place_of_code(home):
    home.prepare()
    assert (home.directory / "dagster.yaml").read_text() == (Path(__file__).parents[3] / "dagster.yaml").read_text()
    (place,) = yaml.safe_load((home.directory / "workspace.yaml").read_text())["load_from"]
    assert place == {"grpc_server": {"host": HOST, "port": home.code_port, "location_name": "kgs"}}


def test_a_home_that_is_there_is_refused_in_one_line(home):
    home.prepare()
    with pytest.raises(PermanentError, match=r"dagster: File exists: name another --directory"):
        home.prepare()


def test_without_its_settings_the_way_out_is_named(home, monkeypatch, tmp_path):
    monkeypatch.setattr(dagster_control, "_SETTINGS", tmp_path / "dagster.yaml")
    with pytest.raises(PermanentError, match=r"dagster.yaml: not there: .*`kgs demo --bare`"):
        home.prepare()


def test_a_dagster_of_the_user_has_no_say(home, tmp_path):
    inner = home.environ({"DAGSTER_HOME": "/mine", "DAGSTER_INSTANCE_REF": "x", "PATH": "/bin"}, tmp_path / "kgs.yaml")
    assert inner["DAGSTER_HOME"] == str(home.directory)
    assert inner["KGS_CONFIG"] == str(tmp_path / "kgs.yaml")
    assert inner["PATH"] == "/bin"
    assert "DAGSTER_INSTANCE_REF" not in inner


def test_everything_listens_on_this_machine_only(home):
    for command in (home.code_server_command(), home.webserver_command()):
        assert command[command.index("-h") + 1] == "127.0.0.1"


def test_open_runs_are_those_that_the_webserver_names(home, answering):
    answering.answer = b'{"data": {"runsOrError": {"results": [{"runId": "a"}, {"runId": "b"}]}}}'
    assert is_open(home.web_port)
    assert home.open_runs() == {"a", "b"}
    answering.answer = b'{"data": {"runsOrError": {"results": []}}}'
    assert home.open_runs() == frozenset()
    assert "SUCCESS" not in answering.asked[0]["query"]


@pytest.mark.parametrize("answer", [b"", b"not found", b"[]", b'{"errors": []}', b'{"data": {"runsOrError": {}}}'])
def test_an_answer_that_says_nothing_is_not_taken_for_no_runs(home, answering, answer):
    answering.answer = answer
    assert home.open_runs() is None


def test_nobody_there(home):
    assert home.open_runs() is None
    assert not is_open(home.code_port)
