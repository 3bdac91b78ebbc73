"""Consumers as runs of Dagster, each a pod, in a real cluster: whatever of it dies, the group goes on."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kgs_core.adapters.system.tcp_ports import PortReservation
from tests.system.dagster_room import ask
from tests.system.k8s.audit_log import refused, unused_rights
from tests.system.k8s.cluster import Kubectl, RoleWithout
from tests.system.k8s.live_group import (
    BUSY,
    CALM,
    USUAL,
    LiveGroup,
    group_in_cluster,
    incarnations,
    readers_of,
    spares_of,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(1200)
CODE, DAEMON = "deployment/kgs-code", "deployment/kgs-daemon"
DEPLOYMENTS = ("kgs-daemon", "kgs-code", "kgs-webserver", "postgres")
CONSUMERS = "kgs/role=consumer"
RUN_ID = "dagster/run-id"
ACCOUNTS = ("kgs-daemon", "kgs-webserver", "kgs-code", "kgs-run")


@pytest.fixture(scope="module")
def group() -> Iterator[LiveGroup]:
    with group_in_cluster("dagster", *DEPLOYMENTS) as found:
        yield found


@contextmanager
def webserver(kubectl: Kubectl) -> Iterator[str]:
    """Address of the UI, while the block runs."""
    ports = PortReservation()
    port = ports.reserve()
    ports.release()
    command = kubectl.command("port-forward", "--address", "127.0.0.1", "service/kgs-webserver", f"{port}:80")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forward:
        try:
            assert forward.stdout is not None
            assert "Forwarding" in forward.stdout.readline()
            yield f"http://127.0.0.1:{port}"
        finally:
            forward.kill()


def run_of(group: LiveGroup, consumer: int) -> str:
    """Id of a consumer's run."""
    labels: dict[str, str] = group.pod_of(consumer)["metadata"]["labels"]
    return labels[RUN_ID]


def terminate(address: str, run: str) -> dict[str, Any]:
    """What the button does."""
    query = f'mutation {{ terminateRun(runId: "{run}") {{ __typename ... on PythonError {{ message }} }} }}'
    found: dict[str, Any] = ask(address, query)["terminateRun"]
    return found


def test_pods_come_and_go_with_the_load(group: LiveGroup) -> None:
    """One consumer and a spare at night, three at noon, one again; each is a run, and its pod is all it has."""
    group.wait_at_rest(1)
    group.bear(BUSY)
    found = group.wait_at_rest(3)
    runs = {run_of(group, consumer) for consumer in (*readers_of(found), *spares_of(found))}
    assert len(runs) == 4
    group.bear(CALM)
    group.wait_at_rest(1)
    wait_until(lambda: len(group.kubectl.pods(CONSUMERS)) == 2, 60, "one reads, one is spare")
    assert not refused(group.kubectl.namespace)


def test_a_pod_is_killed_a_job_deleted_a_run_terminated(group: LiveGroup) -> None:
    """Each of the three consumers by another hand; new runs come."""
    group.bear(USUAL)
    found = group.wait_at_rest(2)
    first, second = readers_of(found)
    (spare,) = spares_of(found)
    group.kubectl.kill(group.name_of(first))
    group.kubectl("delete", "job", "--wait=false", "-l", f"{RUN_ID}={run_of(group, second)}")
    with webserver(group.kubectl) as address:
        assert terminate(address, run_of(group, spare))["__typename"] == "TerminateRunSuccess"
    group.wait_at_rest(2, without=incarnations(found))


def test_whatever_of_dagster_dies(group: LiveGroup, tmp_path: Path) -> None:
    """Webserver, daemon, code location and PostgreSQL are killed: the same consumers read on."""
    found = group.wait_at_rest(2)
    kubectl = group.kubectl
    began = time.time()  # noqa: TID251 - compared with the clock of the tables
    kubectl.exec("deployment/postgres", "kill", "-QUIT", "1")  # at once, as a crash
    for name in ("kgs-daemon", "kgs-code", "kgs-webserver"):
        (pod,) = kubectl.pods(f"app={name}")
        kubectl.kill(pod["metadata"]["name"])
    kubectl.rollout(*DEPLOYMENTS)
    back = time.time()  # noqa: TID251
    after = group.wait_at_rest(2)
    assert incarnations(after) == incarnations(found)
    commits = group.commits(tmp_path)
    assert all(any(began < at < back for at in times) for times in commits.values()), "somebody stood still"


def test_rights_are_named(group: LiveGroup) -> None:
    """Each right taken away: who needs it says which one is missing, and all is mended once it is back."""
    found = group.wait_at_rest(2)
    kubectl = group.kubectl
    (spare,) = spares_of(found)
    first = readers_of(found)[0]
    with webserver(kubectl) as address, RoleWithout(kubectl, "kgs-end-runs", ("jobs", "delete"), ("pods", "delete")):
        refusal = terminate(address, run_of(group, spare))
        assert "delete" in json.dumps(refusal), refusal
    with RoleWithout(kubectl, "kgs-see-runs", ("jobs", "list"), ("pods", "list")):
        kubectl.wait_log(CODE, r"kgs-code may not list (jobs|pods): give its Role the verb 'list'")
    with RoleWithout(kubectl, "kgs-launch-runs", ("jobs", "create")):
        kubectl.kill(group.name_of(first))
        kubectl.wait_log(DAEMON, r"kgs-daemon.* cannot create resource .*jobs")
    group.wait_at_rest(2, without=incarnations(found, first))


def test_nothing_is_lost_or_doubled(group: LiveGroup, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of everything that was written while all of this happened; and which rights nothing has used."""
    count = group.assert_exact(tmp_path)
    unused = {account: unused_rights(group.kubectl, account) for account in ACCOUNTS}
    with capsys.disabled():
        print(f"\n{count} records, 0 lost, 0 doubled; rights that nothing used: {unused}")
