"""Real processes: started once, found again by whoever comes later, ended with all their own, and known to be dead."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from kgs_core.errors import PermanentError, TransientError
from kgs_core.fleet.host_process import this_process
from kgs_core.fleet.local import LocalFleet, consume_command
from kgs_core.system.processes import find_runs
from tests.configuration import settings_of
from tests.waiting import wait_until

# As a consumer: one in its process group, one in a group of its own, as Spark's Python workers are.
CONSUMER = """
import os, signal, subprocess, sys, time
same = subprocess.Popen(["sleep", "600"])
own = subprocess.Popen(["sleep", "600"], process_group=0)
print("run", os.environ["KGS_RUN_ID"], flush=True)
{handler}
time.sleep(600)
"""
OBEYS = "signal.signal(signal.SIGTERM, lambda *_: (same.kill(), own.kill(), sys.exit(0)))"
LEAVES_ITS_OWN = "signal.signal(signal.SIGTERM, lambda *_: os._exit(7))"
IS_DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


@pytest.fixture
def group(request):
    """A group of this test's own, whose processes are ended by id whatever happens."""
    name = f"fleet-{os.getpid()}-{abs(hash(request.node.name)) % 10**8}"
    yield name
    for members in find_runs(f"{name}@").values():
        for member in members:
            member.kill()


def fleet_of(group, tmp_path, handler=OBEYS, command=None):
    program = CONSUMER.format(handler=handler)
    return LocalFleet(
        settings_of(group=group), command or (lambda _: [sys.executable, "-c", program]), tmp_path / "logs", os.environ
    )


def wait_up(tmp_path, consumer, times=1):
    """Its handler is in place once it has spoken."""
    log = tmp_path / "logs" / f"consumer-{consumer}.log"
    wait_until(lambda: log.exists() and log.read_text().count("run ") == times, 20, "it did not come up")


def only(runs):
    (run,) = runs
    return run


def members(group):
    return [process for run in find_runs(f"{group}@").values() for process in run]


def test_a_started_consumer_is_a_run_and_has_its_name_in_its_environment(group, tmp_path):
    fleet = fleet_of(group, tmp_path)
    run = fleet.start(3)
    wait_up(tmp_path, 3)
    assert (run.consumer, run.is_over, run.exit_code) == (3, False, None)
    assert (tmp_path / "logs" / "consumer-3.log").read_text() == f"run {run.handle}\n"
    assert [(r.consumer, r.handle, r.is_over) for r in fleet.runs()] == [(3, run.handle, False)]
    fleet.stop(run.handle)
    wait_until(lambda: only(fleet.runs()).is_over, 20, "it did not end")
    assert only(fleet.runs()).exit_code == 0
    wait_until(lambda: members(group) == [], 20, "what it has killed did not end")


def test_no_consumer_is_started_twice_not_even_by_another_controller(group, tmp_path):
    """The second fleet is a controller that knows nothing: the first was killed right after its start."""
    first, second = fleet_of(group, tmp_path), fleet_of(group, tmp_path)
    run = first.start(1)
    assert first.start(1).handle == run.handle
    assert second.start(1).handle == run.handle
    assert second.start(2).handle != run.handle
    wait_up(tmp_path, 1)
    wait_up(tmp_path, 2)
    assert [r.consumer for r in fleet_of(group, tmp_path).runs()] == [1, 2]
    assert first.end_all(20) == ()
    assert all(r.is_over for r in second.runs())


def test_a_consumer_outlives_its_controller_and_is_found_asked_to_end_and_seen_dead_by_the_next(group, tmp_path):
    program = f"""
import os, sys
from pathlib import Path
from tests.core.fleet.test_local import fleet_of
fleet_of({group!r}, Path({str(tmp_path)!r})).start(4)
os.kill(os.getpid(), 9)
"""
    root = str(Path(__file__).parents[3])
    subprocess.run([sys.executable, "-c", program], check=False, env={**os.environ, "PYTHONPATH": root}, cwd=root)
    wait_up(tmp_path, 4)
    fleet = fleet_of(group, tmp_path)
    run = only(fleet.runs())
    assert (run.consumer, run.is_over, run.started_s > 0) == (4, False, True)
    fleet.stop(run.handle)
    wait_until(lambda: only(fleet.runs()).is_over, 20, "its end was not noticed")
    assert only(fleet.runs()).exit_code is None  # told to its parent alone
    assert fleet.start(4).handle != run.handle
    fleet.end_all(0)


