"""Times from a plan to a consumer that reads by it, and what the start of a pod is made up of: by logs and states."""

import re
from collections.abc import Iterator
from datetime import datetime

from tests.system.k8s.cluster import Kubectl, Object

_LOGGED = r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})"
_STEPS = (("Python", r"WARNING|INFO"), ("imports", "incubator modules"), ("JVM and Spark", "joining group"))


def handed_over(control_log: str) -> Iterator[tuple[float, int, float]]:
    """When a plan was made (seconds since 1970), a consumer that it gives partitions to, and how long until then."""
    planned = 0.0
    for line in control_log.splitlines():
        found = re.search(_LOGGED + r".* (rebalance reason|StartConsuming consumer=(\d+))", line)
        if found is None:
            continue
        at = datetime.strptime(f"{found[1]}+0000", "%Y-%m-%d %H:%M:%S,%f%z").timestamp()
        if found[3] is None:
            planned = at
        elif planned:
            yield planned, int(found[3]), at - planned


def created_s(pod: Object) -> float:
    """When a pod was made, seconds since 1970, to the second."""
    return _time_s(pod["metadata"]["creationTimestamp"])


def parts_of_start(kubectl: Kubectl, pod: Object) -> str:
    """Of a pod's start: scheduling and its container to the second, the rest by what it prints."""
    status = pod["status"]
    (scheduled,) = [_time_s(c["lastTransitionTime"]) for c in status["conditions"] if c["type"] == "PodScheduled"]
    running = _time_s(status["containerStatuses"][0]["state"]["running"]["startedAt"])
    parts = [f"scheduling {scheduled - created_s(pod):.0f} s", f"container {running - scheduled:.0f} s"]
    lines = kubectl.log(pod["metadata"]["name"], "--timestamps").splitlines()
    before = running
    for name, pattern in (*_STEPS, ("joining, assignment", "StartConsuming")):
        at = next((_time_s(line.split()[0]) for line in lines if re.search(pattern, line)), None)
        if at is not None:
            parts.append(f"{name} {at - before:.1f} s")
            before = at
    return ", ".join(parts)


def _time_s(text: str) -> float:
    return datetime.fromisoformat(text[:26].rstrip("Z") + "+00:00").timestamp()
