"""The manifests: each as Kubernetes' API has it, all of one build agreeing, nothing with more rights than it needs."""

import warnings
from importlib.metadata import version

import pytest
import yaml

from tests.k8s.kustomizations import K8S, build, containers, named, pod_spec

FOLDERS = ("base", "overlays/local", "overlays/local-bare", "overlays/production", "overlays/bare", "helm")
YOURS = {  # what people make themselves: see k8s/README.md
    "base": {("ConfigMap", "kgs-config"), ("Secret", "kgs-postgres"), ("Secret", "kgs-secrets")},
    "overlays/local": set(),
    "overlays/local-bare": set(),
    "overlays/production": {("Secret", "kgs-postgres"), ("Secret", "kgs-secrets")},
    "overlays/bare": {("ConfigMap", "kgs-config"), ("Secret", "kgs-secrets")},
    "helm": {
        ("ConfigMap", "kgs-config"),
        ("ConfigMap", "dagster-instance"),  # the chart's
        ("Secret", "kgs-postgres"),
        ("Secret", "kgs-secrets"),
    },
}
DEMO = list(yaml.safe_load_all((K8S / "local/demo.yaml").read_text()))
BUILDS = {folder: build(K8S / folder) for folder in FOLDERS}
EVERY = [
    pytest.param(document, id=f"{folder}:{document['kind']}/{document['metadata']['name']}")
    for folder, documents in {**BUILDS, "local": DEMO}.items()
    for document in documents
]
WITH_PODS = [each for each in EVERY if pod_spec(each.values[0])]
each_build = pytest.mark.parametrize(("folder", "documents"), BUILDS.items(), ids=FOLDERS)


def names(documents, kind):
    return [one["metadata"]["name"] for one in documents if one["kind"] == kind]


@pytest.mark.parametrize("document", EVERY)
def test_a_document_has_only_fields_that_the_api_knows(document):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what libraries deprecate at import is not ours to mend
        from dagster_k8s.models import k8s_model_from_dict, k8s_snake_case_dict
        from kubernetes.client import models
    model = getattr(models, f"V1{document['kind']}")
    k8s_model_from_dict(model, k8s_snake_case_dict(model, document))


@pytest.mark.parametrize("document", WITH_PODS)
def test_a_pod_is_what_pod_security_calls_restricted(document):
    spec = pod_spec(document)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert {kind for volume in spec["volumes"] for kind in set(volume) - {"name"}} <= {
        "configMap",
        "secret",
        "emptyDir",
    }
    for container in containers(document):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


@pytest.mark.parametrize("document", WITH_PODS)
def test_a_container_says_what_it_needs_and_what_is_too_much(document):
    """No limit of the processor: to be slowed down beside an idle core helps nobody."""
    for container in containers(document):
        assert set(container["resources"]["requests"]) == {"cpu", "memory", "ephemeral-storage"}
        assert set(container["resources"]["limits"]) == {"memory", "ephemeral-storage"}


@pytest.mark.parametrize("document", WITH_PODS)
def test_an_image_is_named_with_this_version_and_pulled_only_where_it_is_missing(document):
    for container in containers(document):
        image, _, tag = container["image"].rpartition(":")
        assert image.rpartition("/")[2] in {"kgs", "kgs-local"}
        assert tag == version("kgs")
        assert container["imagePullPolicy"] == "IfNotPresent"


@pytest.mark.parametrize("document", WITH_PODS)
def test_every_pod_stands_above_the_runs_and_sees_no_services_as_variables(document):
    """A Service named kgs-set would be a setting of ours in the environment."""
    spec = pod_spec(document)
    assert spec["priorityClassName"] == "kgs-control"
    assert spec["enableServiceLinks"] is False


