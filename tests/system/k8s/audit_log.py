"""What was asked of the API server, who was refused, and which rights nobody has used: by its audit log."""

import json
from collections.abc import Iterator
from typing import Any

from tests.system.k8s.cluster import Kubectl, machine

Right = tuple[str, str]
"""Resource, with its subresource after a slash; verb."""
_FORBIDDEN = 403


def refused(kubectl: Kubectl) -> list[tuple[str, Right]]:
    """Who of a namespace's service accounts was refused what; nothing where the cluster's audit log is not ours."""
    return [(user, right) for user, right, status in _requests(kubectl) if status == _FORBIDDEN]


def unused_rights(kubectl: Kubectl, account: str) -> set[Right]:
    """What a service account may do by the Roles of its namespace, and has never done."""
    used = {right for user, right, status in _requests(kubectl) if user == account and status < _FORBIDDEN}
    return set() if machine() is None else _granted(kubectl, account) - used


def _granted(kubectl: Kubectl, account: str) -> set[Right]:
    roles = {
        binding["roleRef"]["name"]
        for binding in kubectl.items("rolebindings")
        if any(subject["name"] == account for subject in binding["subjects"])
    }
    rules = [rule for role in kubectl.items("roles") if role["metadata"]["name"] in roles for rule in role["rules"]]
    return {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}


def _requests(kubectl: Kubectl) -> Iterator[tuple[str, Right, int]]:
    found = machine()
    prefix = f"system:serviceaccount:{kubectl.namespace}:"
    # A namespace of this name may have been there before
    since = json.loads(kubectl("get", "namespace", kubectl.namespace, "-o", "json"))["metadata"]["creationTimestamp"]
    for line in found.log("audit").splitlines() if found is not None else ():
        entry: dict[str, Any] = json.loads(line)
        if entry["requestReceivedTimestamp"] < since:
            continue
        user = entry.get("user", {}).get("username", "")
        if user.startswith(prefix) and entry.get("objectRef"):
            resource = "/".join(filter(None, (entry["objectRef"].get(key) for key in ("resource", "subresource"))))
            status = entry.get("responseStatus", {}).get("code", 0)
            yield user.removeprefix(prefix), (resource, entry["verb"]), status
