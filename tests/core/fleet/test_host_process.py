"""Telling one process from another that has got its number."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from kgs_core.fleet import host_process
from kgs_core.fleet.host_process import HostProcess, is_gone, this_process
from kgs_core.group.protocol import Process
from kgs_core.system.process_identity import start_ticks
from tests.waiting import wait_until

FIRST = 0xEFFFFFFC
"""The namespace of processes that are in no container."""


def test_this_process_is_identified_with_the_run_it_belongs_to():
    me = HostProcess.current({"KGS_RUN_ID": "run-7"})
    assert (me.pid, me.run_id, len(me.boot_id)) == (os.getpid(), "run-7", 36)
    assert HostProcess.current({}).run_id == ""
    assert me.is_gone() is False


def test_what_reports_say_of_a_process_identifies_it(child):
    """Gone, living, and of another kind."""
    known = replace(HostProcess.current({}), pid=child.pid, start_ticks=start_ticks(child.pid), run_id="run-7")
    assert HostProcess.of(known.as_process()) == known
    assert known.as_process().run_id == "run-7"
    assert is_gone(this_process()) is False
    assert is_gone(replace(known, start_ticks=known.start_ticks - 1).as_process()) is True
    assert is_gone(Process({"uid": "0b3f", "namespace": "kgs", "run_id": "consumer-3"})) is None
    assert is_gone(Process({**known.as_process().parts, "pid": "17"})) is None


def test_parts_that_a_later_version_adds_are_passed_over():
    known = HostProcess.current({})
    assert HostProcess.of(Process({**known.as_process().parts, "later": 1})) == known


def test_zombie_is_gone_and_another_process_with_the_same_id_is_not_the_one_meant(child):
    known = replace(HostProcess.current({}), pid=child.pid, start_ticks=start_ticks(child.pid))
    assert (known.is_gone(), replace(known, start_ticks=known.start_ticks - 1).is_gone()) == (False, True)
    child.send_signal(signal.SIGKILL)
    wait_until(known.is_gone, 5, "gone, although nobody has asked for its exit status")


@pytest.mark.parametrize(
    ("said", "is_gone"),
    [
        ({}, False),
        ({"pid": 2**22}, True),
        ({"host": "elsewhere", "pid": 2**22}, None),
        ({"boot_id": "another"}, True),
        ({"boot_id": "another", "machine_id": ""}, None),
        ({"boot_id": "another", "machine_id": "of another machine"}, None),
        ({"pid": 2**22, "pid_namespace": FIRST + 1}, None),
        ({"boot_id": "another", "pid_namespace": FIRST + 500}, None),
    ],
    ids=[
        "this one",
        "ended",
        "of another machine",
        "of an earlier boot of this machine",
        "of a machine without an id, which cannot be told from another one",
        "of a machine of the same name: `localhost` is the name of many",
        "with other process ids",
        "of a container on another boot: its image may bring a machine id along",
    ],
)
def test_whether_a_process_is_gone(monkeypatch, said, is_gone):
    monkeypatch.setattr(host_process, "pid_namespace", lambda: FIRST)
    monkeypatch.setattr(host_process, "machine_id", lambda: "m")
    assert replace(HostProcess.current({}), **said).is_gone() is is_gone


def test_of_a_container_on_another_boot_nothing_is_known(monkeypatch):
    """The numbers of namespaces are the same on every machine."""
    monkeypatch.setattr(host_process, "pid_namespace", lambda: FIRST + 500)
    assert replace(HostProcess.current({}), boot_id="another").is_gone() is None


def test_a_living_process_in_a_container_of_this_machine_is_not_taken_for_dead():
    """Real, since namespaces are the kernel's: same host name, same boot, and a pid that means nothing here."""
    program = "import json, time; from dataclasses import asdict\n"
    program += "from kgs_core.fleet.host_process import HostProcess\n"
    program += "print(json.dumps(asdict(HostProcess.current({}))), flush=True); time.sleep(600)"
    own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    inside = ["unshare", *own, "--pid", "--fork", "--kill-child", "--mount-proc"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*inside, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no namespace can be made here")
    with subprocess.Popen([*inside, sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as other:
        try:
            found = HostProcess(**json.loads(other.stdout.readline()))
            assert (found.host, found.boot_id) == (HostProcess.current({}).host, HostProcess.current({}).boot_id)
            assert found.is_gone() is None
        finally:
            other.kill()


def test_process_of_another_user_is_seen(child):
    assert replace(HostProcess.current({}), pid=1, start_ticks=start_ticks(1)).is_gone() is False
