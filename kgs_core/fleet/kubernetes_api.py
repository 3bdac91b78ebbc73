"""Jobs and pods of one namespace of a cluster, as Kubernetes' API has them: plain dicts; failures in the core's words.

What Kubernetes does not answer is a TransientError, and never "there is none".
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgs_core.errors import PermanentError, TransientError, one_line
from kgs_core.extras import require

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

TIMEOUT_S = (3.0, 10.0)
"""To connect, and for an answer. A call is not repeated here: whoever makes it looks again soon."""
Object = dict[str, Any]
_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_IN_POD = "KUBERNETES_SERVICE_HOST"
_MAY_NOT = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
)
_UNAUTHORIZED, _FORBIDDEN, _CONFLICT, _TOO_MANY, _BROKEN = 401, 403, 409, 429, 500
_TAKEN = ("AlreadyExists",)
_GONE = ("NotFound", "Conflict")  # a conflict: another one has its name


class KubernetesApi:
    """Jobs and pods of one namespace; may be used by several threads. A refusal says which right is missing."""

    def __init__(self, namespace: str, client: "ApiClient", timeout_s: tuple[float, float] = TIMEOUT_S) -> None:
        from kubernetes.client import BatchV1Api, CoreV1Api

        self.namespace = namespace
        self._timeout_s = timeout_s
        self._configuration = client.configuration
        self._batch, self._core = BatchV1Api(client), CoreV1Api(client)

    @property
    def cluster(self) -> str:
        """Which cluster this is, short: its authority's certificate tells, or its address where it has none."""
        authority = self._configuration.ssl_ca_cert
        try:
            told = Path(authority).read_bytes() if authority else self._configuration.host.encode()
        except OSError:
            told = self._configuration.host.encode()
        return hashlib.sha256(told).hexdigest()[:16]

    def jobs(self, selector: str) -> list[Object]:
        """The Jobs with these labels, as of now.

        Raises:
            TransientError: no answer.
            PermanentError: it is refused; says which right is missing.
        """
        return self._list(self._batch.list_namespaced_job, "Jobs", selector)

    def pods(self, selector: str) -> list[Object]:
        """The pods with these labels, as of now.

        Raises:
            TransientError, PermanentError: see `jobs`.
        """
        return self._list(self._core.list_namespaced_pod, "pods", selector)

    def pod(self, name: str) -> Object | None:
        """One pod, as of now; None: there is none of this name.

        Raises:
            TransientError, PermanentError: see `jobs`.
        """
        return self._ask("get pods", self._core.read_namespaced_pod, name, self.namespace, passed_over=_GONE)

    def create_job(self, manifest: Object) -> bool:
        """Make a Job, and say whether this call has; without an answer it may have been made.

        Raises:
            TransientError: no answer: it may have been made.
            PermanentError: it is refused.
        """
        call = self._batch.create_namespaced_job
        return self._ask("create Jobs", call, self.namespace, manifest, passed_over=_TAKEN) is not None

    def delete_job(self, name: str, uid: str) -> None:
        """Delete a Job with its pods; it stays until they have ended. Nothing where it is not there any more.

        Raises:
            TransientError, PermanentError: see `create_job`.
        """
        body = {"propagationPolicy": "Foreground", "preconditions": {"uid": uid}}
        self._ask("delete Jobs", self._batch.delete_namespaced_job, name, self.namespace, body=body, passed_over=_GONE)

    def delete_pod(self, name: str, uid: str, grace_s: int | None = None) -> None:
        """Ask this very pod to end, within `grace_s` or as long as it has itself; nothing where it is gone.

        Raises:
            TransientError, PermanentError: see `create_job`.
        """
        body: Object = {"preconditions": {"uid": uid}, **({} if grace_s is None else {"gracePeriodSeconds": grace_s})}
        self._ask("delete pods", self._core.delete_namespaced_pod, name, self.namespace, body=body, passed_over=_GONE)

    def _list(self, call: Callable[..., Any], what: str, selector: str) -> list[Object]:
        # No resourceVersion: what a cache holds may be older than what we know already
        found = self._ask(f"list {what}", call, self.namespace, label_selector=selector) or {}
        if not isinstance(items := found.get("items"), list):
            raise TransientError(f"Kubernetes {self._configuration.host}: list {what}: the answer is not a list")
        return items

    def _ask(
        self, what: str, call: Callable[..., Any], *args: object, passed_over: Collection[str] = (), **more: object
    ) -> Object | None:
        """The answer; None where Kubernetes itself refuses it for one of the reasons that are passed over."""
        from kubernetes.client import ApiException
        from urllib3.exceptions import HTTPError

        try:
            response = call(*args, **more, _preload_content=False, _request_timeout=self._timeout_s)
            answer: Object = dict(json.loads(response.data))
        except ApiException as e:
            message, reason = _said(e)
            if reason in passed_over:
                return None
            raise self._error(what, e.status, message) from e
        except (HTTPError, OSError, TypeError, ValueError) as e:
            raise TransientError(f"Kubernetes {self._configuration.host}: {what}: no answer: {one_line(e)}") from e
        return answer

    def _error(self, what: str, status: int, message: str) -> TransientError | PermanentError:
        where = f"Kubernetes namespace {self.namespace}"
        if status == _FORBIDDEN and (found := _MAY_NOT.search(message)):
            group = f", apiGroups ['{found['group']}']" if found["group"] else ", apiGroups ['']"
            return PermanentError(
                f"{where}: {found['user']} may not {found['verb']} {found['resource']}: give its Role the verb "
                f"'{found['verb']}' on resources ['{found['resource']}']{group}"
            )
        if status in (0, _UNAUTHORIZED, _CONFLICT, _TOO_MANY) or status >= _BROKEN:
            return TransientError(f"{where}: {what}: no good answer ({status or 'no connection'}): {message}")
        return PermanentError(f"{where}: refuses to {what} ({status}): {message}")


