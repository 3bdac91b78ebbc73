"""Consumers as runs of Dagster, each a pod, in a real cluster: whatever of it dies, the group goes on."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kgs_core.system.tcp_ports import PortReservation
from tests.system.dagster_room import ask
from tests.system.k8s.audit_log import refused, unused_rights
from tests.system.k8s.cluster import Kubectl, RoleWithout
from tests.system.k8s.live_group import (
    BUSY,
    CALM,
    PARTITIONS,
    LiveGroup,
    group_in_cluster,
    incarnations,
    outage_told,
    readers_of,
    spares_of,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(1200)
CODE, DAEMON = "deployment/kgs-code", "deployment/kgs-daemon"
DEPLOYMENTS = ("kgs-daemon", "kgs-code", "kgs-webserver", "postgres")
CONSUMERS = "kgs/role=consumer"
RUN_ID = "dagster/run-id"
_END = {("jobs", "delete"), ("pods", "delete")}
RARE = {
    "kgs-daemon": {*_END, ("jobs", "list"), ("pods/log", "get"), ("events", "list"), ("jobs/status", "get")},
    "kgs-webserver": set(),
    "kgs-code": _END,
    "kgs-run": _END,
}
"""Rights that a run needs that hangs or whose pod has crashed, which need not come up here."""


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


def terminate(address: str, run: str) -> str:
    """What the button does; what becomes of it."""
    answer = ask(address, f'mutation {{ terminateRun(runId: "{run}") {{ __typename }} }}')
    return str(answer["terminateRun"]["__typename"])


def errors_of(address: str, run: str) -> str:
    """What the page of a run shows of errors."""
    events = "events { __typename ... on MessageEvent { message } ... on EngineEvent { error { message } } }"
    answer = ask(address, f'{{ logsForRun(runId: "{run}") {{ ... on EventConnection {{ {events} }} }} }}')
    return json.dumps([event for event in answer["logsForRun"]["events"] if event["__typename"] == "EngineEvent"])


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
    assert not refused(group.kubectl)


def test_killed_and_its_job_deleted_and_terminated(
    group: LiveGroup, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of the three consumers by another hand; new runs come."""
    found = group.as_usual()
    first, second = readers_of(found)
    (spare,) = spares_of(found)
    with outage_told(group, found, first, tmp_path, capsys):
        group.kubectl.attempt("exec", group.name_of(first), "--", "sh", "-c", "kill -9 -1")
    group.kubectl("delete", "job", "--wait=false", "-l", f"{RUN_ID}={run_of(group, second)}")
    with webserver(group.kubectl) as address:
        assert terminate(address, run_of(group, spare)) == "TerminateRunSuccess"
    group.wait_at_rest(2, without=incarnations(found))


def test_whatever_of_dagster_dies(group: LiveGroup, tmp_path: Path) -> None:
    """Without webserver, daemon and code location the same consumers read on; PostgreSQL crashes beside them."""
    found = group.as_usual()
    kubectl = group.kubectl
    names = [f"deployment/{name}" for name in ("kgs-daemon", "kgs-code", "kgs-webserver")]
    kubectl("scale", "--replicas=0", *names)
    try:
        kubectl.kill("-l", "app in (kgs-daemon, kgs-code, kgs-webserver)")
        kubectl.exec("deployment/postgres", "sh", "-c", "kill -QUIT 1")  # at once, as a crash
        began = time.time()  # noqa: TID251 - compared with the clock of the tables
        group.wait(lambda look: look["controller"] == "silent", "nobody measures")

        def is_read() -> bool:
            commits = group.commits(tmp_path)
            return len(commits) == PARTITIONS and all(max(times) > began + 10 for times in commits.values())

        wait_until(is_read, 60, "every partition is read without Dagster")
    finally:
        kubectl("scale", "--replicas=1", *names)
    kubectl.rollout(*DEPLOYMENTS)
    assert incarnations(group.wait_at_rest(2)) == incarnations(found)


def test_rights_are_named(group: LiveGroup) -> None:
    """Each right taken away: who needs it says which one is missing, and all is mended once it is back."""
    found = group.as_usual()
    kubectl = group.kubectl
    (spare,) = spares_of(found)
    first = readers_of(found)[0]
    run = run_of(group, spare)
    with webserver(kubectl) as address, RoleWithout(kubectl, "kgs-end-runs", ("jobs", "delete"), ("pods", "delete")):
        assert terminate(address, run) == "TerminateRunFailure"
        assert re.search(
            r"kgs-webserver.* cannot (delete resource .*jobs|list resource .*pods)", errors_of(address, run)
        )
    with RoleWithout(kubectl, "kgs-see-runs", ("jobs", "list"), ("pods", "list")):
        kubectl.wait_log(CODE, r"kgs-code may not list (jobs|pods): give its Role the verb 'list'")
    with RoleWithout(kubectl, "kgs-launch-runs", ("jobs", "create")):
        kubectl.kill(group.name_of(first))
        kubectl.wait_log(DAEMON, r"kgs-daemon.* cannot create resource .*jobs")
    group.wait_at_rest(2, without=incarnations(found, first))


def test_nothing_is_lost_or_doubled(group: LiveGroup, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of everything that was written while all of this happened; and which rights nothing has used."""
    count = group.assert_exact(tmp_path)
    with capsys.disabled():
        print(f"\n{count} records, 0 lost, 0 doubled")
    for account, rare in RARE.items():
        assert unused_rights(group.kubectl, account) <= rare, account
