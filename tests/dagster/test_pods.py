"""The pod of a consumer, as the launcher sends it to the cluster, and how it is told that it is gone."""

import json
from types import SimpleNamespace

import dagster as dg
import pytest
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin
from dagster._time import get_current_timestamp

from kgs_core.fleet.consumer_pod import grace_period_s
from kgs_core.group.protocol import Process
from kgs_core.model import ConsumerId
from kgs_dagster.jobs.consumer import consumer_job
from kgs_dagster.launch import POD, DagsterFleet, consumer_run_request
from kgs_dagster.pods import api_of, pod_template, pods_are_gone
from kgs_dagster.run_process import ENDED
from tests.dagster.clusters import instance_in_cluster
from tests.dagster.groups import group
from tests.kubernetes_objects import problems_of_job

NAMES = ["flights", "._-", "a" * 100, "-flights.eu-", "9." * 40 + "9a", "UPPER_case"]
_CODE = JobPythonOrigin(
    "consumer_job", RepositoryPythonOrigin("python", ModuleCodePointer("kgs", "defs"), None, ["dagster"], None)
)


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    with instance_in_cluster(tmp_path_factory.mktemp("home")) as (cluster, instance):
        yield SimpleNamespace(cluster=cluster, instance=instance)


@pytest.fixture
def where(there):
    """A cluster in which there is nothing."""
    there.cluster.clear()
    return there


def launched(where, of, consumer=3):
    """Handle of a run of a consumer, whose Job the launcher has made."""
    request = consumer_run_request(of, ConsumerId(consumer), 1, as_pod=True)
    run = where.instance.create_run_for_job(
        consumer_job(of), run_config=request.run_config, tags=request.tags, job_code_origin=_CODE
    )
    where.instance.run_launcher.launch_run(SimpleNamespace(dagster_run=run, workspace=None))
    return run.run_id


def job_of(where, run_id):
    return where.cluster.jobs[f"dagster-run-{run_id}"]


@pytest.fixture
def job(where):
    return job_of(where, launched(where, group("flights")))


def test_the_pod_of_a_consumer(job):
    """Nobody but the sensor starts a consumer again: a replaced pod never continues a run, and one that begins before
    the other has ended is a second reader. The loss of a node is not that of the group, and autoscalers are asked not
    to take it away.
    """
    settings = group("flights").settings
    template = job["spec"]["template"]
    spec = template["spec"]
    of_the_job = {"backoffLimit": 0, "podReplacementPolicy": "Failed", "ttlSecondsAfterFinished": 300}
    assert job["spec"].items() >= of_the_job.items()
    assert "podFailurePolicy" not in job["spec"]
    grace_s = grace_period_s(settings)
    assert grace_s > settings.consumer.batch_timeout_s
    of_the_pod = {"restartPolicy": "Never", "automountServiceAccountToken": False}
    assert spec.items() >= {**of_the_pod, "terminationGracePeriodSeconds": grace_s}.items()
    run_id = job["metadata"]["name"].removeprefix("dagster-run-")
    found_by = {"kgs/role": "consumer", "kgs/group": "flights", "kgs/consumer": "3", "dagster/run-id": run_id}
    for metadata in (job["metadata"], template["metadata"]):
        assert metadata["labels"].items() >= found_by.items()
    assert template["metadata"]["annotations"] == {
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "karpenter.sh/do-not-disrupt": "true",
    }
    spreads = spec["topologySpreadConstraints"]
    assert [spread["topologyKey"] for spread in spreads] == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    for spread in spreads:
        assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
        assert spread["labelSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()


def test_what_is_written_goes_to_volumes_of_its_own_and_what_the_launcher_gives_every_run_stays(job):
    """The root cannot be written. The launcher gives /tmp to all runs alike, so a consumer's tag does not."""
    spec = job["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    env = {each["name"]: each.get("value") for each in container["env"]}
    assert len(container["env"]) == len(env), "what the launcher sets and the tag, too, is there once"
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert env["SPARK_LOCAL_DIRS"] == env["TMPDIR"]
    for path in (env["TMPDIR"], "/tmp"):
        assert {"name": mounts[path], "emptyDir": {}} in spec["volumes"]
    assert container["image"] == "kgs:0.2.0"
    assert {"secretRef": {"name": "kafka"}} in container["envFrom"]
    assert "dagster-postgres" in json.dumps(container["env"])
    assert spec["securityContext"]["runAsUser"] == 10001


def test_the_settings_say_what_pods_are_like(where):
    ours = group(
        kubernetes="{image: 'mine:2', priority_class: low, resources: {requests: {cpu: '2', memory: 3Gi, "
        "ephemeral-storage: 1Gi}, limits: {memory: 4Gi, ephemeral-storage: 5Gi}}}"
    )
    spec = job_of(where, launched(where, ours))["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert (container["image"], spec["priorityClassName"]) == ("mine:2", "low")
    assert container["resources"] == {
        "requests": {"cpu": "2", "memory": "3Gi", "ephemeral-storage": "1Gi"},
        "limits": {"memory": "4Gi", "ephemeral-storage": "5Gi"},
    }


@pytest.mark.parametrize("name", NAMES)
def test_kubernetes_takes_the_pod_of_every_group(where, name):
    """Restricted, too: the server here refuses what the real one would."""
    ours = group(name, topics="[{topic: 'A_b.c', table: t}, {topic: '._', table: u}]")
    job = job_of(where, launched(where, ours))
    assert problems_of_job(job) == []
    assert 0 < len(job["metadata"]["labels"]["kgs/group"]) <= 63


def test_groups_of_like_names_have_labels_of_their_own():
    names = ["a" * 100, "a" * 99, "a/b", "a_b", "-a_b"]
    assert len({pod_template(group(n.replace("/", "-")))["job_metadata"]["labels"]["kgs/group"] for n in names}) == 5


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda job: job["spec"].update(podReplacmentPolicy="Failed"), "no such field"),
        (lambda job: job["spec"].update(backoffLimit="0"), "is no int"),
        (lambda job: job["metadata"]["labels"].update({"kgs/group": "._-"}), "label kgs/group"),
        (lambda job: job["spec"]["template"]["spec"].update(securityContext={}), "runAsNonRoot"),
        (lambda job: job["spec"]["template"]["spec"]["volumes"].append({"name": "tmp", "emptyDir": {}}), "twice"),
    ],
)
def test_the_server_refuses_what_kubernetes_refuses(job, wrong, told):
    wrong(job)
    assert any(told in problem for problem in problems_of_job(job))


@pytest.mark.parametrize(
    ("environ", "settings", "pods"),
    [
        ({}, {}, False),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {}, True),
        ({}, {"kubernetes": "{resources: {requests: {cpu: '1'}}}"}, True),
    ],
)
def test_a_run_started_by_hand_is_tagged_with_what_its_pod_is_made_of_where_there_are_pods(
    monkeypatch, environ, settings, pods
):
    """On one machine the tag would only stand in the way: it is as long as all others together."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert (POD in consumer_job(group(**settings)).tags) is pods
    assert POD not in consumer_run_request(group(**settings), ConsumerId(3), 1).tags


def test_no_setting_of_the_group_gets_into_the_tag():
    """Tags are shown to everybody who sees Dagster; kgs.yaml may hold passwords."""
    client = "{security.protocol: SASL_SSL, sasl.mechanism: PLAIN, sasl.password: s3cret}"
    shown = json.dumps(pod_template(group(kafka=f"{{bootstrap_servers: 'broker.example:9', client: {client}}}")))
    assert "s3cret" not in shown
    assert "broker.example" not in shown


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
