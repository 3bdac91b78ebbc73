"""Consumers as Jobs of a cluster: the Job of a start, and what Jobs and pods say of the runs. Pure.

A run is a Job; its handle is the Job's uid, which no other Job ever has. The pods know it by a label that Kubernetes
gives them, and the consumer's reports by way of the pod.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any

from kgs_core.config import Settings
from kgs_core.errors import ConfigError, one_line
from kgs_core.fleet.consumer_pod import CONSUMER_LABEL, JOB_SPEC, KEEP_ENDED_S, dns_name, pod_parts
from kgs_core.fleet.pod_process import CLUSTER
from kgs_core.group.view.restart_policy import retry_after_s
from kgs_core.model import ConsumerId, grouped
from kgs_core.system.processes import RUN_ID

Object = Mapping[str, Any]
FLEET_LABEL, ATTEMPT_LABEL = "kgs/fleet", "kgs/attempt"

CONFIG_FOLDER = "/etc/kgs"
TMP = "/tmp"  # noqa: S108 - an emptyDir of the pod's own
_JOB_UID = "batch.kubernetes.io/controller-uid"
_CONTAINER = "consumer"
_LONGEST_FLEET = 40
_OVER = ("Succeeded", "Failed")
_ON_ITS_WAY = ("ContainerCreating", "PodInitializing")


@dataclass(frozen=True, slots=True)
class JobRun:
    """A consumer's run as the cluster shows it.

    Attributes:
        attempt: its how many-th start, as far as the cluster remembers.
        created_s: since 1970; of its oldest pod, where the Job is gone.
        has_job: a Job is there; if not, pods of it are.
        is_over: no pod of it lives, and none can come.
        is_suspended: somebody has suspended it, which ends its pod.
        trouble: what keeps its pod from running, or has ended it.
    """

    consumer: ConsumerId
    handle: str
    name: str
    attempt: int
    created_s: float
    has_job: bool
    is_over: bool
    is_ending: bool
    is_suspended: bool
    exit_code: int | None
    trouble: str
    living: tuple[tuple[str, str], ...]


class ConsumerJobs:
    """The Jobs of one group: how they are found, and what they are made of."""

    def __init__(self, settings: Settings, namespace: str, cluster: str) -> None:
        """Jobs of this group on this Kafka: a group of the same name elsewhere is another fleet.

        Raises:
            ConfigError: no image is named.
        """
        if settings.kubernetes.image is None:
            raise ConfigError(["kubernetes.image: missing: name the image that consumers run in"])
        self._settings = settings
        self._namespace = namespace
        self._cluster = cluster
        self._fleet = dns_name(settings.group, _LONGEST_FLEET, settings.kafka.bootstrap_servers)
        self.selector = f"{FLEET_LABEL}={self._fleet}"

    def job(self, consumer: ConsumerId, attempt: int, consumer_class: str = "") -> dict[str, Any]:
        """One more start of a consumer; two controllers that ask for the same attempt get one Job."""
        settings = self._settings
        parts = pod_parts(settings, consumer, consumer_class)
        labels = {**parts.labels, FLEET_LABEL: self._fleet, ATTEMPT_LABEL: str(attempt)}
        keep_s = max(KEEP_ENDED_S, ceil(retry_after_s(settings.membership)))
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": f"{self._fleet}-{consumer}-{attempt}",
                "namespace": self._namespace,
                "labels": labels,
            },
            "spec": {
                **JOB_SPEC,
                "ttlSecondsAfterFinished": keep_s,  # failures in a row are counted by them
                "template": {
                    "metadata": {"labels": labels, "annotations": parts.annotations},
                    "spec": {**self._place(), **parts.pod, "containers": [self._container(parts.container, consumer)]}
                    | {"volumes": [*parts.pod["volumes"], *self._volumes()]},
                },
            },
        }

    def _place(self) -> dict[str, Any]:
        pods = self._settings.kubernetes
        place: dict[str, Any] = {"restartPolicy": "Never"}
        if pods.node_selector:
            place["nodeSelector"] = dict(pods.node_selector)
        return place

    def _container(self, common: Mapping[str, Any], consumer: ConsumerId) -> dict[str, Any]:
        pods = self._settings.kubernetes
        job_uid = {"fieldRef": {"fieldPath": f"metadata.labels['{_JOB_UID}']"}}
        files = [
            {"name": f"files-{number}", "mountPath": folder, "readOnly": True}
            for number, (_, folder) in enumerate(pods.secret_folders)
        ]
        return {
            **common,
            "name": _CONTAINER,
            "image": pods.image,
            "imagePullPolicy": "IfNotPresent",
            "args": ["kgs", "consume", "--id", str(consumer), "--config", f"{CONFIG_FOLDER}/kgs.yaml"],
            "env": [
                *common["env"],
                {"name": RUN_ID, "valueFrom": job_uid},
                {"name": CLUSTER, "value": self._cluster},
            ],
            "envFrom": [{"secretRef": {"name": name}} for name in pods.secret_variables],
            "volumeMounts": [
                *common["volumeMounts"],
                {"name": "tmp", "mountPath": TMP},
                {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True},
                *files,
            ],
        }

    def _volumes(self) -> list[dict[str, Any]]:
        pods = self._settings.kubernetes
        files = [
            {"name": f"files-{number}", "secret": {"secretName": name}}
            for number, (name, _) in enumerate(pods.secret_folders)
        ]
        config = {"name": "config", "configMap": {"name": pods.config_map}}
        return [{"name": "tmp", "emptyDir": {}}, config, *files]


def read_runs(jobs: Iterable[Object], pods: Iterable[Object]) -> dict[str, JobRun]:
    """Every run that a look has found, by its handle. A Job that was not there makes no pod that comes later."""
    by_job = grouped((_labels(pod).get(_JOB_UID, ""), pod) for pod in pods)
    found = {job["metadata"]["uid"]: _run(job, by_job.pop(job["metadata"]["uid"], [])) for job in jobs}
    found |= {uid: _run(None, orphans) for uid, orphans in by_job.items() if uid}
    return {uid: run for uid, run in found.items() if run is not None}


def living_pods(pods: Iterable[Object]) -> frozenset[str]:
    """Uids of the pods that have not ended for certain.

    Only the kubelet's own word counts, that the containers have ended. A pod of a node that is lost keeps its last
    phase, or is Unknown, and may well go on reading.
    """
    return frozenset(pod["metadata"]["uid"] for pod in pods if _lives(pod))


def pods_to_come(jobs: Iterable[Object]) -> bool:
    """Whether one of these Jobs may make a pod yet."""
    return any(not _is_finished(job) for job in jobs)


def _run(job: Object | None, pods: Sequence[Object]) -> JobRun | None:
    """None where it is no consumer's: somebody else has given it our label."""
    of = job if job is not None else pods[0]
    number, attempt = _labels(of).get(CONSUMER_LABEL, ""), _labels(of).get(ATTEMPT_LABEL, "")
    if not number.isdigit():
        return None
    living = tuple((pod["metadata"]["name"], pod["metadata"]["uid"]) for pod in pods if _lives(pod))
    is_over = not living and (job is None or _is_finished(job))
    return JobRun(
        consumer=ConsumerId(int(number)),
        handle=job["metadata"]["uid"] if job is not None else _labels(of)[_JOB_UID],
        name=job["metadata"]["name"] if job is not None else "",
        attempt=int(attempt) if attempt.isdigit() else 0,
        created_s=min(_time_s(each["metadata"]["creationTimestamp"]) for each in ([job] if job is not None else pods)),
        has_job=job is not None,
        is_over=is_over,
        is_ending=job is None or "deletionTimestamp" in job["metadata"],
        is_suspended=job is not None and bool(job["spec"].get("suspend")),
        exit_code=_exit_code(job, pods) if is_over else None,
        trouble=next(filter(None, map(_trouble, pods)), ""),
        living=living,
    )


