"""The Job of a consumer, and what Jobs and pods say of the runs: without a cluster."""

import pytest

from kgs_core.errors import ConfigError
from kgs_core.fleet.kubernetes_jobs import ConsumerJobs, read_runs
from kgs_core.group.view.restart_policy import retry_after_s
from kgs_core.model import ConsumerId
from tests.core.fleet.fleet_words import settings_of
from tests.kubernetes_objects import problems_of_job

UID = "batch.kubernetes.io/controller-uid"
GROUPS = ["flights", "._-", "a" * 100, "-flights.eu-", "1.2", "UPPER_case", "-"]


def jobs_of(**more):
    return ConsumerJobs(settings_of(**more), "kgs", "c1")


def job_of(consumer=3, attempt=1, **more):
    return jobs_of(**more).job(ConsumerId(consumer), attempt)


@pytest.mark.parametrize("group", GROUPS)
def test_kubernetes_takes_the_job_of_every_group_and_number(group):
    for consumer, attempt in ((1, 1), (9999, 999_999)):
        job = job_of(consumer, attempt, group=group)
        assert problems_of_job(job) == []
        assert len(job["metadata"]["name"]) <= 63 - len("-abcde"), "its pods have longer names"


def test_no_two_starts_have_one_name():
    names = {
        job_of(consumer, attempt, group=group, broker=broker)["metadata"]["name"]
        for group in (*GROUPS, "a" * 99, "FLIGHTS", "flights_")
        for broker in ("127.0.0.1:9", "127.0.0.1:10")
        for consumer, attempt in ((1, 1), (1, 11), (11, 1))
    }
    assert len(names) == (len(GROUPS) + 3) * 2 * 3


def test_a_fleet_finds_its_own_jobs_and_no_other_ones():
    selectors = {jobs_of(group=group, broker=b).selector for group in GROUPS for b in ("h:1", "h:2")}
    assert len(selectors) == 2 * len(GROUPS)
    name, value = jobs_of().selector.split("=")
    assert job_of()["metadata"]["labels"][name] == job_of()["spec"]["template"]["metadata"]["labels"][name] == value


def test_an_image_must_be_named():
    with pytest.raises(ConfigError, match=r"kubernetes\.image: missing"):
        jobs_of(kubernetes="{}")


def test_a_class_has_its_own_resources_and_nodes_and_none_is_as_ever():
    plain = {"kubernetes": "{image: 'kgs:1', resources: {limits: {memory: 3Gi}}, node_selector: {disk: ssd}}"}
    large = (
        "{price_per_hour: 2, resources: {requests: {cpu: '2'}, limits: {memory: 8Gi}}, node_selector: {pool: large}}"
    )
    jobs = jobs_of(**plain, packing=f"{{classes: {{small: {{price_per_hour: 1}}, large: {large}}}}}")
    found = {name: jobs.job(ConsumerId(3), 1, name) for name in ("", "small", "large", "gone")}
    assert all(problems_of_job(job) == [] for job in found.values())
    assert found[""] == found["gone"] == job_of(**plain)
    specs = {name: job["spec"]["template"]["spec"] for name, job in found.items()}
    assert {name: spec["nodeSelector"] for name, spec in specs.items()} == {
        "": {"disk": "ssd"}, "small": {"disk": "ssd"}, "large": {"pool": "large"}, "gone": {"disk": "ssd"}
    }  # fmt: skip
    containers = {name: spec["containers"][0] for name, spec in specs.items()}
    assert containers["small"]["resources"] == containers[""]["resources"]
    assert containers["large"]["resources"]["requests"]["cpu"] == "2"
    assert containers["large"]["resources"]["requests"]["memory"] == "1Gi"
    assert containers["large"]["resources"]["limits"]["memory"] == "8Gi"
    for name in ("small", "large"):
        assert {"name": "KGS_CLASS", "value": name} in containers[name]["env"]
        assert found[name]["spec"]["template"]["metadata"]["labels"]["kgs/class"] == name


def test_settings_of_the_section_are_in_the_pod():
    job = job_of(
        kubernetes="{image: 'r/kgs:2', service_account: reader, config_map: mine, "
        "secrets: [kafka, 'tls:/run/secrets/kafka', lake], node_selector: {disk: ssd}, "
        "priority_class: low}"
    )
    assert problems_of_job(job) == []
    spec = job["spec"]["template"]["spec"]
    assert (spec["serviceAccountName"], spec["priorityClassName"]) == ("reader", "low")
    assert spec["nodeSelector"] == {"disk": "ssd"}
    (container,) = spec["containers"]
    assert container["args"] == ["kgs", "consume", "--id", "3", "--config", "/etc/kgs/kgs.yaml"]
    assert [each["secretRef"]["name"] for each in container["envFrom"]] == ["kafka", "lake"]
    assert {"name": "config", "configMap": {"name": "mine"}} in spec["volumes"]
    assert {"name": "files-0", "secret": {"secretName": "tls"}} in spec["volumes"]
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert (mounts["/etc/kgs"], mounts["/run/secrets/kafka"]) == ("config", "files-0")


