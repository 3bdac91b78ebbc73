"""Loads, groups and settings in few letters; a cluster of librdkafka's own, in this process; kills."""

import subprocess
import sys
from dataclasses import replace
from random import Random

import pytest

from kgs_core.config.membership import MembershipSettings
from kgs_core.group.controller.machine import begin, step
from kgs_core.group.controller.state import Options
from kgs_core.group.view.events import FleetSeen, RecordsRead
from kgs_core.ingest.fetch import fetch_sessions
from kgs_core.kafka import errors
from kgs_core.lake.files.storage import Storage
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.packing import ALGORITHMS
from kgs_core.packing.registry import WEIGHING
from kgs_core.system import failpoints
from tests.core.group.controller.two_readers import RUNS, group
from tests.failpoints import KilledError
from tests.mock_kafka import mock_kafka
from tests.sim_group import packing_of


@pytest.fixture(autouse=True)
def no_token_failure(monkeypatch):
    """What one test's tokens lack is nothing to the next one, in the same process."""
    monkeypatch.setattr(errors, "_token_failures", [])


@pytest.fixture
def tp():
    return lambda name: TopicPartition(name, 0)


@pytest.fixture
def speeds_of(tp):
    return lambda **speeds: {tp(name): float(speed) for name, speed in speeds.items()}


@pytest.fixture
def assigned(tp):
    """`{1: "ab"}` is partitions a and b at consumer 1."""
    return lambda bins: {tp(name): ConsumerId(number) for number, names in bins.items() for name in names}


@pytest.fixture
def algorithms_kept():
    """What a test registers is forgotten after it."""
    algorithms, weighing = dict(ALGORITHMS), set(WEIGHING)
    yield
    ALGORITHMS.clear()
    ALGORITHMS.update(algorithms)
    WEIGHING.clear()
    WEIGHING.update(weighing)


@pytest.fixture
def packing():
    return packing_of


@pytest.fixture
def new_random():
    return lambda: Random(0)


@pytest.fixture
def membership():
    """The settings as they come, with changes."""
    return MembershipSettings


@pytest.fixture
def options(packing, membership, new_random):
    return lambda: Options(packing(), membership(), new_random)


@pytest.fixture
def fresh(options):
    """A controller that knows nothing yet."""
    return begin(options(), 0.0, 0)[0]


@pytest.fixture
def synchronized(options):
    """A controller in Sentinel that has read a group in order, and knows its runs."""

    def build(messages=None, runs=RUNS, **changes):
        state, _ = begin(replace(options(), **changes), 0.0, 5_000_000)
        state, _ = step(state, RecordsRead(group() if messages is None else messages), 0.0)
        state, _ = step(state, FleetSeen(runs), 0.0)
        return state

    return build


@pytest.fixture
def child():
    """A process that does nothing."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in, with no configuration in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KGS_CONFIG", raising=False)
    return tmp_path


@pytest.fixture(scope="session")
def kafka():
    with mock_kafka() as kafka:
        yield kafka


@pytest.fixture
def no_sessions_left():
    """This process's clients, which a Spark worker keeps for its life, closed at the end."""
    yield
    fetch_sessions.close_sessions()


@pytest.fixture
def storage(tmp_path):
    """A lake that is not there yet."""
    return Storage(str(tmp_path / "lake"))


@pytest.fixture
def killer(monkeypatch):
    """Failpoint -> at which time that it is reached the process is killed there; or a function, called there once."""
    due = {}

    def failpoint(name, *_):
        match due.pop(name, None):
            case None:
                return
            case 1:
                raise KilledError
            case int(left):
                due[name] = left - 1
            case action:
                action()

    for name, module in list(sys.modules.items()):
        is_ours = name.startswith("kgs_core.") and module is not failpoints
        if is_ours and getattr(module, "failpoint", None) is failpoints.failpoint:
            monkeypatch.setattr(module, "failpoint", failpoint)
    return due
