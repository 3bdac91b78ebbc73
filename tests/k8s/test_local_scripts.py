"""The scripts for one node: what they do not begin, they do not end."""

import os
import subprocess

import pytest

from tests.k8s.kustomizations import K8S

KUBECTL = """#!/bin/sh
echo "$@" >>"$CALLS"
case "$*" in
  *current-context*) echo "$CONTEXT" ;;
  "get namespace"*) [ "$ANSWERS" = yes ] || exit 1; echo "$NAMESPACE" ;;
esac
"""


def demo(tmp_path, **environ):
    """Exit status, what it says, and what it asked kubectl for."""
    (tmp_path / "kubectl").write_text(KUBECTL)
    (tmp_path / "make").write_text("#!/bin/sh\nexit 9\n")  # no image is built here
    for name in ("kubectl", "make"):
        (tmp_path / name).chmod(0o755)
    calls = tmp_path / "calls"
    done = subprocess.run(
        [K8S / "local/demo"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(calls), "KUBECONFIG": "none", **environ},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr, calls.read_text()


@pytest.mark.parametrize(
    ("environ", "status", "words"),
    [
        ({"CONTEXT": "production", "NAMESPACE": "", "ANSWERS": "yes"}, 2, "only kind and K8SLAB are given images"),
        ({"CONTEXT": "kind-a", "NAMESPACE": "namespace/kgs", "ANSWERS": "yes"}, 2, "has a namespace kgs already"),
        ({"CONTEXT": "kind-a", "NAMESPACE": "", "ANSWERS": "no"}, 2, "the cluster does not answer"),
        ({"CONTEXT": "kind-a", "NAMESPACE": "", "ANSWERS": "yes"}, 9, ""),
    ],
)
def test_a_demonstration_that_has_not_begun_deletes_and_applies_nothing(tmp_path, environ, status, words):
    found, said, calls = demo(tmp_path, KEEP="", **environ)
    assert (found, words in said) == (status, True), said
    assert "delete" not in calls
    assert "apply" not in calls
