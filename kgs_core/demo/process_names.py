"""Short names of processes, for people: what they would look for with `ps` or `kubectl get pods`."""

from kgs_core.fleet.host_process import HostProcess
from kgs_core.fleet.pod_process import PodProcess
from kgs_core.group.protocol import Process


def short_name(process: Process) -> tuple[str, str]:
    """What it is called and how: ("pid", "4711"), or ("pod", "x7k2p"), the end of the pod's name; else ("", "?")."""
    if (host := HostProcess.of(process)) is not None:
        return "pid", str(host.pid)
    if (pod := PodProcess.of(process)) is not None:
        return "pod", pod.pod.rpartition("-")[2]
    return "", "?"
