"""Processes in pods: which pod this is, as its reports name it. Whether it is gone, its cluster tells by the uid."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from kgs_core.fleet.consumer_pod import POD_NAME, POD_NAMESPACE, POD_UID
from kgs_core.fleet.host_process import this_process
from kgs_core.group.protocol import Process
from kgs_core.system.processes import RUN_ID

CLUSTER = "KGS_POD_CLUSTER"
_Text = Annotated[str, Field(strict=True)]


@dataclass(frozen=True, slots=True)
class PodProcess:
    """The first process of a pod's container.

    Attributes:
        uid: that no other pod ever has, of any cluster.
        cluster: as `KubernetesApi.cluster` says it; empty where nobody has told the pod.
    """

    pod: _Text
    namespace: _Text
    uid: _Text
    cluster: _Text = ""
    run_id: _Text = ""

    @classmethod
    def current(cls, environ: Mapping[str, str] | None = None) -> "PodProcess | None":
        """The pod that this process runs in; None where its environment names none."""
        found = os.environ if environ is None else environ
        if not found.get(POD_UID):
            return None
        name, namespace = found.get(POD_NAME, ""), found.get(POD_NAMESPACE, "")
        return cls(name, namespace, found[POD_UID], found.get(CLUSTER, ""), found.get(RUN_ID, ""))

    @classmethod
    def of(cls, process: Process) -> "PodProcess | None":
        """What a report says of its process; None where it is of another kind."""
        try:
            return _FORM.validate_python(process.parts)
        except ValidationError:
            return None

    def as_process(self) -> Process:
        """Itself, as reports name it."""
        return Process(asdict(self))


_FORM = TypeAdapter(PodProcess)


def own_process(environ: Mapping[str, str] | None = None) -> Process:
    """The process that calls, as its reports name it: by its pod, if it is in one that says so, else by its machine.

    Raises:
        PermanentError: this is no Linux.
    """
    pod = PodProcess.current(environ)
    return this_process(environ) if pod is None else pod.as_process()