def _lives(pod: Object) -> bool:
    return _status(pod).get("phase") not in _OVER


def _is_finished(job: Object) -> bool:
    return any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in _conditions(job))


def _exit_code(job: Object | None, pods: Sequence[Object]) -> int | None:
    codes = [ended["exitCode"] for pod in pods for state in _states(pod) if (ended := state.get("terminated"))]
    if codes:
        return int(max(codes))
    if job is None:
        return None
    is_complete = any(each["type"] == "Complete" and each["status"] == "True" for each in _conditions(job))
    return 0 if is_complete else 1 if _is_finished(job) else None


def _trouble(pod: Object) -> str:
    """Why a pod does not run: as the scheduler, the kubelet, or whoever evicted it says."""
    for state in _states(pod):
        waiting, ended = state.get("waiting", {}), state.get("terminated", {})
        if waiting and waiting.get("reason") not in _ON_ITS_WAY:
            return _words(waiting.get("reason"), waiting.get("message"))
        if ended.get("reason") not in (None, "Completed", "Error"):
            return _words(ended["reason"], ended.get("message"))
    for each in _conditions(pod):
        if each["type"] == "DisruptionTarget" and each["status"] == "True":
            return _words(each.get("reason"), each.get("message"))
        if each["type"] == "PodScheduled" and each["status"] == "False":
            return _words(each.get("reason"), each.get("message"))
    status = _status(pod)
    return _words(status["reason"], status.get("message")) if status.get("reason") else ""


def _words(reason: str | None, message: str | None) -> str:
    return one_line(Exception(": ".join(filter(None, (reason, message)))))


def _states(pod: Object) -> list[dict[str, Any]]:
    return [each.get("state", {}) for each in _status(pod).get("containerStatuses") or ()]


def _conditions(of: Object) -> Sequence[dict[str, Any]]:
    return _status(of).get("conditions") or ()


def _status(of: Object) -> dict[str, Any]:
    return of.get("status") or {}


def _labels(of: Object) -> Mapping[str, str]:
    return of["metadata"].get("labels") or {}


def _time_s(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
