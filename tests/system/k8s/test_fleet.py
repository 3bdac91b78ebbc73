"""Consumers as Jobs of `kgs control` in a real cluster, and everything that happens to pods, nodes and rights there.

One group under load; each test leaves it at rest. The last one counts: nothing is lost or doubled by any of it.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.system.k8s.audit_log import refused, unused_rights
from tests.system.k8s.cluster import Kubectl, Machine, Object, RoleWithout, pod_names
from tests.system.k8s.live_group import (
    BUSY,
    CALM,
    MOST,
    LiveGroup,
    group_in_cluster,
    incarnations,
    outage_told,
    readers_of,
    spares_of,
)
from tests.system.k8s.start_times import created_s, handed_over, parts_of_start
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(1200)
CONTROL = "deployment/kgs-control"
CONSUMERS = "kgs/role=consumer"
AWAY_S = 40
"""Long enough for a death to be seen through Kafka alone, and for others to read on."""
GIVEN_UP_S = 30
"""Instead of `start_timeout_s` where no pod can start: nothing else is waited for there."""
HOG = """
import os, signal
for pid in filter(str.isdigit, os.listdir('/proc')):
    with open(f'/proc/{pid}/cmdline') as file:
        if 'consume' in file.read().split('\\0'):
            with open(f'/proc/{pid}/oom_score_adj', 'w') as score:
                score.write('1000')
while True:
    if os.fork() == 0:
        taken = b'x' * 50_000_000
        signal.pause()
"""
"""Takes all the memory of its container, in small processes, and has the kernel choose the consumer."""


@pytest.fixture(scope="module")
def group() -> Iterator[LiveGroup]:
    with group_in_cluster("bare", "kgs-control") as found:
        yield found


def test_pods_come_and_go_with_the_load(group: LiveGroup, capsys: pytest.CaptureFixture[str]) -> None:
    """One consumer and a spare at night, three at noon, one again."""
    group.wait_at_rest(1)
    group.bear(BUSY)
    group.wait_at_rest(3)
    pods = group.kubectl.pods(CONSUMERS)
    assert len(pods) == 4
    by_number = {int(pod["metadata"]["labels"]["kgs/consumer"]): pod for pod in pods}
    with capsys.disabled():
        for planned, consumer, seconds in handed_over(group.kubectl.log(CONTROL)):
            pod = by_number[consumer]
            is_new = created_s(pod) >= int(planned)
            print(
                f"\nfrom the plan to a {'new' if is_new else 'running'} consumer, {consumer}: {seconds:.1f} s", end=""
            )
            print(f" ({parts_of_start(group.kubectl, pod)})" if is_new else "", end="")
    group.bear(CALM)
    group.wait_at_rest(1)
    wait_until(lambda: len(group.kubectl.pods(CONSUMERS)) == 2, 60, "one reads, one is spare")
    assert not refused(group.kubectl)


def test_killed_and_out_of_memory(group: LiveGroup, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two that read one is killed with its pod, the other by the kernel, which the log names."""
    found = group.as_usual()
    first, second = readers_of(found)
    pod = group.name_of(second)
    with outage_told(group, found, first, tmp_path, capsys):
        group.kubectl.kill(group.name_of(first))
    group.kubectl.attempt("exec", "-i", pod, "--", "python", "-", given=HOG)
    group.kubectl.wait_log(CONTROL, rf"consumer {second} ended: .*OOMKilled")
    group.wait_at_rest(2, without=incarnations(found, first, second))


def test_drained_node_and_no_room(group: LiveGroup) -> None:
    """Evicted consumers finish; while no node takes pods, none pile up, and each says why it does not run."""
    found = group.as_usual()
    kubectl = group.kubectl
    nodes = [node["metadata"]["name"] for node in kubectl.items("nodes")]
    selector = f"{CONSUMERS},kgs/group={group.pod_of(readers_of(found)[0])['metadata']['labels']['kgs/group']}"
    with control_with(kubectl):
        try:
            kubectl("cordon", *nodes)
            kubectl("drain", *nodes, f"--pod-selector={selector}", "--ignore-daemonsets", "--delete-emptydir-data")
            kubectl.wait_log(CONTROL, r"does not run: .*Unschedulable")
            waiting = pod_names(wait_until(lambda: kubectl.pods(CONSUMERS), 60, "pods wait"))
            most = 0

            def given_up() -> bool:
                nonlocal most
                names = pod_names(kubectl.pods(CONSUMERS))
                most = max(most, len(names))
                return not set(waiting) & set(names)

            wait_until(given_up, 3 * GIVEN_UP_S, f"given up: {waiting}")
            assert most <= 3, "they pile up"
        finally:
            kubectl("uncordon", *nodes)
    group.wait_at_rest(2, without=incarnations(found))


