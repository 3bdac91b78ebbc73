"""When a consumer in a cluster is dead for certain: told by its pod, by uid, and never by silence."""

import pytest

from tests.core.fleet.fleet_words import process_of


def dead(fleet, process):
    """As the controller asks: again and again."""
    fleet.is_dead(process)
    fleet.turn()
    return fleet.is_dead(process)


@pytest.mark.parametrize("code", [0, 137])
def test_a_process_is_dead_when_the_kubelet_says_so(fleet, cluster, pod, api, code):
    assert dead(fleet, process_of(pod, api.cluster)) is False
    cluster.end(pod, code)
    assert dead(fleet, process_of(pod, api.cluster)) is True


def test_a_process_is_dead_when_its_pod_is_not_there_any_more(fleet, cluster, pod, api, new_fleet):
    cluster.remove(pod)
    assert dead(new_fleet(), process_of(pod, api.cluster)) is True


@pytest.mark.parametrize("phase", ["Running", "Unknown"])
def test_a_process_on_a_lost_node_is_not_dead(fleet, cluster, pod, api, phase):
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    pod["status"]["phase"] = phase
    del cluster.jobs[cluster.job_of(3)["metadata"]["name"]]
    assert dead(fleet, process_of(pod, api.cluster)) is False


def test_a_pod_that_has_lost_our_label_is_not_dead(fleet, cluster, pod, api):
    pod["metadata"]["labels"] = {**pod["metadata"]["labels"], "kgs/fleet": "somebody's"}
    assert dead(fleet, process_of(pod, api.cluster)) is None


def test_a_pod_of_the_same_name_is_another_one(fleet, cluster, pod, api):
    process = process_of(pod, api.cluster)
    pod["metadata"]["uid"] = "another"
    assert dead(fleet, process) is True


@pytest.mark.parametrize(("cluster_of", "namespace"), [("another", "kgs"), (None, "another"), ("", "kgs")])
def test_of_another_cluster_or_namespace_nothing_is_known(fleet, cluster, pod, api, cluster_of, namespace):
    """A group that moves to another cluster has its old consumers there, who still read."""
    cluster.remove(pod)
    process = process_of(pod, api.cluster if cluster_of is None else cluster_of, namespace)
    assert dead(fleet, process) is None
