"""Telling one process from another that has got its number."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from kgs_core.adapters.system import process_identity
from kgs_core.adapters.system.process_identity import end_with_process, is_gone, start_ticks, this_process
from kgs_core.adapters.system.shutdown import StopFlag
from kgs_core.protocol import Process
from tests.waiting import wait_until

FIRST = 0xEFFFFFFC
"""The namespace of processes that are in no container."""


@pytest.fixture
def child():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def test_this_process_is_told_with_the_run_it_belongs_to():
    me = this_process({"KGS_RUN_ID": "run-7"})
    assert (me.pid, me.run_id, len(me.boot_id)) == (os.getpid(), "run-7", 36)
    assert this_process({}).run_id == ""
    assert is_gone(me) is False


def test_name_with_blanks_and_brackets_does_not_shift_the_fields(tmp_path):
    program = tmp_path / "a) R 1 (b"
    program.symlink_to("/bin/sleep")
    process = subprocess.Popen([program, "600"])
    try:
        wait_until(lambda: start_ticks(process.pid) is not None, 5, "started")
        assert 0 <= start_ticks(process.pid) - start_ticks(os.getpid()) < 100_000_000
    finally:
        process.kill()
        process.wait()


def test_zombie_is_gone(child):
    known = replace(this_process({}), pid=child.pid, start_ticks=start_ticks(child.pid))
    assert is_gone(known) is False
    child.send_signal(signal.SIGKILL)
    wait_until(lambda: is_gone(known), 5, "gone, although nobody has asked for its exit status")


def test_another_process_with_the_same_id_is_not_the_one_meant():
    me = this_process({})
    assert is_gone(replace(me, start_ticks=me.start_ticks - 1)) is True


def test_process_of_another_machine_cannot_be_told():
    assert is_gone(replace(this_process({}), host="elsewhere", pid=2**22)) is None


def test_a_process_of_an_earlier_boot_of_this_machine_is_gone(monkeypatch):
    monkeypatch.setattr(process_identity, "pid_namespace", lambda: FIRST)
    monkeypatch.setattr(process_identity, "machine_id", lambda: "m")
    before = replace(this_process({}), boot_id="another")
    assert (before.machine_id, before.pid_namespace) == ("m", FIRST)
    assert is_gone(before) is True


@pytest.mark.parametrize("other", ["", "of another machine"])
def test_a_machine_of_the_same_name_is_not_this_one(monkeypatch, other):
    """`localhost` is the name of many; a machine without an id cannot be told from another one either."""
    monkeypatch.setattr(process_identity, "pid_namespace", lambda: FIRST)
    monkeypatch.setattr(process_identity, "machine_id", lambda: "" if other == "" else "m")
    assert is_gone(replace(this_process({}), boot_id="another", machine_id=other)) is None


def test_of_a_container_on_another_boot_nothing_is_known(monkeypatch):
    """Its image may bring a machine id along, and the numbers of namespaces are the same on every machine."""
    monkeypatch.setattr(process_identity, "pid_namespace", lambda: FIRST + 500)
    assert is_gone(replace(this_process({}), boot_id="another")) is None


def test_a_process_with_other_process_ids_cannot_be_told():
    me = this_process({})
    assert is_gone(replace(me, pid=2**22, pid_namespace=me.pid_namespace + 1)) is None


def test_one_that_does_not_say_its_namespace_is_told_as_before():
    """Reports and tags of an older version: what an upgrade has ended must not look alive for ever."""
    old = replace(this_process({}), machine_id="", pid_namespace=0)
    assert is_gone(old) is False
    assert is_gone(replace(old, pid=2**22)) is True
    assert is_gone(replace(old, boot_id="another")) is True


def test_a_living_process_in_a_container_of_this_machine_is_not_taken_for_dead():
    """Real, since namespaces are the kernel's: same host name, same boot, and a pid that means nothing here."""
    program = "import json, time; from dataclasses import asdict\n"
    program += "from kgs_core.adapters.system.process_identity import this_process\n"
    program += "print(json.dumps(asdict(this_process({}))), flush=True); time.sleep(600)"
    own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    inside = ["unshare", *own, "--pid", "--fork", "--kill-child", "--mount-proc"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*inside, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no namespace can be made here")
    with subprocess.Popen([*inside, sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as other:
        try:
            found = Process(**json.loads(other.stdout.readline()))
            assert (found.host, found.boot_id) == (this_process({}).host, this_process({}).boot_id)
            assert is_gone(found) is None
        finally:
            other.kill()


def test_process_of_another_user_is_seen(child):
    assert is_gone(replace(this_process({}), pid=1, start_ticks=start_ticks(1))) is False


def test_stop_is_asked_for_when_the_other_process_ends_and_not_before(child):
    stop, of_a_dead_one = StopFlag(), StopFlag()
    end_with_process(child.pid, stop)
    end_with_process(2**22 + 1, of_a_dead_one)  # above the highest id that there can be
    wait_until(lambda: of_a_dead_one.is_set, 5, "a process that was gone before counts as gone")
    assert not stop.is_set
    child.kill()
    wait_until(lambda: stop.is_set, 5, "asked to end")
