"""A consumer's pod, in Kubernetes' own words: for runs of Dagster as for Jobs of the fleet without Dagster. Pure.

A pod that is ended finishes its batch, is started again by nobody but the controller, writes to nothing but its own
scratch volumes, and fits into a namespace whose Pod Security is `restricted`.
"""

import hashlib
import math
import re
from dataclasses import dataclass
from typing import Any

from kgs_core.config import Settings
from kgs_core.kafka.client_config import ZONE
from kgs_core.model import ConsumerId
from kgs_core.system.processes import CLASS

GROUP_LABEL, CONSUMER_LABEL, ROLE_LABEL, CLASS_LABEL = "kgs/group", "kgs/consumer", "kgs/role", "kgs/class"
CONSUMER_ROLE = "consumer"
LAST_WORDS_S = 60
"""Beside the batch in hand: the last report, the end of Spark, the end of the run in Dagster's database."""
KEEP_ENDED_S = 300
SCRATCH = "/scratch"
POD_NAME, POD_NAMESPACE, POD_UID = "KGS_POD_NAME", "KGS_POD_NAMESPACE", "KGS_POD_UID"
_ZONE_LABEL = "topology.kubernetes.io/zone"
_OF_POD = {
    POD_NAME: "metadata.name",
    POD_NAMESPACE: "metadata.namespace",
    POD_UID: "metadata.uid",
    # From Kubernetes 1.35 on a pod has its node's (1.33: by the gate PodTopologyLabelsAdmission); before, this is empty
    ZONE: f"metadata.labels['{_ZONE_LABEL}']",
}
_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9._-]")
_MAX_LABEL = 63
_HASH = 8
_SPREAD_OVER = ("kubernetes.io/hostname", _ZONE_LABEL)
_ANNOTATIONS = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}
"""To move a consumer costs a start of Spark and a hand-over: not worth it to save part of a node. A request, no
promise: autoscalers have races, and a drain does not ask. Nothing relies on it."""
JOB_SPEC: dict[str, Any] = {"backoffLimit": 0, "podReplacementPolicy": "Failed"}
"""Nobody but the controller starts a consumer again. The second is a belt: should somebody raise the first, the pod's
successor waits for its end. Never a podFailurePolicy with Ignore: with it a pod is replaced in spite of backoffLimit 0.
"""
POD_SECURITY: dict[str, Any] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER_SECURITY: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}


@dataclass(frozen=True, slots=True)
class PodParts:
    """Parts of a consumer's pod, as dicts of Kubernetes' API.

    Attributes:
        container: without image and command, and without /tmp, which Dagster's launcher gives to all runs alike.
        pod: the pod's spec, without its containers.
    """

    labels: dict[str, str]
    annotations: dict[str, str]
    container: dict[str, Any]
    pod: dict[str, Any]


def grace_period_s(settings: Settings) -> int:
    """How long a pod may go on after it was asked to end: a batch may take that long, and is worth committing."""
    return math.ceil(settings.consumer.batch_timeout_s) + LAST_WORDS_S


def consumer_labels(group: str, consumer: ConsumerId | None = None) -> dict[str, str]:
    """What consumers' pods are found by; None: those of any number."""
    number = {} if consumer is None else {CONSUMER_LABEL: str(consumer)}
    return {ROLE_LABEL: CONSUMER_ROLE, GROUP_LABEL: label_value(group), **number}


def pod_parts(settings: Settings, consumer: ConsumerId | None = None, consumer_class: str = "") -> PodParts:
    """What a consumer's pod is made of. No setting of the group's stands in it but names: it is shown to many.

    A class that kgs.yaml does not have counts as none.
    """
    pods, own = settings.kubernetes, settings.packing.classes.get(consumer_class)
    of_group = {GROUP_LABEL: label_value(settings.group)}
    container: dict[str, Any] = {
        "resources": pods.pod_resources(own.resources if own is not None else {}),
        "env": [
            {"name": "SPARK_LOCAL_DIRS", "value": SCRATCH},
            {"name": "TMPDIR", "value": SCRATCH},
            *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in _OF_POD.items()),
            *([{"name": CLASS, "value": consumer_class}] if own is not None else []),
        ],
        "volumeMounts": [{"name": "scratch", "mountPath": SCRATCH}],
        "securityContext": CONTAINER_SECURITY,
    }
    pod: dict[str, Any] = {
        "terminationGracePeriodSeconds": grace_period_s(settings),
        # A consumer asks nothing of Kubernetes: what is not there cannot be stolen
        "automountServiceAccountToken": False,
        # Else every Service of the namespace is in the environment, and one named `kgs` among our own variables
        "enableServiceLinks": False,
        # The first process of a container hears no SIGTERM before it has a handler, and buries no orphans
        "shareProcessNamespace": True,
        "securityContext": POD_SECURITY,
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        # The loss of a node, or of a zone, is then not that of the group. Rather a full node than no pod
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": key,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": of_group},
            }
            for key in _SPREAD_OVER
        ],
    }
    if pods.priority_class is not None:
        pod["priorityClassName"] = pods.priority_class
    if pods.service_account is not None:
        pod["serviceAccountName"] = pods.service_account
    if own is not None and own.node_selector:
        pod["nodeSelector"] = dict(own.node_selector)
    labels = consumer_labels(settings.group, consumer) | ({CLASS_LABEL: consumer_class} if own is not None else {})
    return PodParts(labels, dict(_ANNOTATIONS), container, pod)


def label_value(text: str) -> str:
    """A text as a label's value: itself where Kubernetes takes it, else its legal part and a hash of the whole."""
    legal = _NOT_IN_LABELS.sub("_", text)
    if legal == text and len(text) <= _MAX_LABEL and text[:1].isalnum() and text[-1:].isalnum():
        return text
    return f"{legal[: _MAX_LABEL - _HASH - 1].strip('._-')}.{_hash(text)}".lstrip(".")


def dns_name(text: str, longest: int, more: str = "") -> str:
    """Part of a name in DNS, 10 to `longest` long, with a hash of `text` and `more`: no two of these make one name."""
    legal = re.sub(r"[^a-z0-9]+", "-", text.lower())[: longest - _HASH - 2].strip("-")
    return f"{legal}-x{_hash(f'{text}/{more}')}".lstrip("-")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH]
