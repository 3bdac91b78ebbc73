"""Short names of processes, of each kind of fleet."""

from kgs_core.demo.observer import short_name
from kgs_core.fleet.host_process import HostProcess
from kgs_core.fleet.pod_process import PodProcess
from tests.processes import a_process


def test_each_kind_is_named_as_people_look_for_it():
    assert short_name(HostProcess("h", "b", 4711, 1).as_process()) == ("pid", "4711")
    pod = PodProcess("dagster-run-1a2b-x7k2p", "kgs", "u-1", "c")
    assert short_name(pod.as_process()) == ("pod", "x7k2p")
    assert short_name(a_process()) == ("", "?")
