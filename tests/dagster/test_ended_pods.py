"""How a consumer's run is told to be gone, by its pods and its Job, and what is done about Jobs that are late."""

from types import SimpleNamespace

import dagster as dg
import pytest
from dagster._time import get_current_timestamp

from kgs_core.group.protocol import Process
from kgs_dagster.launch import DagsterFleet
from kgs_dagster.pods import api_of, pods_are_gone
from kgs_dagster.run_process import ENDED
from tests.dagster.clusters import launched
from tests.dagster.groups import group


def gone(where, run_id):
    return pods_are_gone(api_of(where.instance.run_launcher), run_id)


@pytest.mark.parametrize("keeps_job", [True, False])
def test_a_run_is_gone_when_no_pod_of_it_is_there_or_to_come(where, keeps_job):
    run_id = launched(where, group())
    assert gone(where, run_id) is False  # pending: it may start yet
    pod = where.cluster.run(3)
    if not keeps_job:
        del where.cluster.jobs[f"dagster-run-{run_id}"]
    assert gone(where, run_id) is False
    where.cluster.end(pod, 137, "OOMKilled")
    assert gone(where, run_id) is True


@pytest.mark.parametrize("phase", ["Unknown", "Running"])
def test_a_pod_whose_node_is_lost_is_not_gone(where, phase):
    """Its kubelet does not say that it has ended: it may read on, cut off from the cluster."""
    run_id = launched(where, group())
    pod = where.cluster.run(3)
    pod["status"]["phase"] = phase
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert gone(where, run_id) is False


@pytest.mark.parametrize("verb", [("list", "jobs"), ("list", "pods")])
def test_a_cluster_that_does_not_tell_leaves_it_open(where, caplog, verb):
    run_id = launched(where, group())
    where.cluster.forbidden.add(verb)
    assert gone(where, run_id) is None
    assert f"give its Role the verb 'list' on resources ['{verb[1]}']" in caplog.text
    where.cluster.forbidden.clear()
    where.cluster.fault = lambda *_: 500
    assert gone(where, run_id) is None


def test_a_consumer_whose_pod_has_ended_is_dead_before_dagster_notices(where):
    """Run monitoring looks every few seconds, and only then marks the run as failed: partitions lay unread for that."""
    killed, reading, removed = (launched(where, group(), number) for number in (1, 2, 3))
    other = launched(where, group("h"), 4)
    pods = {number: where.cluster.run(number) for number in (1, 2, 3, 4)}
    where.cluster.end(pods[1], 137)
    where.cluster.end(pods[4], 137)
    where.cluster.remove(pods[3])
    fleet = later(where, 0)
    over = {run.handle: run.is_over for run in fleet.runs() if run.handle in (killed, reading, removed, other)}
    assert over == {killed: True, reading: False, removed: False}
    dead = {run: fleet.is_dead(Process({"run_id": run})) for run in (killed, reading, removed)}
    assert dead == {killed: True, reading: None, removed: None}
    assert where.instance.get_run_by_id(killed).status not in ENDED


def test_a_pod_that_its_job_may_replace_has_not_ended_its_run(where):
    """backoffLimit raised by somebody, a Job suspended and resumed: the next pod reads."""
    run = launched(where, group())
    where.cluster.run(3)["status"] = {"phase": "Failed"}  # its Job is not over
    now = get_current_timestamp()
    fleet = DagsterFleet(where.instance, group(), clock=lambda: now)
    for _ in ("to come", "there"):
        assert [each.is_over for each in fleet.runs() if each.handle == run] == [False]
        assert fleet.is_dead(Process({"run_id": run})) is None
        where.cluster.make_pod(f"dagster-run-{run}", "Running")
        now += 5


def test_a_cluster_that_answers_late_is_asked_less_often(where, monkeypatch):
    now, asked = get_current_timestamp(), []

    def slow(*_):
        nonlocal now
        asked.append(now)
        now += 2
        return frozenset()

    monkeypatch.setattr("kgs_dagster.launch.runs_without_pods", slow)
    fleet = DagsterFleet(where.instance, group(), clock=lambda: now)
    began = now
    while now < began + 60:
        fleet.runs()
        now += 0.5
    assert 5 <= len(asked) <= 7