@each_build
def test_what_a_pod_refers_to_is_there(folder, documents):
    there = {(one["kind"], one["metadata"]["name"]) for one in documents}
    wanted = set()
    for document in filter(pod_spec, documents):
        spec = pod_spec(document)
        wanted.add(("PriorityClass", spec["priorityClassName"]))
        wanted |= {("ServiceAccount", spec[key]) for key in ("serviceAccountName",) if key in spec}
        wanted |= {("ConfigMap", each["configMap"]["name"]) for each in spec["volumes"] if "configMap" in each}
        for container in containers(document):
            for source in container.get("envFrom", ()):
                ((kind, ref),) = source.items()
                wanted.add(({"configMapRef": "ConfigMap", "secretRef": "Secret"}[kind], ref["name"]))
            refs = [each["valueFrom"].get("secretKeyRef") for each in container.get("env", ()) if "valueFrom" in each]
            wanted |= {("Secret", ref["name"]) for ref in refs if ref}
            assert {each["name"] for each in container["volumeMounts"]} <= {each["name"] for each in spec["volumes"]}
    assert wanted - there == YOURS[folder]


@each_build
def test_selectors_find_the_pods_that_they_are_for(folder, documents):
    templates = [one["spec"]["template"] for one in documents if pod_spec(one)]
    for document in documents:
        if document["kind"] == "Deployment":
            labels = document["spec"]["template"]["metadata"]["labels"]
            assert document["spec"]["selector"]["matchLabels"].items() <= labels.items()
        if document["kind"] == "Service":
            wanted = document["spec"]["selector"].items()
            (found,) = [each for each in templates if wanted <= each["metadata"]["labels"].items()]
            ports = {port["name"] for each in found["spec"]["containers"] for port in each["ports"]}
            assert {port["targetPort"] for port in document["spec"]["ports"]} <= ports


@each_build
def test_a_binding_gives_a_role_that_is_there_to_somebody_who_is_there(folder, documents):
    bindings = [one for one in documents if one["kind"] == "RoleBinding"]
    assert sorted(each["roleRef"]["name"] for each in bindings) == sorted(names(documents, "Role"))
    subjects = {subject["name"] for each in bindings for subject in each["subjects"]}
    assert subjects <= set(names(documents, "ServiceAccount"))


@each_build
def test_nobody_may_do_more_than_look_after_jobs_and_pods(folder, documents):
    """Who may read Secrets or enter a pod has the lake; rights on all kinds, or on all namespaces, are never needed."""
    assert not {"ClusterRole", "ClusterRoleBinding"} & {one["kind"] for one in documents}
    for role in (one for one in documents if one["kind"] == "Role"):
        for rule in role["rules"]:
            assert set(rule["resources"]) <= {"jobs", "jobs/status", "pods", "pods/log", "events"}
            assert set(rule["verbs"]) <= {"create", "get", "list", "delete"}


def test_a_consumer_has_no_right_and_no_token():
    for documents in BUILDS.values():
        account = named(documents, "ServiceAccount", "kgs-consumer")
        assert account["automountServiceAccountToken"] is False
        bound = [each["subjects"] for each in documents if each["kind"] == "RoleBinding"]
        assert "kgs-consumer" not in {subject["name"] for subjects in bound for subject in subjects}


def test_runs_get_the_image_of_the_code_location():
    for folder in ("overlays/local", "overlays/production", "helm"):
        (container,) = containers(named(BUILDS[folder], "Deployment", "kgs-code"))
        env = {each["name"]: each.get("value") for each in container["env"]}
        assert env["DAGSTER_CURRENT_IMAGE"] == container["image"]


def test_consumers_of_the_fleet_without_dagster_get_the_image_of_the_controller():
    (container,) = containers(named(BUILDS["overlays/bare"], "Deployment", "kgs-control"))
    assert container["image"] in [each.get("value") for each in container["env"]]


def test_what_must_not_run_twice_is_never_replaced_before_it_has_ended():
    for folder, name in (("overlays/production", "kgs-daemon"), ("overlays/bare", "kgs-control")):
        spec = named(BUILDS[folder], "Deployment", name)["spec"]
        assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_what_runs_once_does_not_keep_its_node_from_being_drained():
    for documents in BUILDS.values():
        for budget in (one for one in documents if one["kind"] == "PodDisruptionBudget"):
            kept = budget["spec"]["selector"]["matchLabels"]["app"]
            assert named(documents, "Deployment", kept)["spec"]["replicas"] > budget["spec"]["minAvailable"]