def test_a_pod_knows_who_it_is():
    (container,) = job_of()["spec"]["template"]["spec"]["containers"]
    paths = {e["name"]: e["valueFrom"]["fieldRef"]["fieldPath"] for e in container["env"] if "valueFrom" in e}
    assert paths == {
        "KGS_POD_NAME": "metadata.name",
        "KGS_POD_NAMESPACE": "metadata.namespace",
        "KGS_POD_UID": "metadata.uid",
        "KGS_ZONE": "metadata.labels['topology.kubernetes.io/zone']",
        "KGS_RUN_ID": f"metadata.labels['{UID}']",
    }
    assert {"name": "KGS_POD_CLUSTER", "value": "c1"} in container["env"]


def test_a_job_is_kept_for_as_long_as_its_failure_counts():
    settings = settings_of()
    assert job_of()["spec"]["ttlSecondsAfterFinished"] >= retry_after_s(settings.membership)


def test_no_setting_of_the_group_stands_in_the_job():
    assert "127.0.0.1" not in str(job_of())


def job(uid="u1", number="3", status=None, **metadata):
    labels = {"kgs/consumer": number, "kgs/attempt": "2"}
    made = {"name": f"j-{uid}", "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels, **metadata}
    return {"metadata": made, "spec": {}, "status": status or {}}


def pod(phase="Running", uid="u1", state=None, conditions=(), name="p", **metadata):
    labels = {"kgs/consumer": "3", "kgs/attempt": "2", UID: uid}
    made = {"name": name, "uid": f"{name}-uid", "creationTimestamp": "2026-01-01T00:00:05Z", "labels": labels}
    states = [{"state": state}] if state else []
    return {
        "metadata": {**made, **metadata},
        "status": {"phase": phase, "containerStatuses": states, "conditions": list(conditions)},
    }


FINISHED = {"conditions": [{"type": "Complete", "status": "True"}]}
FAILED = {"conditions": [{"type": "Failed", "status": "True"}]}
TO_END = {"deletionTimestamp": "2026-01-01T00:01:00Z"}


def only(jobs, pods):
    (run,) = read_runs(jobs, pods).values()
    return run


@pytest.mark.parametrize(
    ("jobs", "pods", "over", "code"),
    [
        ([job()], [], False, None),
        ([job()], [pod("Pending")], False, None),
        ([job()], [pod("Running")], False, None),
        ([job(status=FINISHED)], [pod("Succeeded")], True, 0),
        ([job(status=FAILED)], [], True, 1),
        ([job(status=FAILED)], [pod("Failed", state={"terminated": {"exitCode": 137}})], True, 137),
        ([job(status=FAILED)], [pod("Running", **TO_END)], False, None),
        ([job(status=FAILED)], [pod("Unknown")], False, None),
        ([job()], [pod("Failed")], False, None),
        ([job(**TO_END)], [], False, None),
        ([], [pod("Running")], False, None),
        ([], [pod("Running", **TO_END)], False, None),
        ([], [pod("Succeeded", state={"terminated": {"exitCode": 0}})], True, 0),
        ([job(status={"conditions": [{"type": "FailureTarget", "status": "True"}]})], [pod("Failed")], False, None),
    ],
)
def test_a_run_is_over_when_no_pod_of_it_lives_or_can_come(jobs, pods, over, code):
    found = only(jobs, pods)
    assert (found.handle, found.is_over, found.exit_code) == ("u1", over, code)


def test_what_is_no_consumers_is_passed_over():
    stray = pod(uid="u9")
    del stray["metadata"]["labels"]["kgs/consumer"]
    assert read_runs([job(number="x"), {**job("u2"), "status": None}], [stray]).keys() == {"u2"}


def test_a_pod_that_another_job_has_is_another_run():
    found = read_runs([job("u1"), job("u2")], [pod(uid="u2")])
    assert [len(found[uid].living) for uid in ("u1", "u2")] == [0, 1]


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes: cpu"}
EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "drained"}


@pytest.mark.parametrize(
    ("pod", "trouble"),
    [
        (pod("Pending", conditions=[UNSCHEDULABLE]), "Unschedulable: 0/1 nodes: cpu"),
        (
            pod("Pending", state={"waiting": {"reason": "ImagePullBackOff", "message": "no\nimage"}}),
            "ImagePullBackOff: no image",
        ),
        (pod("Pending", state={"waiting": {"reason": "ErrImageNeverPull"}}), "ErrImageNeverPull"),
        (pod("Pending", state={"waiting": {"reason": "ContainerCreating"}}), ""),
        (pod("Running", state={"running": {}}), ""),
        (pod("Failed", state={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}), "OOMKilled"),
        (pod("Failed", state={"terminated": {"exitCode": 1, "reason": "Error"}}), ""),
        (pod("Running", conditions=[EVICTED]), "EvictionByEvictionAPI: drained"),
    ],
)
def test_what_is_wrong_with_a_pod_is_reported(pod, trouble):
    assert only([job()], [pod]).trouble == trouble
