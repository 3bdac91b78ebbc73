"""What the API server refuses, or does not answer, in the core's words; which cluster is asked."""

import time

import pytest

from kgs_core.errors import PermanentError, TransientError
from kgs_core.fleet.kubernetes_api import TIMEOUT_S, connect
from kgs_core.model import ConsumerId
from tests.core.fleet.fleet_words import process_of, started
from tests.kubernetes_server import NEVER_ANSWERS, kubeconfig


@pytest.mark.parametrize(
    ("right", "needed"),
    [
        (("list", "jobs"), "the verb 'list' on resources ['jobs'], apiGroups ['batch']"),
        (("list", "pods"), "the verb 'list' on resources ['pods'], apiGroups ['']"),
        (("create", "jobs"), "the verb 'create' on resources ['jobs'], apiGroups ['batch']"),
        (("delete", "jobs"), "the verb 'delete' on resources ['jobs'], apiGroups ['batch']"),
        (("get", "pods"), "the verb 'get' on resources ['pods'], apiGroups ['']"),
        (("delete", "pods"), "the verb 'delete' on resources ['pods'], apiGroups ['']"),
    ],
)
def test_each_right_that_is_missing_is_named(fleet, cluster, api, caplog, right, needed):
    handle = started(fleet)
    pod = cluster.run(3)
    fleet.turn()
    cluster.forbidden.add(right)
    if right == ("delete", "pods"):
        del cluster.jobs[cluster.job_of(3)["metadata"]["name"]]
        fleet.turn()
    if right == ("get", "pods"):
        pod["metadata"]["labels"]["kgs/fleet"] = "removed"
        fleet.is_dead(process_of(pod, api.cluster))
    fleet.stop(handle)
    fleet.start(ConsumerId(4))
    try:
        fleet.turn()
        told = caplog.text
    except PermanentError as e:
        told = str(e)
    assert f"system:serviceaccount:kgs:controller may not {right[0]} {right[1]}: give its Role {needed}" in told


def test_an_api_server_that_does_not_answer_is_waited_for_no_longer_than_that(fleet, api, cluster, monkeypatch):
    monkeypatch.setattr(api, "_timeout_s", (0.2, 0.2))
    cluster.fault = lambda *_: NEVER_ANSWERS
    began = time.monotonic()
    with pytest.raises(TransientError, match="list Jobs: no answer"):
        fleet.turn()
    assert time.monotonic() - began < TIMEOUT_S[1]


def test_an_api_server_that_is_slow_is_waited_for(fleet, cluster):
    cluster.delay_s = 0.3
    assert started(fleet) == cluster.job_of(3)["metadata"]["uid"]


def test_an_answer_of_somebody_else_is_no_answer(fleet, cluster):
    """A proxy between: neither "there are no Jobs" nor "there is no pod"."""
    cluster.fault = lambda *_: (200, "", "please log in")
    with pytest.raises(TransientError, match="the answer is not a list"):
        fleet.turn()


def test_a_cluster_that_nobody_names_is_no_cluster(tmp_path):
    with pytest.raises(PermanentError, match=r"no cluster to be found: .*: name one by KUBECONFIG"):
        connect({"KUBECONFIG": str(tmp_path / "none")})
    with pytest.raises(PermanentError, match="no cluster to be found"):
        connect({"KUBERNETES_SERVICE_HOST": "10.0.0.1"})


def test_the_namespace_is_the_given_one_or_the_contexts(address, tmp_path):
    environ = {"KUBECONFIG": str(kubeconfig(tmp_path, address, "theirs"))}
    assert connect(environ).namespace == "theirs"
