"""The pod of a consumer, as the launcher sends it to the cluster."""

import json

import pytest

from kgs_core.fleet.consumer_pod import grace_period_s
from kgs_core.model import ConsumerId
from kgs_dagster.jobs.consumer import consumer_job
from kgs_dagster.launch import POD, consumer_run_request
from kgs_dagster.pods import pod_template
from tests.dagster.clusters import launched
from tests.dagster.groups import group
from tests.kubernetes_objects import problems_of_job

NAMES = ["flights", "._-", "a" * 100, "-flights.eu-", "9." * 40 + "9a", "UPPER_case"]


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


def test_a_run_of_a_class_says_so_in_its_configuration_and_its_pod_has_what_the_class_has():
    large = "{price_per_hour: 2, resources: {requests: {cpu: '2'}}, node_selector: {pool: large}}"
    of = group("flights", packing=f"{{classes: {{large: {large}}}}}")
    found = consumer_run_request(of, ConsumerId(3), 1, consumer_class="large", as_pod=True)
    assert found.run_config["ops"]["consume"]["config"] == {"consumer": 3, "consumer_class": "large"}
    pod = json.loads(found.tags[POD])
    assert pod["pod_spec_config"]["nodeSelector"] == {"pool": "large"}
    assert pod["container_config"]["resources"]["requests"]["cpu"] == "2"
    assert {"name": "KGS_CLASS", "value": "large"} in pod["container_config"]["env"]
    assert pod["pod_template_spec_metadata"]["labels"]["kgs/class"] == "large"


def test_no_setting_of_the_group_gets_into_the_tag():
    """Tags are shown to everybody who sees Dagster; kgs.yaml may hold passwords."""
    client = "{security.protocol: SASL_SSL, sasl.mechanism: PLAIN, sasl.password: s3cret}"
    shown = json.dumps(pod_template(group(kafka=f"{{bootstrap_servers: 'broker.example:9', client: {client}}}")))
    assert "s3cret" not in shown
    assert "broker.example" not in shown
