"""The pod of a consumer, as dagster-k8s makes it of the run's tag, and how it is told that it is gone."""

import json
import warnings
from types import SimpleNamespace

import pytest

from kgs_core.model import ConsumerId
from kgs_dagster.jobs.consumer import consumer_job
from kgs_dagster.launch import POD, consumer_run_request
from kgs_dagster.pods import grace_period_s, pod_template, pods_are_gone
from kgs_dagster.settings import PodSettings
from tests.dagster.groups import group


def rendered(tag):
    """The Job that K8sRunLauncher would create."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what libraries deprecate at import is not ours to mend
        from dagster_k8s.job import DagsterK8sJobConfig, UserDefinedDagsterK8sConfig, construct_dagster_k8s_job
        from kubernetes.client import ApiClient
    config = DagsterK8sJobConfig(
        job_image="kgs:0.1.0",
        dagster_home="/opt/dagster",
        instance_config_map="dagster-instance",
        postgres_password_secret="dagster-postgres",
        env_secrets=["kafka"],
    )
    job = construct_dagster_k8s_job(
        config, ["dagster"], "dagster-run-1", UserDefinedDagsterK8sConfig.from_dict(tag), labels={"dagster/run-id": "1"}
    )
    return ApiClient().sanitize_for_serialization(job)


@pytest.fixture(scope="module")
def job():
    request = consumer_run_request(group("flights"), ConsumerId(3), 1, as_pod=True)
    return rendered(json.loads(request.tags[POD]))


def test_a_pod_has_time_to_end_its_batch(job):
    ours = group("flights")
    grace = job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert grace == grace_period_s(ours) > ours.settings.consumer.batch_timeout_s


def test_nobody_but_the_fleet_sensor_starts_a_consumer_again(job):
    assert job["spec"]["backoffLimit"] == 0
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert job["spec"]["ttlSecondsAfterFinished"] == 300


def test_jobs_and_pods_are_found_by_consumer_and_run(job):
    for metadata in (job["metadata"], job["spec"]["template"]["metadata"]):
        labels = metadata["labels"]
        assert labels["kgs/role"] == "consumer"
        assert (labels["kgs/group"], labels["kgs/consumer"]) == ("flights", "3")
        assert labels["dagster/run-id"] == "1"
    annotations = job["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}


def test_a_pod_has_no_more_rights_than_it_needs(job):
    spec = job["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"] == {"runAsNonRoot": True}
    (container,) = spec["containers"]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_spark_writes_to_a_disk_of_its_own(job):
    spec = job["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    env = {each["name"]: each.get("value") for each in container["env"]}
    (mount,) = [mount for mount in container["volumeMounts"] if mount["name"] == "scratch"]
    assert env["SPARK_LOCAL_DIRS"] == env["TMPDIR"] == mount["mountPath"]
    assert {"name": "scratch", "emptyDir": {}} in spec["volumes"]


def test_what_the_launcher_gives_every_run_stays(job):
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "kgs:0.1.0"
    assert {"secretRef": {"name": "kafka"}} in container["envFrom"]
    assert "dagster-postgres" in json.dumps(container["env"])


def test_the_environment_sets_image_and_resources():
    job = rendered(pod_template(group(), PodSettings("mine:2", "2", "3Gi", "4Gi")))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "mine:2"
    assert container["resources"] == {"requests": {"cpu": "2", "memory": "3Gi"}, "limits": {"memory": "4Gi"}}


@pytest.mark.parametrize(
    ("environ", "pods"),
    [({}, False), ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, True), ({"KGS_POD_MEMORY": "3Gi"}, True)],
)
def test_a_run_started_by_hand_is_told_what_its_pod_is_made_of_where_there_are_pods(monkeypatch, environ, pods):
    """On one machine the tag would only stand in the way: it is as long as all others together."""
    for name in ("KUBERNETES_SERVICE_HOST", "KGS_POD_MEMORY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert (POD in consumer_job(group()).tags) is pods
    assert POD not in consumer_run_request(group(), ConsumerId(3), 1).tags


def test_no_setting_of_the_group_gets_into_the_tag():
    """Tags are shown to everybody who sees Dagster; kgs.yaml may hold passwords."""
    secret = group(
        kafka="{bootstrap_servers: 'broker.example:9', client: {security.protocol: SASL_SSL, sasl.password: s3cret}}"
    )
    assert "s3cret" not in json.dumps(pod_template(secret, PodSettings()))
    assert "broker.example" not in json.dumps(pod_template(secret, PodSettings()))


@pytest.mark.parametrize("name", ["._-", "a" * 100, "-flights.eu-"])
def test_every_group_makes_a_label_that_kubernetes_takes(name):
    label = pod_template(group(name), PodSettings())["job_metadata"]["labels"]["kgs/group"]
    assert 0 < len(label) <= 63
    assert label[0].isalnum()
    assert label[-1].isalnum()


RUNNING_JOB = SimpleNamespace(status=SimpleNamespace(succeeded=None, failed=None))
ENDED_JOB = SimpleNamespace(status=SimpleNamespace(succeeded=1, failed=None))


def pod(phase):
    return SimpleNamespace(status=SimpleNamespace(phase=phase))


@pytest.mark.parametrize(
    ("jobs", "pods", "gone"),
    [
        ([], [], True),
        ([ENDED_JOB], [pod("Succeeded")], True),
        ([], [pod("Failed")], True),
        ([], [pod("Running")], False),
        ([ENDED_JOB], [pod("Unknown")], False),
        ([RUNNING_JOB], [], False),
        ([RUNNING_JOB], [pod("Failed")], False),
    ],
)
def test_a_run_is_gone_when_no_pod_of_it_is_there_or_to_come(monkeypatch, instance, jobs, pods, gone):
    import kubernetes.client

    asked = []

    def listed(items):
        def find(namespace, label_selector):
            asked.append(label_selector)
            return SimpleNamespace(items=items)

        return find

    monkeypatch.setattr(kubernetes.client, "BatchV1Api", lambda: SimpleNamespace(list_namespaced_job=listed(jobs)))
    monkeypatch.setattr(kubernetes.client, "CoreV1Api", lambda: SimpleNamespace(list_namespaced_pod=listed(pods)))
    assert pods_are_gone(instance, "run-1") is gone
    assert asked == ["dagster/run-id=run-1"] * 2


def test_a_cluster_that_does_not_tell_leaves_it_open(monkeypatch, instance):
    import kubernetes.client

    def refuse(namespace, label_selector):
        raise kubernetes.client.ApiException(403, "pods is forbidden")

    monkeypatch.setattr(kubernetes.client, "BatchV1Api", lambda: SimpleNamespace(list_namespaced_job=refuse))
    assert pods_are_gone(instance, "run-1") is None