def test_a_cluster_that_does_not_tell_of_pods_is_asked_again_later(where, caplog):
    killed = launched(where, group())
    where.cluster.end(where.cluster.run(3), 137)
    where.cluster.forbidden.add(("list", "pods"))
    now = get_current_timestamp()
    fleet = DagsterFleet(where.instance, group(), clock=lambda: now)
    for _ in range(3):
        assert not any(run.is_over for run in fleet.runs() if run.handle == killed)
        now += 5
    assert caplog.text.count("give its Role the verb 'list' on resources ['pods']") == 1
    where.cluster.forbidden.clear()
    now += 30
    assert [run.is_over for run in fleet.runs() if run.handle == killed] == [True]


def give_up(where, run_id):
    where.instance.report_run_failed(where.instance.get_run_by_id(run_id), "by run monitoring")


def later(where, seconds):
    return DagsterFleet(where.instance, group(), clock=lambda: get_current_timestamp() + seconds)


def test_the_job_of_a_run_that_was_given_up_is_deleted(where):
    """Run monitoring leaves it, and its pod, which could not be scheduled, would start later."""
    late, going_on, other = launched(where, group(), 1), launched(where, group(), 2), launched(where, group("h"), 4)
    for run_id in (late, other):
        give_up(where, run_id)
    assert later(where, 0).delete_late_jobs() == (), "it may be about to end by itself"
    assert later(where, 61).delete_late_jobs() == (late,)
    assert set(where.cluster.jobs) == {f"dagster-run-{going_on}", f"dagster-run-{other}"}
    assert later(where, 61).delete_late_jobs() == ()


def test_a_pod_that_reads_on_though_its_run_was_given_up_is_asked_to_end(where):
    run_id = launched(where, group())
    pod = where.cluster.run(3)
    give_up(where, run_id)
    assert later(where, 61).delete_late_jobs() == (run_id,)
    assert "deletionTimestamp" in pod["metadata"]
    assert later(where, 62).delete_late_jobs() == (), "it is asked once"
    assert gone(where, run_id) is False


def test_a_run_that_was_asked_to_end_and_has_no_pod_is_over(where):
    """Run monitoring waits for it as long as for one that drains, and nobody else gets its partitions by its word."""
    asked, not_asked = launched(where, group(), 1), launched(where, group(), 2)
    pod = where.cluster.run(1)
    where.instance.report_run_canceling(where.instance.get_run_by_id(asked))
    del where.cluster.jobs[f"dagster-run-{asked}"]
    assert later(where, 0).close_lost_runs() == (), "its pod drains"
    where.cluster.remove(pod)
    where.cluster.fault = lambda *_: 503
    assert later(where, 0).close_lost_runs() == (), "the cluster does not tell"
    where.cluster.fault = lambda *_: None
    where.cluster.jobs.clear()
    assert later(where, 0).close_lost_runs() == (asked,), "the other one is run monitoring's"
    assert where.instance.get_run_by_id(asked).status is dg.DagsterRunStatus.CANCELED
    assert where.instance.get_run_by_id(not_asked).status not in ENDED
    assert later(where, 0).close_lost_runs() == ()


def test_a_run_is_lost_when_job_and_pod_are_gone_and_not_by_a_minute_without_the_api_server(where, monkeypatch):
    """Run monitoring marks as failed what the launcher does not call running, however often that has asked."""
    waited = []
    monkeypatch.setattr("dagster_k8s.client.time", SimpleNamespace(sleep=waited.append))
    run = where.instance.get_run_by_id(launched(where, group()))
    pod = where.cluster.run(3)

    def health():
        return where.instance.run_launcher.check_run_worker_health(run).status.name

    where.cluster.fault = lambda *_: 503
    assert health() == "RUNNING"
    assert sum(waited) >= 30, "it has asked again and again"
    where.cluster.fault = lambda *_: None
    where.cluster.jobs.clear()
    assert health() == "RUNNING", "its pod reads on"
    where.cluster.remove(pod)
    assert health() == "UNKNOWN"
