"""A consumer's pod: what it is made of, and whether it is gone. What holds for all pods stands in dagster.yaml.

Everything that all runs need (the image, kgs.yaml, Kafka's and the lake's secrets, the database's password) is given to
K8sRunLauncher itself, by `env_config_maps`, `env_secrets` and `volumes`: no secret stands in a tag of a run.
"""

import logging
import math
import re
from typing import Any

import dagster as dg

from kgs_core.model import ConsumerId
from kgs_dagster.settings import GroupConfig, PodSettings

LAST_WORDS_S = 60
"""Beside the batch in hand: the last report, the end of Spark, the end of the run in Dagster's database."""
KEEP_ENDED_S = 300
SCRATCH = "/scratch"
_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9._-]")
_MAX_LABEL = 63
_RUN_LABEL = "dagster/run-id"
_OVER = ("Succeeded", "Failed")
_log = logging.getLogger(__name__)


def grace_period_s(group: GroupConfig) -> int:
    """How long a pod may go on after it was asked to end: a batch may take that long, and is worth committing."""
    return math.ceil(group.settings.consumer.batch_timeout_s) + LAST_WORDS_S


def pod_template(group: GroupConfig, pods: PodSettings, consumer: ConsumerId | None = None) -> dict[str, Any]:
    """The value of the tag `dagster-k8s/config` for a consumer's run.

    Args:
        group: whose consumer.
        pods: what the environment says.
        consumer: None: of any number.
    """
    labels = {"kgs/role": "consumer", "kgs/group": _label(group.name)}
    if consumer is not None:
        labels["kgs/consumer"] = str(consumer)
    container: dict[str, Any] = {
        "resources": {
            "requests": {"cpu": pods.cpu, "memory": pods.memory},
            "limits": {"memory": pods.memory_limit},
        },
        "env": [{"name": "SPARK_LOCAL_DIRS", "value": SCRATCH}, {"name": "TMPDIR", "value": SCRATCH}],
        "volume_mounts": [{"name": "scratch", "mount_path": SCRATCH}],
        "security_context": {"allow_privilege_escalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    if pods.image is not None:
        container["image"] = pods.image
    return {
        "container_config": container,
        "pod_spec_config": {
            "termination_grace_period_seconds": grace_period_s(group),
            # A consumer asks nothing of Kubernetes: what is not there cannot be stolen
            "automount_service_account_token": False,
            "security_context": {"run_as_non_root": True},
            "volumes": [{"name": "scratch", "empty_dir": {}}],
        },
        "pod_template_spec_metadata": {
            "labels": labels,
            # To move it costs a start of Spark and a hand-over: not worth it to save part of a node
            "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
        },
        "job_spec_config": {"backoff_limit": 0, "ttl_seconds_after_finished": KEEP_ENDED_S},
        "job_metadata": {"labels": labels},
    }


def in_cluster(instance: dg.DagsterInstance) -> bool:
    """Whether the runs of this instance are pods."""
    return type(instance.run_launcher).__module__.partition(".")[0] == "dagster_k8s"


def pods_are_gone(instance: dg.DagsterInstance, run_id: str) -> bool | None:
    """Whether every pod of a run has ended and no other one can come; None when the cluster does not tell."""
    from kubernetes.client import ApiException, BatchV1Api, CoreV1Api  # configured by the launcher
    from urllib3.exceptions import HTTPError

    namespace = getattr(instance.run_launcher, "job_namespace", "default")
    selector = f"{_RUN_LABEL}={run_id}"
    try:
        # The job first: one that is gone makes no pod any more, so the pods seen after it are all there will be
        jobs = BatchV1Api().list_namespaced_job(namespace, label_selector=selector).items
        pods = CoreV1Api().list_namespaced_pod(namespace, label_selector=selector).items
    except (ApiException, HTTPError) as e:
        _log.warning("Kubernetes does not tell whether the pod of run %s is gone: %s", run_id, str(e).split("\n")[0])
        return None
    has_pods_to_come = any(not (job.status.succeeded or job.status.failed) for job in jobs)
    return not has_pods_to_come and all(pod.status.phase in _OVER for pod in pods)


def _label(text: str) -> str:
    """The text as a label's value, which begins and ends with a letter or digit."""
    return _NOT_IN_LABELS.sub("_", text)[:_MAX_LABEL].strip("._-") or "group"
