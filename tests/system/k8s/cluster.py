"""One namespace of a real cluster, by `kubectl`, as a person would use it."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psutil

from tests.waiting import wait_until

Object = dict[str, Any]
PATIENCE_S = 300


class Kubectl:
    """The cluster of KUBECONFIG, in one namespace."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    def __call__(self, *args: str, given: str | None = None, timeout_s: float = 120) -> str:
        """What it prints; it must succeed."""
        done = self.attempt(*args, given=given, timeout_s=timeout_s)
        assert done.returncode == 0, f"kubectl {' '.join(args)}: {done.stderr}{done.stdout}"
        return done.stdout

    def attempt(self, *args: str, given: str | None = None, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        """However it ends."""
        return subprocess.run(
            self.command(*args), input=given, capture_output=True, text=True, timeout=timeout_s, check=False
        )

    def command(self, *args: str) -> list[str]:
        """For whoever starts it itself."""
        return ["kubectl", "-n", self.namespace, *args]

    def items(self, kind: str, selector: str = "") -> list[Object]:
        """Objects of a kind, those with these labels only."""
        found: list[Object] = json.loads(self("get", kind, "-l", selector, "-o", "json"))["items"]
        return found

    def pods(self, selector: str) -> list[Object]:
        """Pods that have not ended, nor been told to."""
        return [
            pod
            for pod in self.items("pods", selector)
            if pod["status"].get("phase") not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]
        ]

    def exec(self, pod: str, *command: str, given: str | None = None, timeout_s: float = 120) -> str:
        """What a command in a pod prints; it must succeed."""
        stdin = ("-i",) if given is not None else ()
        return self("exec", *stdin, pod, "--", *command, given=given, timeout_s=timeout_s)

    def kill(self, *names: str) -> None:
        """End pods at once, asking nobody: as the loss of their machines."""
        self("delete", "pod", "--grace-period=0", "--force", *names)

    def log(self, what: str, *options: str) -> str:
        """What a pod, or the pod of a Deployment, has printed."""
        return self("logs", what, *options)

    def wait_log(self, what: str, pattern: str, timeout_s: float = 60) -> str:
        """The first line of this form that it prints, or has printed."""

        def found() -> str | None:
            said = self.attempt("logs", what, "--tail=2000").stdout
            return next((line for line in said.splitlines() if re.search(pattern, line)), None)

        line = wait_until(found, timeout_s, f"{what} prints {pattern}")
        assert line is not None
        return line

    def rollout(self, *deployments: str) -> None:
        """Until they run as they shall."""
        for name in deployments:
            self("rollout", "status", f"deployment/{name}", f"--timeout={PATIENCE_S}s", timeout_s=2 * PATIENCE_S)

    def patch(self, kind: str, name: str, *operations: Object) -> None:
        """A JSON patch."""
        self("patch", kind, name, "--type=json", "-p", json.dumps(operations))


class Machine:
    """The processes of a cluster of one node, made by K8SLAB on this machine."""

    def __init__(self, program: str) -> None:
        self._program = program

    def kill(self, name: str) -> None:
        """SIGKILL one of the cluster's own processes."""
        os.kill(self._pid(name), signal.SIGKILL)

    @contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """One of the cluster's own processes, while the block runs."""
        pid = self._pid(name)
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def mend(self) -> None:
        """Start again what has died."""
        subprocess.run([self._program, "up"], capture_output=True, check=True, timeout=300)

    def kill_consumer(self, pod_uid: str) -> None:
        """SIGKILL the processes of a consumer's pod, past kubelet and API server."""
        killed = 0
        for process in psutil.process_iter():
            try:
                if process.environ().get("KGS_POD_UID") == pod_uid:
                    process.kill()
                    killed += 1
            except psutil.Error:
                continue
        assert killed, f"no process of pod {pod_uid} on this machine"

    def log(self, name: str) -> str:
        """What one of the cluster's own processes has written; "audit": the API server's audit log."""
        return subprocess.run([self._program, "logs", name], capture_output=True, text=True, check=True).stdout

    def _pid(self, name: str) -> int:
        status = subprocess.run([self._program, "status"], capture_output=True, text=True, check=True).stdout
        found = re.search(rf"^{name} up pid=(\d+)", status, re.MULTILINE)
        assert found, status
        return int(found[1])


class RoleWithout:
    """A Role from which rights are taken while a block runs."""

    def __init__(self, kubectl: Kubectl, name: str, *taken: tuple[str, str]) -> None:
        self._kubectl = kubectl
        self._whole = json.loads(kubectl("get", "role", name, "-o", "json"))
        self._left = self._whole
        for resource, verb in taken:
            self._left = _without_verb(self._left, resource, verb)

    def __enter__(self) -> None:
        self._set(self._left)

    def __exit__(self, *_: object) -> None:
        self._set(self._whole)

    def _set(self, role: Object) -> None:
        name = role["metadata"]["name"]
        self._kubectl.patch("role", name, {"op": "replace", "path": "/rules", "value": role["rules"]})


def machine() -> Machine | None:
    """That of the cluster of KUBECONFIG, where K8SLAB has made it; else None."""
    program = os.environ.get("K8SLAB")
    return Machine(program) if program else None


def pod_names(pods: Sequence[Object]) -> list[str]:
    """Their names, in order."""
    return sorted(pod["metadata"]["name"] for pod in pods)


def _without_verb(role: Object, resource: str, verb: str) -> Object:
    rules = [
        {**rule, "verbs": [each for each in rule["verbs"] if each != verb or resource not in rule["resources"]]}
        for rule in role["rules"]
    ]
    return {**role, "rules": [rule for rule in rules if rule["verbs"]]}
