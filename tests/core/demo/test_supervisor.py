"""The generator of a demonstration: begun once, missed when it dies, and not before it has begun."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from kgs_core.adapters.system.shutdown import StopFlag
from kgs_core.demo.supervisor import Supervisor
from tests.waiting import wait_until


@dataclass(frozen=True)
class Stub:
    """A scene whose generator is a program of the test's."""

    directory: Path
    program: str
    time_factor: float = 432.0

    def generate_command(self, bootstrap_servers):
        assert bootstrap_servers == "127.0.0.1:1"
        return [sys.executable, "-c", self.program]

    def log_file(self, name):
        return self.directory / f"{name}.log"


class Kafka:
    bootstrap_servers = "127.0.0.1:1"
    nodes = ()


class Control:
    invitation = ""
    state = ""
    failure = ""
    is_started = False

    def start(self):
        self.is_started = True

    def look_after(self):
        pass

    def end(self, _interrupt):
        return ["a consumer was killed"]

    def kill(self):
        pass


@pytest.fixture
def make(tmp_path):
    crews = []

    def crew(program):
        logged = []
        crews.append(Supervisor(Stub(tmp_path, program), Kafka(), Control(), os.environ, logged.append))
        return crews[-1], logged

    yield crew
    for each in crews:
        each.generator.kill()


def test_the_load_begins_when_it_is_told_to_and_once(make):
    crew, logged = make("import time; time.sleep(600)")
    crew.start()
    crew.look_after()
    assert crew.control.is_started
    assert (crew.generator.pid, crew.failure, logged) == (None, "", [])
    crew.begin_load()
    pid = crew.generator.pid
    crew.begin_load()
    assert crew.generator.pid == pid
    assert logged == [f"generator started (pid {pid}): flights of 2013, a day in 200 s"]


def test_a_generator_that_dies_is_missed_once(make):
    crew, logged = make("raise SystemExit('no data')")
    crew.begin_load()
    wait_until(lambda: crew.generator.pid is None, 10, "it lives")
    crew.look_after()
    crew.look_after()
    assert crew.failure == "generator has died (exit status 1): no data"
    assert len(logged) == 2
    assert "no more records will come" in logged[1]


def test_no_load_begins_after_the_end_has(make):
    crew, logged = make("import time; time.sleep(600)")
    crew.end_generator()
    crew.begin_load()
    assert (crew.generator.pid, logged) == (None, [])
    assert crew.end(StopFlag()) == ["a consumer was killed"]