def test_what_a_dead_consumer_leaves_behind_is_ended(group, tmp_path, monkeypatch):
    monkeypatch.setattr("kgs_core.fleet.local.AFTERMATH_S", 0.2)
    fleet = fleet_of(group, tmp_path, LEAVES_ITS_OWN)
    run = fleet.start(1)
    wait_up(tmp_path, 1)
    assert len(members(group)) == 3
    fleet.stop(run.handle)
    wait_until(lambda: only(fleet.runs()).is_over, 20, "it did not end")
    assert only(fleet.runs()).exit_code == 7
    wait_until(lambda: fleet.runs() and not members(group), 20, "its own were left")


def test_the_deaf_are_killed_at_the_end_with_all_their_own(group, tmp_path):
    fleet = fleet_of(group, tmp_path, IS_DEAF)
    fleet.start(1)
    wait_up(tmp_path, 1)
    assert fleet.end_all(0.3) == (1,)
    wait_until(lambda: not members(group), 10, "something was left")
    assert only(fleet.runs()).exit_code == -signal.SIGKILL


def test_one_that_does_not_end_when_asked_is_killed_after_the_time_that_a_batch_may_take(group, tmp_path):
    settings = settings_of(group=group)
    settings = settings.model_copy(update={"consumer": settings.consumer.model_copy(update={"batch_timeout_s": 0.3})})
    program = CONSUMER.format(handler=IS_DEAF)
    fleet = LocalFleet(settings, lambda _: [sys.executable, "-c", program], tmp_path / "logs", os.environ)
    run = fleet.start(1)
    wait_up(tmp_path, 1)
    fleet.stop(run.handle)
    wait_until(lambda: only(fleet.runs()).is_over, 20, "it was not killed")
    wait_until(lambda: not members(group), 20, "its own were left")


def test_another_group_and_another_kafka_are_another_fleet(group, tmp_path):
    fleet = fleet_of(group, tmp_path)
    fleet.start(1)
    wait_up(tmp_path, 1)
    elsewhere = settings_of(group=group)
    kafka = elsewhere.kafka.model_copy(update={"bootstrap_servers": "127.0.0.1:10"})
    other = LocalFleet(elsewhere.model_copy(update={"kafka": kafka}), lambda _: ["true"], tmp_path / "logs", os.environ)
    assert other.runs() == ()
    assert fleet_of(f"{group}-b", tmp_path).runs() == ()
    assert other.end_all(1) == ()
    assert only(fleet.runs()).is_over is False
    assert fleet.end_all(20) == ()


def test_what_cannot_be_started_is_worth_another_try(group, tmp_path):
    fleet = fleet_of(group, tmp_path, command=lambda _: [str(tmp_path / "missing")])
    with pytest.raises(TransientError, match="consumer 1 cannot be started"):
        fleet.start(1)
    assert fleet.runs() == ()


def test_a_log_folder_that_cannot_be_is_refused(group, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(PermanentError, match="--log-dir"):
        LocalFleet(settings_of(group=group), lambda _: [], tmp_path / "file" / "logs", os.environ)


def test_stopping_what_is_not_there_asks_nobody_and_what_is_there_just_that(group, tmp_path, monkeypatch):
    fleet = fleet_of(group, tmp_path)
    run, other = fleet.start(1), fleet.start(2)
    asked = []
    terminate = subprocess.Popen.terminate
    monkeypatch.setattr(subprocess.Popen, "terminate", lambda child: (asked.append(child.pid), terminate(child)))
    monkeypatch.setattr(psutil.Process, "terminate", lambda process: asked.append(process.pid))
    # While a process changes into another program it has no environment, by which it is found
    wait_until(lambda: len(find_runs(f"{group}@")) == 2, 20, "both are there")
    leaders = {name: min(member.pid for member in found) for name, found in find_runs(f"{group}@").items()}
    os.kill(leaders[run.handle], signal.SIGKILL)
    wait_until(lambda: fleet.runs()[0].is_over, 20, "its death was not noticed")
    fleet.stop("nobody")
    fleet.stop(run.handle)
    assert asked == []
    assert [each.is_over for each in fleet.runs()] == [True, False]
    fleet.stop(other.handle)
    assert asked == [leaders[other.handle]]
    assert fleet.end_all(20) == ()


def test_commands_name_the_consumer_and_the_configuration_in_full(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = consume_command(Path("kgs.yaml"), "--end-with", "7")(5)
    assert command[0] == sys.executable
    assert command[-7:] == ["consume", "--id", "5", "--config", str(tmp_path / "kgs.yaml"), "--end-with", "7"]
    shown = subprocess.run([*command[:4], "--help"], capture_output=True, text=True, check=True)
    assert "Usage: kgs" in shown.stdout


def test_this_process_is_alive_and_of_one_of_another_machine_it_is_unknown(group, tmp_path):
    fleet = fleet_of(group, tmp_path)
    me = this_process()
    assert fleet.is_dead(me) is False
