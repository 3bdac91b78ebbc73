"""A cluster on loopback, and fleets in it that look when they are told to."""

from types import SimpleNamespace

import pytest

from kgs_core.fleet.kubernetes import KubernetesFleet
from kgs_core.fleet.kubernetes_api import connect
from kgs_core.fleet.kubernetes_jobs import ConsumerJobs
from tests.core.fleet.fleet_words import settings_of, started
from tests.kubernetes_server import Cluster, api_server, kubeconfig


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def address(cluster):
    with api_server(cluster) as address:
        yield address


@pytest.fixture
def api(address, tmp_path):
    return connect({"KUBECONFIG": str(kubeconfig(tmp_path, address))})


@pytest.fixture
def new_fleet(api):
    def make(**more):
        times = SimpleNamespace(now=1000.0)
        fleet = KubernetesFleet(
            ConsumerJobs(settings_of(**more), api.namespace, api.cluster), api, clock=lambda: times.now
        )
        fleet.times = times
        fleet.turn()
        return fleet

    return make


@pytest.fixture
def fleet(new_fleet):
    return new_fleet()


@pytest.fixture
def pod(fleet, cluster):
    """Of consumer 3, which runs."""
    started(fleet)
    return cluster.run(3)
