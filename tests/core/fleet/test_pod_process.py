"""Which pod a process is in, and that reports carry it."""

from kgs_core.fleet.host_process import HostProcess
from kgs_core.fleet.pod_process import PodProcess, own_process
from kgs_core.group.protocol import Process

ENVIRON = {
    "KGS_POD_NAME": "flights-x1-3-1-abcde",
    "KGS_POD_NAMESPACE": "kgs",
    "KGS_POD_UID": "0c4b6ce1",
    "KGS_POD_CLUSTER": "c1",
    "KGS_RUN_ID": "9f1e",
}
POD = PodProcess("flights-x1-3-1-abcde", "kgs", "0c4b6ce1", "c1", "9f1e")


def test_a_process_in_a_pod_is_named_by_the_pod():
    assert PodProcess.of(own_process(ENVIRON)) == POD
    assert own_process(ENVIRON).run_id == "9f1e"


def test_a_process_in_no_pod_is_named_by_its_machine():
    found = own_process({"KGS_RUN_ID": "r"})
    assert PodProcess.of(found) is None
    assert HostProcess.of(found) == HostProcess.current({"KGS_RUN_ID": "r"})


def test_neither_kind_takes_the_other_for_its_own():
    assert HostProcess.of(POD.as_process()) is None
    assert PodProcess.of(Process({"uid": "0c4b6ce1"})) is None
    assert PodProcess.of(Process({**POD.as_process().parts, "uid": 7})) is None
