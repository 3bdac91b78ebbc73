"""The manifests: each as Kubernetes' API has it, all of one build agreeing, nothing with more rights than it needs."""

import warnings
from importlib.metadata import version

import pytest
import yaml

from tests.k8s.kustomizations import K8S, RESTRICTED, build, containers, environment_of, named, pod_spec

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


@pytest.mark.parametrize("document", EVERY)
def test_a_document_has_only_fields_that_the_api_knows(document):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what libraries deprecate at import is not ours to mend
        from dagster_k8s.models import k8s_model_from_dict, k8s_snake_case_dict
        from kubernetes.client import models
    model = getattr(models, f"V1{document['kind']}")
    k8s_model_from_dict(model, k8s_snake_case_dict(model, document))


@pytest.mark.parametrize("document", WITH_PODS)
def test_a_pod_is_restricted_stands_above_the_runs_and_says_what_it_needs(document):
    """No limit of the processor: to be slowed down beside an idle core helps nobody. A Service named kgs-set would be a
    setting of ours in the environment.
    """
    spec = pod_spec(document)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    kinds = {kind for volume in spec["volumes"] for kind in set(volume) - {"name"}}
    assert kinds <= {"configMap", "secret", "emptyDir"}
    assert (spec["priorityClassName"], spec["enableServiceLinks"]) == ("kgs-control", False)
    for container in containers(document):
        assert container["securityContext"] == RESTRICTED
        assert set(container["resources"]["requests"]) == {"cpu", "memory", "ephemeral-storage"}
        assert set(container["resources"]["limits"]) == {"memory", "ephemeral-storage"}
        image, _, tag = container["image"].rpartition(":")
        assert image.rpartition("/")[2] in {"kgs", "kgs-local"}
        assert (tag, container["imagePullPolicy"]) == (version("kgs"), "IfNotPresent")


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
            wanted |= environment_of(container)
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
def test_nobody_may_do_more_than_look_after_jobs_and_pods_and_a_consumer_nothing(folder, documents):
    """Who may read Secrets or enter a pod has the lake; rights on all kinds, or on all namespaces, are never needed."""
    kinds = {kind: [one for one in documents if one["kind"] == kind] for kind in ("Role", "RoleBinding")}
    bound = sorted(each["roleRef"]["name"] for each in kinds["RoleBinding"])
    assert bound == sorted(each["metadata"]["name"] for each in kinds["Role"])
    for name in {subject["name"] for each in kinds["RoleBinding"] for subject in each["subjects"]}:
        assert name != "kgs-consumer"
        named(documents, "ServiceAccount", name)
    assert named(documents, "ServiceAccount", "kgs-consumer")["automountServiceAccountToken"] is False
    assert not {"ClusterRole", "ClusterRoleBinding"} & {one["kind"] for one in documents}
    for rule in (rule for role in kinds["Role"] for rule in role["rules"]):
        assert set(rule["resources"]) <= {"jobs", "jobs/status", "pods", "pods/log", "events"}
        assert set(rule["verbs"]) <= {"create", "get", "list", "delete"}


def test_consumers_get_the_image_of_what_starts_them():
    for folder in ("overlays/local", "overlays/production", "helm"):
        (container,) = containers(named(BUILDS[folder], "Deployment", "kgs-code"))
        env = {each["name"]: each.get("value") for each in container["env"]}
        assert env["DAGSTER_CURRENT_IMAGE"] == container["image"]
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
