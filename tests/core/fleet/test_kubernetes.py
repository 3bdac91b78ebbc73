"""The fleet in a cluster, by the real client against a server on loopback that misbehaves as real ones do."""

import itertools
import threading

import pytest

from kgs_core.errors import PermanentError, TransientError
from kgs_core.fleet.controller_fleet import FleetOptions
from kgs_core.fleet.kubernetes import kubernetes_fleet
from kgs_core.model import ConsumerId
from tests.core.fleet.fleet_words import THREE, only, process_of, settings_of, started
from tests.kubernetes_server import LOSES_ANSWER, kubeconfig
from tests.waiting import wait_until


def test_a_start_is_one_job_and_its_run_is_found_again(fleet, cluster, new_fleet):
    asked = fleet.start(THREE)
    assert (asked.consumer, asked.is_over) == (THREE, False)
    assert only(fleet) == asked
    fleet.turn()
    fleet.turn()
    job = cluster.job_of(3)
    assert only(fleet).handle == only(new_fleet()).handle == job["metadata"]["uid"]
    assert len(cluster.jobs) == 1


def test_what_runs_is_not_started_twice(fleet, cluster):
    handle = started(fleet)
    assert fleet.start(THREE).handle == handle
    fleet.turn()
    assert len(cluster.jobs) == 1


def test_two_controllers_that_start_the_same_make_one_job(fleet, cluster, new_fleet):
    """One is fenced by now, and does not know yet."""
    other = new_fleet()
    for one in (fleet, other):
        one.start(THREE)
    for one in (fleet, other, fleet, other):
        one.turn()
    assert len(cluster.jobs) == 1
    assert only(fleet).handle == only(other).handle


@pytest.mark.parametrize("fault", [500, 429, LOSES_ANSWER, (409, "Conflict", "quota is being written")])
def test_a_start_whose_answer_is_lost_or_bad_is_made_once(fleet, api, cluster, monkeypatch, fault):
    monkeypatch.setattr(api, "_timeout_s", (2.0, 2.0))
    faults = iter([fault])
    cluster.fault = lambda verb, resource: next(faults, None) if verb == "create" else None
    fleet.start(THREE)
    for _ in range(3):
        fleet.turn()
    assert len(cluster.jobs) == 1
    assert only(fleet).handle == cluster.job_of(3)["metadata"]["uid"]


def test_a_consumer_that_ends_at_once_is_not_started_by_the_same_request_again(fleet, cluster):
    fleet.start(THREE)
    fleet.turn()
    cluster.end(cluster.pod_of(3), 1)
    for _ in range(3):
        fleet.turn()
    assert len(cluster.jobs) == 1
    assert (only(fleet, is_over=True).exit_code, cluster.requests.count(("create", "jobs"))) == (1, 1)


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_the_next_start_is_the_next_attempt_also_where_jobs_are_forgotten(fleet, cluster, is_forgotten):
    started(fleet)
    cluster.end(cluster.pod_of(3), 1)
    if is_forgotten:
        cluster.clear()
    fleet.turn()
    fleet.start(THREE)
    fleet.turn()
    attempts = [job["metadata"]["labels"]["kgs/attempt"] for job in cluster.jobs.values()]
    assert attempts == (["2"] if is_forgotten else ["1", "2"])


def test_what_the_cluster_refuses_has_failed_and_says_why(fleet, cluster, caplog):
    cluster.fault = lambda verb, resource: (403, "Forbidden", "exceeded quota: pods=4") if verb == "create" else None
    fleet.start(THREE)
    fleet.turn()
    run = only(fleet, is_over=True)
    assert (run.exit_code, "exceeded quota: pods=4" in run.why) == (1, True)
    assert "consumer=3 cannot be started: Kubernetes namespace kgs: refuses to create Jobs (403)" in caplog.text


def test_an_api_server_that_is_away_kills_nobody(fleet, cluster, pod, api):
    fleet.turn()
    before = only(fleet)
    cluster.fault = lambda *_: 503
    process = process_of(pod, api.cluster)
    cluster.remove(pod)
    with pytest.raises(TransientError, match="no good answer"):
        fleet.turn()
    assert only(fleet).handle == before.handle
    assert fleet.is_dead(process) is not True


def test_what_is_asked_for_while_the_api_server_is_away_is_done_later(fleet, cluster):
    handle = started(fleet)
    cluster.fault = lambda *_: 503
    fleet.stop(handle)
    fleet.start(ConsumerId(4))
    for _ in range(2):
        with pytest.raises(TransientError):
            fleet.turn()
    assert {run.consumer: run.is_over for run in fleet.runs()} == {3: False, 4: False}
    cluster.fault = lambda *_: None
    for _ in range(3):
        fleet.turn()
    assert {run.consumer: run.is_over for run in fleet.runs()} == {3: True, 4: False}


def test_a_start_that_is_given_up_while_the_api_server_is_away_has_failed(fleet, cluster):
    cluster.fault = lambda *_: 503
    asked = fleet.start(THREE)
    fleet.stop(asked.handle)
    assert (only(fleet, is_over=True).handle, only(fleet, is_over=True).exit_code) == (asked.handle, 1)
    cluster.fault = lambda *_: None
    fleet.turn()
    assert not cluster.jobs


def test_a_stop_deletes_the_job_and_the_run_is_over_when_its_pod_is(fleet, cluster, pod):
    handle = only(fleet).handle
    fleet.stop(handle)
    fleet.turn()
    assert "deletionTimestamp" in pod["metadata"]
    fleet.turn()
    assert only(fleet).handle == handle
    assert cluster.requests.count(("delete", "jobs")) == 1
    cluster.end(pod)
    fleet.turn()
    assert only(fleet, is_over=True).handle == handle
    fleet.stop(handle)
    fleet.turn()
    assert cluster.requests.count(("delete", "jobs")) == 1


