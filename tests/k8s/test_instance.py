"""Dagster's instance in a cluster, and the Jobs that its launcher makes of runs."""

import warnings

import dagster as dg
import pytest
import yaml

from kgs_core.config.file import load_settings
from kgs_core.demo.layout import Layout
from kgs_core.model import ConsumerId
from kgs_dagster.launch import consumer_run_request
from kgs_dagster.settings import name_groups
from tests.k8s.kustomizations import K8S, RESTRICTED, build, containers, environment_of

ON_ONE_MACHINE = yaml.safe_load((K8S.parent / "dagster.yaml").read_text())
IN_A_CLUSTER = yaml.safe_load((K8S / "base/dagster.yaml").read_text())
ENVIRON = {"KAFKA_PASSWORD": "k", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"}


@dg.job
def plain_job() -> None:
    """Does nothing."""


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    """The instance as its file says, on SQLite: to make the storage is to connect to PostgreSQL."""
    home = tmp_path_factory.mktemp("dagster")
    kept = {key: value for key, value in IN_A_CLUSTER.items() if key not in ("storage", "local_artifact_storage")}
    (home / "dagster.yaml").write_text(yaml.safe_dump(kept))
    with pytest.MonkeyPatch.context() as patched, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what libraries deprecate at import is not ours to mend
        import dagster_k8s.launcher

        patched.setattr(dagster_k8s.launcher, "load_kubernetes_config", lambda **_: None)
        patched.setenv("KGS_POD_NAMESPACE", "kgs")
        with dg.DagsterInstance.from_config(str(home)) as found:
            assert found.run_launcher.job_namespace == "kgs"
            yield found


def group():
    path = K8S / "overlays/local/servers/kgs.yaml"
    return name_groups([(load_settings(path, ENVIRON), path)])[0]


@pytest.fixture(scope="module", params=["plain", "consumer"])
def job(request, instance):
    """The Job of a run without tags, and of a consumer's."""
    from dagster_k8s.job import construct_dagster_k8s_job
    from kubernetes.client import ApiClient

    tags = {}
    if request.param == "consumer":
        tags = dict(consumer_run_request(group(), ConsumerId(3), 1, as_pod=True).tags)
    run = instance.create_run_for_job(plain_job, tags=tags)
    context = instance.run_launcher.get_container_context_for_run(run)
    config = context.get_k8s_job_config(job_image="kgs:0.2.0", run_launcher=instance.run_launcher)
    made = construct_dagster_k8s_job(
        config, ["dagster"], "dagster-run-1", user_defined_k8s_config=context.run_k8s_config
    )
    return ApiClient().sanitize_for_serialization(made)


def test_a_cluster_differs_from_one_machine_only_where_it_must():
    assert set(IN_A_CLUSTER) - set(ON_ONE_MACHINE) == {
        "storage", "compute_logs", "local_artifact_storage", "run_launcher",
    }  # fmt: skip
    shared = {key: IN_A_CLUSTER[key] for key in ON_ONE_MACHINE}
    of_pods = ("max_resume_run_attempts", "poll_interval_seconds")  # a code server notices a death by itself
    monitoring = shared.pop("run_monitoring"), ON_ONE_MACHINE["run_monitoring"]
    in_cluster, here = ({key: value for key, value in each.items() if key not in of_pods} for each in monitoring)
    assert in_cluster == here
    assert shared == {key: value for key, value in ON_ONE_MACHINE.items() if key != "run_monitoring"}


def test_no_pod_is_started_again_for_a_run_and_an_ended_one_is_left_for_minutes_only(instance, job):
    """It could not go on; and with more than 0, Dagster 1.13 cannot cancel runs."""
    assert IN_A_CLUSTER["run_monitoring"]["max_resume_run_attempts"] == 0
    assert instance.run_monitoring_max_resume_run_attempts == 0
    assert (job["spec"]["backoffLimit"], job["spec"]["ttlSecondsAfterFinished"]) == (0, 300)
    assert "podFailurePolicy" not in job["spec"]
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"


def test_a_run_fits_into_a_restricted_namespace_below_what_launches_it(job):
    spec = job["spec"]["template"]["spec"]
    expected = {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}}
    assert spec["securityContext"].items() >= expected.items()
    assert (spec["priorityClassName"], spec["enableServiceLinks"]) == ("kgs-run", False)
    (container,) = containers(job)
    assert container["securityContext"] == RESTRICTED
    assert "memory" in container["resources"]["limits"]
    assert {"cpu", "memory"} <= set(container["resources"]["requests"])


def test_a_run_is_given_what_the_overlays_make_and_no_volume_twice(job):
    """Kubernetes would refuse the pod: launcher and tag both bring some."""
    there = {(one["kind"], one["metadata"]["name"]) for one in build(K8S / "overlays/local")}
    (container,) = containers(job)
    spec = job["spec"]["template"]["spec"]
    maps = {("ConfigMap", each["configMap"]["name"]) for each in spec["volumes"] if "configMap" in each}
    of_the_pod = {("ServiceAccount", spec["serviceAccountName"]), ("PriorityClass", spec["priorityClassName"])}
    assert of_the_pod | maps | environment_of(container) <= there
    for key, every in (("name", spec["volumes"]), ("mountPath", container["volumeMounts"])):
        assert len({each[key] for each in every}) == len(every)
    assert {"/tmp", "/etc/kgs"} <= {each["mountPath"] for each in container["volumeMounts"]}


def test_the_local_overlay_is_the_demo_in_a_cluster(tmp_path):
    ours = yaml.safe_load((K8S / "overlays/local/servers/kgs.yaml").read_text())
    demo = yaml.safe_load(Layout(tmp_path).configuration("kafka:9092"))
    different = {"group", "lake", "kubernetes"}
    assert {key for key in ours.keys() | demo.keys() if ours.get(key) != demo.get(key)} <= different


@pytest.mark.parametrize("overlay", ["local/servers", "production"])
def test_the_configuration_of_an_overlay_can_be_loaded(overlay):
    settings = load_settings(K8S / "overlays" / overlay / "kgs.yaml", ENVIRON)
    assert settings.lake.root.startswith("s3://")
