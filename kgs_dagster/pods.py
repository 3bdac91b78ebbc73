"""A consumer's pod as Dagster launches it, and whether it is gone. What it is made of is `consumer_pod`'s.

Everything that all runs need (the image, kgs.yaml, Kafka's and the lake's secrets, the database's password) is given to
the launcher itself, by `env_config_maps`, `env_secrets` and `volumes`: no secret stands in a tag of a run.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

import dagster as dg

from kgs_core.errors import PortError
from kgs_core.fleet.consumer_pod import JOB_SPEC, KEEP_ENDED_S, consumer_labels, pod_parts
from kgs_core.fleet.kubernetes_api import TIMEOUT_S, KubernetesApi, default_api
from kgs_core.fleet.kubernetes_jobs import living_pods, pods_to_come
from kgs_core.model import ConsumerId
from kgs_dagster.settings import GroupConfig

_RUN_LABEL = "dagster/run-id"
_log = logging.getLogger(__name__)


def pod_template(group: GroupConfig, consumer: ConsumerId | None = None, consumer_class: str = "") -> dict[str, Any]:
    """The value of the tag `dagster-k8s/config` for a consumer's run; None: of any number."""
    parts = pod_parts(group.settings, consumer, consumer_class)
    image = group.settings.kubernetes.image
    return {
        "container_config": {**parts.container, **({"image": image} if image is not None else {})},
        "pod_spec_config": parts.pod,
        "pod_template_spec_metadata": {"labels": parts.labels, "annotations": parts.annotations},
        "job_spec_config": {**JOB_SPEC, "ttlSecondsAfterFinished": KEEP_ENDED_S},
        "job_metadata": {"labels": parts.labels},
    }


def in_cluster(instance: dg.DagsterInstance) -> bool:
    """Whether the runs of this instance are pods."""
    kinds = type(instance.run_launcher).__mro__
    return any(kind.__module__.partition(".")[0] == "dagster_k8s" for kind in kinds)


def api_of(launcher: object, timeout_s: tuple[float, float] = TIMEOUT_S) -> KubernetesApi:
    """The namespace that a launcher of dagster-k8s puts Jobs into, by its credentials."""
    return default_api(getattr(launcher, "job_namespace", "default"), timeout_s)


def pods_are_gone(api: KubernetesApi, run_id: str) -> bool | None:
    """Whether every pod of a run has ended and no other one can come; None when the cluster does not tell."""
    selector = f"{_RUN_LABEL}={run_id}"
    try:
        # The job first: one that is gone makes no pod any more, so the pods seen after it are all there will be
        jobs = api.jobs(selector)
        pods = api.pods(selector)
    except PortError as e:
        _log.warning("whether the pod of run %s is gone is not known: %s", run_id, e)
        return None
    return not pods_to_come(jobs) and not living_pods(pods)


def runs_without_pods(api: KubernetesApi, group: str) -> frozenset[str] | None:
    """Runs of a group's consumers whose pods have all ended, and whose Jobs make no other; None: not known.

    Two questions, however many runs there are.
    """
    selector = ",".join(f"{label}={value}" for label, value in consumer_labels(group).items())
    try:
        jobs = api.jobs(selector)  # first, as in `pods_are_gone`
        pods = [pod for pod in api.pods(selector) if _RUN_LABEL in pod["metadata"]["labels"]]
    except PortError as e:
        _log.warning("which consumers' pods have ended is not known: %s", e)
        return None
    living = living_pods(pods)
    going_on = {_run_id(pod) for pod in pods if pod["metadata"]["uid"] in living}
    to_come = {_run_id(job) for job in jobs if _RUN_LABEL in job["metadata"]["labels"] and pods_to_come([job])}
    return frozenset(map(_run_id, pods)) - going_on - to_come


def delete_jobs_of(api: KubernetesApi, over: Callable[[Collection[str]], Collection[str]]) -> tuple[str, ...]:
    """Delete Jobs that have not ended and whose runs are over, and return these runs.

    Dagster leaves them, and their pods may start, or read on.

    Raises:
        PortError: the cluster does not answer, or refuses it.
    """
    open_ = {_run_id(job): job for job in api.jobs(_RUN_LABEL) if pods_to_come([job])}
    late = sorted(over([run_id for run_id, job in open_.items() if "deletionTimestamp" not in job["metadata"]]))
    for run_id in late:
        metadata = open_[run_id]["metadata"]
        api.delete_job(metadata["name"], metadata["uid"])
    return tuple(late)


def _run_id(of: Mapping[str, Any]) -> str:
    return str(of["metadata"]["labels"][_RUN_LABEL])
