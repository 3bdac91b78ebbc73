"""The generator of a demonstration: begun once, missed when it dies, and not before it has begun."""

import os

import pytest

from kgs_core.demo.supervisor import GroupControl, Supervisor
from kgs_core.system.shutdown import StopFlag
from tests.core.demo.demo_words import ProgramLayout
from tests.waiting import wait_until


class Kafka:
    bootstrap_servers = "127.0.0.1:1"
    nodes = ()


class Control(GroupControl):
    is_started = False

    def start(self):
        self.is_started = True

    def end(self, _interrupt):
        return ["a consumer was killed"]


@pytest.fixture
def make(tmp_path):
    supervisors = []

    def supervisor(program):
        logged = []
        supervisors.append(
            Supervisor(
                ProgramLayout(tmp_path, program), "127.0.0.1:1", Control(), os.environ, logged.append, kafka=Kafka()
            )
        )
        return supervisors[-1], logged

    yield supervisor
    for each in supervisors:
        each.generator.kill()


def test_the_load_begins_when_it_is_told_to_and_once(make):
    supervisor, logged = make("import time; time.sleep(600)")
    supervisor.start()
    supervisor.look_after()
    assert supervisor.control.is_started
    assert (supervisor.generator.pid, supervisor.failure, logged) == (None, "", [])
    supervisor.begin_load()
    pid = supervisor.generator.pid
    supervisor.begin_load()
    assert supervisor.generator.pid == pid
    assert logged == [f"generator started (pid {pid}): flights of 2013, a day in 200 s"]


def test_a_generator_that_dies_is_missed_once(make):
    supervisor, logged = make("raise SystemExit('no data')")
    supervisor.begin_load()
    wait_until(lambda: supervisor.generator.pid is None, 10, "it lives")
    supervisor.look_after()
    supervisor.look_after()
    assert supervisor.failure == "generator has died (exit status 1): no data"
    assert len(logged) == 2
    assert "no more records will come" in logged[1]


def test_no_load_begins_after_the_end_has(make):
    supervisor, logged = make("import time; time.sleep(600)")
    supervisor.end_generator()
    supervisor.begin_load()
    assert (supervisor.generator.pid, logged) == (None, [])
    assert supervisor.end(StopFlag()) == ["a consumer was killed"]
