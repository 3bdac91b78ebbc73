"""How a demonstration ends: a child that has died for good ends it, whatever it was asked to wait for."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from kgs_core.demo import stages
from kgs_core.demo.stages import Stages
from kgs_core.system.shutdown import StopFlag

NO_ROWS = SimpleNamespace(has_rows=False, can_take_load=True, news=(), produced=None)
ROWS = SimpleNamespace(has_rows=True, can_take_load=True, news=(), produced=None, elapsed_s=7.0)


@dataclass
class Crew:
    """Its generator dies at the look of this number."""

    dies_at: int
    looks: int = 0
    ended: bool = False
    begun: bool = False

    @property
    def failure(self):
        return "generator has died (exit status 1): no data" if self.looks >= self.dies_at else ""

    def look_after(self):
        self.looks += 1

    def begin_load(self):
        self.begun = True

    def end_generator(self):
        self.ended = True


@dataclass
class Screen:
    logged: list[str] = field(default_factory=list)

    def say(self, line):
        self.logged.append(line)

    def show(self, *_, **__):
        pass


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(stages, "_TICK_S", 0.0)


def play(supervisor, snapshot, seconds):
    observer = SimpleNamespace(look=lambda _: snapshot)
    return Stages(supervisor, observer, Screen(), StopFlag()).play(seconds)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("seconds", [None, 3600.0])
@pytest.mark.parametrize("snapshot", [NO_ROWS, ROWS], ids=["before the first row", "while it runs"])
def test_a_child_that_is_dead_for_good_ends_it_with_its_words(snapshot, seconds):
    """Without a time limit, too: nobody is there to wait for."""
    assert play(Crew(dies_at=5), snapshot, seconds) == ["generator has died (exit status 1): no data"]


def test_a_first_row_is_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr(stages, "_CONSUMERS_TIMEOUT_S", 0.0)
    assert play(Crew(dies_at=10**9), NO_ROWS, 5.0) == ["no row in the lake within 0 s"]