def test_image_that_is_missing(group: LiveGroup) -> None:
    """Nobody stops for a consumer that cannot start; the group is planned without it, and says why."""
    group.as_usual()
    # An address where nothing listens: nothing outside is asked for it
    with control_with(group.kubectl, image="127.0.0.1:1/kgs:none"):
        before = group.wait_at_rest(2)
        group.forget()
        group.bear(MOST)
        group.wait(lambda found: len(readers_of(found)) == 3, "the spare reads, too")
        group.kubectl.wait_log(CONTROL, r"does not run: .*(ErrImagePull|ImagePullBackOff)")
        names = pod_names(group.kubectl.pods(CONSUMERS))
        wait_until(lambda: set(names) - set(pod_names(group.kubectl.pods(CONSUMERS))), 3 * GIVEN_UP_S, "it is given up")
        after = group.wait(
            lambda found: len(readers_of(found)) == 3 and len(_owned(found)) == 8, "three read everything"
        )
        assert set(incarnations(before)) <= set(incarnations(after)), "somebody was stopped for it"
        assert max(group.longest_unread_s.values(), default=0) < GIVEN_UP_S, group.longest_unread_s
    group.wait_at_rest(4)
    group.as_usual()


def test_jobs_deleted_suspended_doubled(group: LiveGroup) -> None:
    """What somebody does to Jobs is mended."""
    found = group.as_usual()
    kubectl = group.kubectl
    first, second = readers_of(found)
    (spare,) = spares_of(found)
    jobs = {name: job_of(kubectl, name) for name in (first, second, spare)}
    kubectl("delete", "job", jobs[first]["metadata"]["name"], "--wait=false")
    kubectl.patch("job", jobs[second]["metadata"]["name"], {"op": "add", "path": "/spec/suspend", "value": True})
    twin = double(kubectl, jobs[spare])
    after = group.wait_at_rest(2, without=incarnations(found, first, second))
    wait_until(lambda: not kubectl.pods(f"job-name={twin}"), 120, "one of the two is ended")
    assert len(kubectl.pods(CONSUMERS)) == 3, incarnations(after)


def test_controller_is_killed(group: LiveGroup) -> None:
    """Consumers read on, and the next controller takes them as they are."""
    found = group.as_usual()
    (pod,) = group.kubectl.pods("app=kgs-control")
    group.kubectl.kill(pod["metadata"]["name"])
    group.kubectl.rollout("kgs-control")
    group.kubectl.wait_log(CONTROL, "fenced|controller")
    after = group.wait_at_rest(2)
    assert incarnations(after) == incarnations(found)


def test_rights_are_named(group: LiveGroup) -> None:
    """Each right taken away in turn: the log says which one is missing; all is mended once it is back."""
    found = group.as_usual()
    kubectl = group.kubectl
    said = r"may not {} {}: give its Role the verb '{}' on resources \['{}'\]"
    for resource in ("jobs", "pods"):
        with RoleWithout(kubectl, "kgs-control", (resource, "list")):
            kubectl.wait_log(CONTROL, said.format("list", resource, "list", resource))
    (spare,) = spares_of(found)
    with RoleWithout(kubectl, "kgs-control", ("jobs", "create"), ("pods", "get")):
        kubectl.kill(group.name_of(spare))
        kubectl.wait_log(CONTROL, said.format("create", "jobs", "create", "jobs"))
        kubectl.wait_log(CONTROL, said.format("get", "pods", "get", "pods"))
    found = group.wait_at_rest(2, without=incarnations(found, spare))
    (spare,) = spares_of(found)
    reader = readers_of(found)[0]
    with RoleWithout(kubectl, "kgs-control", ("jobs", "delete"), ("pods", "delete")):
        job = job_of(kubectl, reader)["metadata"]["name"]
        kubectl.patch("job", job, {"op": "add", "path": "/spec/suspend", "value": True})
        kubectl.wait_log(CONTROL, said.format("delete", "jobs", "delete", "jobs"))
        twin = double(kubectl, job_of(kubectl, spare))
        wait_until(lambda: kubectl.pods(f"job-name={twin}"), 30, "the twin has a pod")
        kubectl("delete", "job", twin, "--cascade=orphan")
        kubectl.wait_log(CONTROL, said.format("delete", "pods", "delete", "pods"))
    group.wait_at_rest(2, without=incarnations(found, reader))
    wait_until(lambda: not kubectl.pods(f"job-name={twin}"), 120, "the twin is ended")


