"""Dagster's processes in a demonstration: one after the other, looked after, ended after the consumers."""

import sys

import pytest

from kgs_core.adapters.system.shutdown import StopFlag
from kgs_core.config import parse_settings
from kgs_core.demo.dagster_control import DagsterControl
from kgs_core.demo.dagster_home import DagsterHome
from kgs_core.demo.layout import Layout
from kgs_core.errors import TransientError
from tests.waiting import wait_until

SERVES = """
import socket, sys, time
taken = socket.socket()
taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
taken.bind(("127.0.0.1", int(sys.argv[1])))
taken.listen()
time.sleep(600)
"""


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Its processes are programs of the test's, which listen where the real ones do."""
    monkeypatch.setattr(DagsterHome, "code_server_command", lambda home: serving(home.code_port))
    monkeypatch.setattr(DagsterHome, "daemon_command", lambda _: [sys.executable, "-c", "import time; time.sleep(600)"])
    monkeypatch.setattr(DagsterHome, "webserver_command", lambda home: serving(home.web_port))
    settings = parse_settings(Layout(tmp_path).configuration("127.0.0.1:1").encode(), "kgs.yaml", {})
    logged = []
    control = DagsterControl(Layout(tmp_path), settings, {}, logged.append)
    yield control, logged
    control.kill()


def serving(port):
    return [sys.executable, "-c", SERVES, str(port)]


def bring_up(control, logged):
    control.start()

    def is_up():
        control.look_after()
        return logged[-1].startswith("Dagster's UI is at http://127.0.0.1:")

    wait_until(is_up, 20, f"it is up: {logged}")


def test_the_address_is_said_first_and_stands_in_the_table(made):
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


def test_before_there_is_a_daemon_nobody_has_to_be_told_to_end(made):
    control, logged = made
    control.start()
    assert control.end(StopFlag()) == []
    assert len(logged) == 1


@pytest.fixture
def wished(monkeypatch):
    wishes = []
    monkeypatch.setattr(DagsterControl, "_wish_stop", lambda _: wishes.append("stop"))
    return wishes


def test_dagster_ends_when_no_run_is_open_any_more(made, wished, monkeypatch):
    answers = [frozenset({"a", "b"}), None, frozenset({"a"}), frozenset()]
    monkeypatch.setattr(DagsterHome, "open_runs", lambda _: answers.pop(0))
    control, logged = made
    bring_up(control, logged)
    assert control.end(StopFlag()) == []
    assert (wished, answers) == (["stop"], [])


def test_runs_that_are_killed_at_once_are_told(made, wished, monkeypatch):
    interrupt = StopFlag()

    def open_runs(_):
        interrupt.set()
        return frozenset({"a", "b"})

    monkeypatch.setattr(DagsterHome, "open_runs", open_runs)
    control, logged = made
    bring_up(control, logged)
    assert control.end(interrupt)[0].startswith("2 runs did not end in order and were killed")


def test_where_kafka_does_not_take_the_wish_that_is_told(made, monkeypatch):
    def refuse(_):
        raise TransientError("Kafka 127.0.0.1:1: no answer")

    monkeypatch.setattr(DagsterControl, "_wish_stop", refuse)
    control, logged = made
    bring_up(control, logged)
    (problem,) = control.end(StopFlag())
    assert problem == "the consumers could not be told to end, and were killed: Kafka 127.0.0.1:1: no answer"
