"""Marks the tests of this folder: they need a cluster, that of KUBECONFIG, which has been given the images."""

from pathlib import Path

import pytest

from tests.system.k8s.cluster import Machine, machine

_FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _FOLDER in item.path.parents:
            item.add_marker("k8s")
            item.add_marker("chaos")


@pytest.fixture(scope="session")
def cluster_machine() -> Machine:
    """The processes of the cluster, where they may be killed."""
    found = machine()
    if found is None:
        pytest.skip("the processes of this cluster are not ours to kill: K8SLAB is not set")
    return found