def test_api_server_is_away(group: LiveGroup, cluster_machine: Machine, tmp_path: Path) -> None:
    """Consumers go on; one that dies meanwhile is replaced by the others, through Kafka alone."""
    found = group.as_usual()
    victim = readers_of(found)[0]
    lost = partitions_of(found, victim)
    uid = group.pod_of(victim)["metadata"]["uid"]
    cluster_machine.kill("apiserver")
    began = time.time()  # noqa: TID251 - compared with the clock of the tables
    try:
        cluster_machine.kill_consumer(uid)
        wait_until(lambda: time.time() > began + AWAY_S, AWAY_S + 5, "it is away")  # noqa: TID251
    finally:
        cluster_machine.mend()
    back = time.time()  # noqa: TID251
    group.wait_at_rest(2, without=incarnations(found, victim))
    commits = group.commits(tmp_path)
    for tp in lost:
        assert any(began + 15 < at < back for at in commits[tp]), f"{tp} was not read while the API server was away"


def test_kubelet_is_frozen(group: LiveGroup, cluster_machine: Machine, tmp_path: Path) -> None:
    """A node that says nothing any more: its consumers go on, one that dies on it is not missed for long."""
    found = group.as_usual()
    victim = readers_of(found)[0]
    lost = partitions_of(found, victim)
    uid = group.pod_of(victim)["metadata"]["uid"]
    # Not yet so after the API server was away, and then it would be Unknown at once
    group.kubectl("wait", "--for=condition=Ready=True", "node", "--all", "--timeout=60s")
    with cluster_machine.frozen("kubelet"):
        began = time.time()  # noqa: TID251
        cluster_machine.kill_consumer(uid)
        group.kubectl("wait", "--for=condition=Ready=Unknown", "node", "--all", "--timeout=300s", timeout_s=310)
        until = time.time()  # noqa: TID251
    after = group.wait_at_rest(2, without=incarnations(found, victim))
    assert set(incarnations(after)) & set(incarnations(found)), "those that lived read on"
    commits = group.commits(tmp_path)
    for tp in lost:
        assert any(began + 15 < at < until for at in commits[tp]), f"{tp} was not read while the kubelet was frozen"


def test_nothing_is_lost_or_doubled(group: LiveGroup, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of everything that was written while all of this happened; and no right was granted that nothing used."""
    count = group.assert_exact(tmp_path)
    with capsys.disabled():
        print(f"\n{count} records, 0 lost, 0 doubled")
    assert unused_rights(group.kubectl, "kgs-control") == set()


@contextmanager
def control_with(kubectl: Kubectl, image: str | None = None) -> Iterator[None]:
    """The controller gives a start up soon while the block runs, and starts consumers with this image."""
    set_image = "KGS_SET_KUBERNETES__IMAGE"
    env = json.loads(kubectl("get", CONTROL, "-o", "json"))["spec"]["template"]["spec"]["containers"][0]["env"]
    usual = next(each["value"] for each in env if each["name"] == set_image)
    given_up = "KGS_SET_MEMBERSHIP__START_TIMEOUT_S"
    kubectl("set", "env", CONTROL, f"{set_image}={image or usual}", f"{given_up}={GIVEN_UP_S}")
    try:
        kubectl.rollout("kgs-control")
        yield
    finally:
        kubectl("set", "env", CONTROL, f"{set_image}={usual}", f"{given_up}-")
        kubectl.rollout("kgs-control")


def job_of(kubectl: Kubectl, consumer: int) -> Object:
    """The one Job of a consumer that has not ended."""
    (found,) = [
        job
        for job in kubectl.items("jobs", f"{CONSUMERS},kgs/consumer={consumer}")
        if not any(each["type"] in ("Complete", "Failed") for each in job["status"].get("conditions", ()))
    ]
    return found


def double(kubectl: Kubectl, job: Object) -> str:
    """A second Job for the same consumer; its name."""
    template = job["spec"]["template"]
    ours = {name: value for name, value in template["metadata"]["labels"].items() if name.startswith("kgs/")}
    name = f"{job['metadata']['name']}-twin"
    spec = {key: job["spec"][key] for key in ("backoffLimit", "podReplacementPolicy")}
    pod = {"metadata": {**template["metadata"], "labels": ours}, "spec": template["spec"]}
    pod["metadata"].pop("creationTimestamp", None)
    twin = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": ours},
        "spec": {**spec, "template": pod},
    }
    kubectl("create", "-f", "-", given=json.dumps(twin))
    return name


def partitions_of(found: Object, consumer: int) -> list[str]:
    (row,) = [row for row in found["consumers"] if row["id"] == consumer]
    assert row["partitions"]
    return list(row["partitions"])


def _owned(found: Object) -> list[str]:
    return [tp for row in found["consumers"] for tp in row["partitions"]]