def test_a_deleted_job_is_over_when_its_pod_is_and_may_be_started_again(fleet, cluster, pod):
    handle = only(fleet).handle
    del cluster.jobs[cluster.job_of(3)["metadata"]["name"]]
    fleet.turn()
    assert only(fleet).handle == handle
    assert fleet.start(THREE).handle == handle, "it reads on"
    cluster.end(pod)
    fleet.turn()
    fleet.start(THREE)
    fleet.turn()
    fleet.turn()
    assert only(fleet).handle != handle


def test_an_orphaned_pod_can_be_stopped(fleet, cluster, pod):
    """`kubectl delete job --cascade=orphan` leaves it."""
    handle = only(fleet).handle
    del cluster.jobs[cluster.job_of(3)["metadata"]["name"]]
    fleet.turn()
    fleet.stop(handle)
    fleet.turn()
    assert "deletionTimestamp" in pod["metadata"]


def test_a_suspended_job_is_replaced(fleet, cluster, pod, caplog):
    cluster.job_of(3)["spec"]["suspend"] = True
    fleet.turn()
    assert "consumer=3 is replaced: its job was suspended" in caplog.text
    assert not only(fleet).is_over, "its pod drains"
    cluster.end(pod)
    fleet.turn()
    assert only(fleet, is_over=True)


def test_a_double_is_a_run_of_its_own_and_can_be_stopped(fleet, cluster, api):
    """Which one goes is the controller's to say: it knows who has joined."""
    mine = started(fleet)
    copy = {**cluster.job_of(3), "metadata": {"name": "copy", "labels": cluster.job_of(3)["metadata"]["labels"]}}
    copy.pop("status")
    assert api.create_job(copy)
    fleet.turn()
    other = cluster.jobs["copy"]["metadata"]["uid"]
    assert {run.handle for run in fleet.runs()} == {mine, other}
    fleet.stop(other)
    fleet.turn()
    fleet.turn()
    assert only(fleet).handle == mine
    assert only(fleet, is_over=True).handle == other


PENDING = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}],
}


def test_a_pod_that_cannot_be_scheduled_is_named_once_and_goes_with_its_stop(fleet, cluster, caplog):
    handle = started(fleet)
    cluster.pod_of(3)["status"] = PENDING
    for _ in range(3):
        fleet.turn()
    assert caplog.text.count("consumer 3 does not run: job flights-") == 1
    assert only(fleet).why == "Unschedulable: 0/1 nodes"
    fleet.stop(handle)
    fleet.turn()
    fleet.turn()
    assert (cluster.jobs, cluster.pods) == ({}, {})
    assert only(fleet, is_over=True).why == "Unschedulable: 0/1 nodes"


def test_why_a_consumer_has_ended_is_reported(fleet, cluster, caplog):
    started(fleet)
    cluster.end(cluster.run(3), 137, "OOMKilled")
    fleet.turn()
    assert (only(fleet, is_over=True).exit_code, only(fleet, is_over=True).why) == (137, "OOMKilled")
    assert "consumer 3 ended: job flights-" in caplog.text


def test_a_run_that_the_cluster_has_forgotten_is_remembered_for_an_hour(fleet, cluster):
    handle = started(fleet)
    cluster.end(cluster.pod_of(3), 1)
    fleet.turn()
    cluster.jobs.clear()
    cluster.pods.clear()
    fleet.turn()
    assert (only(fleet, is_over=True).handle, only(fleet, is_over=True).exit_code) == (handle, 1)
    fleet.times.now += 3601
    fleet.turn()
    assert fleet.runs() == ()


@pytest.fixture
def kept(new_fleet):
    """Its thread runs, as in a controller."""
    fleet = new_fleet()
    fleet.times.now = 0.0
    threading.Thread(target=fleet.keep, daemon=True).start()
    return fleet


def test_the_thread_starts_and_ends_all(kept, cluster):
    for number in (1, 2):
        kept.start(ConsumerId(number))
    wait_until(lambda: len(cluster.pods) == 2, 20, "no pods")
    pods = [cluster.run(number) for number in (1, 2)]
    kubelet = threading.Thread(target=lambda: ends_when_asked(cluster, pods), daemon=True)
    kubelet.start()
    assert kept.end_all(60.0) == ()
    assert all(run.is_over for run in kept.runs())


def ends_when_asked(cluster, pods):
    for pod in pods:
        wait_until(lambda pod=pod: "deletionTimestamp" in pod["metadata"], 20, "nobody asked it")
        cluster.end(pod)


def test_who_does_not_drain_is_killed(kept, cluster):
    kept.start(THREE)
    wait_until(lambda: len(cluster.pods) == 1, 20, "no pod")
    cluster.run(3)
    wait_until(lambda: only(kept).handle in str(cluster.jobs), 20, "it was not seen")
    asks = itertools.count()
    assert kept.end_all(60.0, lambda: next(asks) > 3) == (THREE,)
    assert all(run.is_over for run in kept.runs())


def test_the_fleet_looks_before_it_is_used(cluster, address, tmp_path, monkeypatch):
    """Else it would say that nobody runs, and everybody would be started twice."""
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, address)))
    options = FleetOptions(tmp_path / "kgs.yaml", tmp_path)
    cluster.forbidden.add(("list", "jobs"))
    with pytest.raises(PermanentError, match="may not list jobs"):
        kubernetes_fleet(settings_of(), options)
    cluster.forbidden.clear()
    assert kubernetes_fleet(settings_of(), options).runs() == ()
