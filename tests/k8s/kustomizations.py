"""A small reader of kustomizations: what `kubectl kustomize` makes of a folder, as far as ours use it."""

import re
from copy import deepcopy
from pathlib import Path

import yaml

K8S = Path(__file__).parents[2] / "k8s"
KNOWN = {
    "apiVersion", "kind", "namespace", "resources", "images", "configMapGenerator", "secretGenerator",
    "generatorOptions", "patches", "replacements",
}  # fmt: skip
RESTRICTED = {
    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
}  # fmt: skip
"""Security context of a container."""


def build(folder):
    """All documents of a kustomization, those of its bases first.

    Raises:
        AssertionError: it uses what this reader does not know, so that nothing is passed over.
    """
    folder = folder.resolve()
    plan = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert set(plan) <= KNOWN
    found = []
    for each in plan.get("resources", ()):
        path = folder / each
        found += build(path) if path.is_dir() else list(yaml.safe_load_all(path.read_text()))
    _generate_all(found, plan, folder)
    _change_all(found, plan, folder)
    return deepcopy(found)


def pod_spec(document):
    """The spec of a document's pods; None where it makes none."""
    return document.get("spec", {}).get("template", {}).get("spec")


def containers(document):
    """The containers of a document's pods."""
    spec = pod_spec(document) or {}
    return [*spec.get("initContainers", ()), *spec.get("containers", ())]


def environment_of(container):
    """Kind and name of what a container has its environment from."""
    kinds = {"configMapRef": "ConfigMap", "secretRef": "Secret"}
    return {(kinds[kind], ref["name"]) for source in container.get("envFrom", ()) for kind, ref in source.items()}


def named(documents, kind, name):
    """The one document of this kind and name."""
    (found,) = [one for one in documents if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


def _generate_all(found, plan, folder):
    for kind, section in (("ConfigMap", "configMapGenerator"), ("Secret", "secretGenerator")):
        for each in plan.get(section, ()):
            _generate(found, kind, each, folder)


def _change_all(found, plan, folder):
    for patch in plan.get("patches", ()):
        targets = [one for one in found if _is_target(one, patch["target"])]
        assert targets, patch
        for one in targets:
            _patch(one, yaml.safe_load((folder / patch["path"]).read_text()))
    new = {image["name"]: f"{image['newName']}:{image['newTag']}" for image in plan.get("images", ())}
    for container in (each for one in found for each in containers(one)):
        container["image"] = new.get(container["image"].partition(":")[0], container["image"])
    for each in plan.get("replacements", ()):
        _replace(found, each)


def _generate(found, kind, plan, folder):
    files = {Path(path).name: (folder / path).read_text() for path in plan.get("files", ())}
    field = "data" if kind == "ConfigMap" else "stringData"
    data = files | dict(literal.split("=", 1) for literal in plan.get("literals", ()))
    if plan.get("behavior") == "merge":
        named(found, kind, plan["name"])[field].update(data)
    else:
        found.append({"apiVersion": "v1", "kind": kind, "metadata": {"name": plan["name"]}, field: data})


def _is_target(document, target):
    return document["kind"] == target["kind"] and re.fullmatch(target["name"], document["metadata"]["name"])


def _patch(document, operations):
    for operation in operations:
        *parents, last = operation["path"].strip("/").split("/")
        place = document
        for name in parents:
            place = place[int(name)] if isinstance(place, list) else place[name]
        if last == "-":
            assert operation["op"] == "add", operation
            place.append(operation["value"])
            continue
        assert (last in place) is (operation["op"] == "replace"), operation
        place[last] = operation["value"]


def _replace(found, plan):
    source = plan["source"]
    value = _at(named(found, source["kind"], source["name"]), source["fieldPath"].split("."))
    for target in plan["targets"]:
        for path in target["fieldPaths"]:
            *way, last = re.findall(r"\[[^]]*\]|[^.\[]+", path)
            _at(named(found, target["select"]["kind"], target["select"]["name"]), way)[last] = value


def _at(place, way):
    for step in way:
        if step.startswith("["):
            key, _, wanted = step.strip("[]").partition("=")
            (place,) = [each for each in place if each[key] == wanted]
        else:
            place = place[int(step)] if isinstance(place, list) else place[step]
    return place