def connect(environ: Mapping[str, str] | None = None) -> KubernetesApi:
    """The cluster of KUBECONFIG; else the one that this pod is in; else that of the user's kubeconfig.

    The namespace is this pod's, or that of the kubeconfig's context.

    Raises:
        PermanentError: there is none.
        ConfigError: the extra `k8s` is not installed.
    """
    require("k8s", "fleet 'kubernetes'")
    from kubernetes import client, config

    environ = os.environ if environ is None else environ
    configuration = client.Configuration()
    configuration.retries = False
    try:
        if environ.get(_IN_POD) and not environ.get("KUBECONFIG"):
            config.load_incluster_config(client_configuration=configuration)
            own = _OWN_NAMESPACE.read_text().strip()
        else:
            file = environ.get("KUBECONFIG") or None
            config.load_kube_config(config_file=file, client_configuration=configuration)
            own = config.list_kube_config_contexts(file)[1]["context"].get("namespace") or "default"
    except (config.ConfigException, OSError) as e:
        raise PermanentError(
            f"Kubernetes: no cluster to be found: {one_line(e)}: name one by KUBECONFIG, or run in a pod with a "
            "service account's token"
        ) from e
    return KubernetesApi(own, client.ApiClient(configuration))


def default_api(namespace: str, timeout_s: tuple[float, float] = TIMEOUT_S) -> KubernetesApi:
    """A namespace of the cluster that this process's Kubernetes client was set up for, by dagster-k8s for example."""
    from kubernetes import client

    configuration = client.Configuration.get_default_copy()
    configuration.retries = False
    return KubernetesApi(namespace, client.ApiClient(configuration), timeout_s)


def _said(error: Any) -> tuple[str, str]:
    """Message and reason of a refusal, as the API or somebody before it says them; a reason only by the API itself."""
    try:
        body = json.loads(error.body)
        return str(body["message"]), str(body.get("reason", ""))
    except (KeyError, TypeError, ValueError):
        return one_line(Exception(str(error.reason or error.body or ""))), ""
