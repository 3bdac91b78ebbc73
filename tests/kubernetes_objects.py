"""Whether Kubernetes would take a Job: by its client's models, its rules for names, and Pod Security `restricted`."""

import re
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from kubernetes import client

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_QUANTITY = re.compile(r"\d+(\.\d+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?")
_PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object, "datetime": str}


def problems_of_job(job):
    """What is wrong with it, one line each; none: Kubernetes takes it, in a namespace that is `restricted`."""
    found = list(_unlike("V1Job", job, "Job"))
    if len(job["metadata"]["name"]) > 63 or not _SUBDOMAIN.fullmatch(job["metadata"]["name"]):
        found.append(f"metadata.name {job['metadata']['name']!r}")
    template = job["spec"]["template"]
    for labels in (job["metadata"].get("labels", {}), template["metadata"].get("labels", {})):
        found += _labels(labels)
    spec = template["spec"]
    for spread in spec.get("topologySpreadConstraints", ()):
        found += _labels(spread["labelSelector"]["matchLabels"])
    return [*found, *_of_pod(spec), *_unrestricted(spec)]


def _of_pod(spec):
    volumes = [volume["name"] for volume in spec.get("volumes", ())]
    if spec.get("restartPolicy") not in ("Never", "OnFailure"):
        yield f"restartPolicy {spec.get('restartPolicy')}"
    yield from (f"volume {name} twice" for name in {*volumes} if volumes.count(name) > 1)
    for container in spec["containers"]:
        mounts = container.get("volumeMounts", ())
        paths = [mount["mountPath"] for mount in mounts]
        yield from (f"mount {path} twice" for path in {*paths} if paths.count(path) > 1)
        yield from (f"no volume {mount['name']}" for mount in mounts if mount["name"] not in volumes)
        yield from (f"volume name {name!r}" for name in volumes if not _DNS_LABEL.fullmatch(name) or len(name) > 63)
        for amounts in container.get("resources", {}).values():
            yield from (f"{name}: {value!r}" for name, value in amounts.items() if not _QUANTITY.fullmatch(value))


def _unrestricted(spec):
    """What the Pod Security Standard `restricted` refuses."""
    pod = spec.get("securityContext", {})
    allowed = {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
    for volume in spec.get("volumes", ()):
        yield from (f"volume of kind {kind}" for kind in volume.keys() - allowed - {"name"})
    for container in spec["containers"]:
        own = container.get("securityContext", {})
        if own.get("allowPrivilegeEscalation") is not False:
            yield "allowPrivilegeEscalation != false"
        if own.get("capabilities", {}).get("drop") != ["ALL"]:
            yield "unrestricted capabilities"
        if own.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
            yield "runAsNonRoot != true"
        if own.get("seccompProfile", pod.get("seccompProfile", {})).get("type") not in ("RuntimeDefault", "Localhost"):
            yield "seccompProfile"


def _labels(labels):
    for key, value in labels.items():
        if not _VALUE.fullmatch(value) or len(value) > 63:
            yield f"label {key}: {value!r}"
        if not _VALUE.fullmatch(key.rpartition("/")[2]):
            yield f"label {key!r}"


def _unlike(kind, value, where):
    """Fields that the model of `kind` has not, and values that are not of their type."""
    if kind.startswith("list["):
        for number, each in enumerate(value):
            yield from _unlike(kind[5:-1], each, f"{where}[{number}]")
    elif kind.startswith("dict["):
        for key, each in value.items():
            yield from _unlike(kind.partition(", ")[2][:-1], each, f"{where}.{key}")
    elif kind in _PLAIN:
        if not isinstance(value, _PLAIN[kind]):
            yield f"{where}: {value!r} is no {kind}"
    else:
        yield from _unlike_model(getattr(client, kind), value, where)


def _unlike_model(model, value, where):
    names = {written: name for name, written in model.attribute_map.items()}
    for key, each in value.items():
        if key not in names:
            yield f"{where}.{key}: no such field"
        else:
            yield from _unlike(model.openapi_types[names[key]], each, f"{where}.{key}")
