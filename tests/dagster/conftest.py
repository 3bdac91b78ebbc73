"""Instances of Dagster, and runs of consumers in them."""

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from kgs_core.group.controller.state import Result
from kgs_core.model import ConsumerId
from kgs_core.runtime.rebalance_ports import Reference
from kgs_core.runtime.rebalance_run import RebalanceRun
from kgs_dagster.jobs.consumer import consumer_job
from kgs_dagster.launch import consumer_run_request
from kgs_dagster.run_process import PROCESS, process_tag
from tests.dagster.clusters import instance_in_cluster
from tests.dagster.groups import group
from tests.dagster.rebalancing import FOUR, Runs
from tests.dagster.ticking import Watched

ROOT = Path(__file__).parents[2]
_LOCATION = GrpcServerCodeLocationOrigin(host="localhost", port=1, location_name="kgs")


@pytest.fixture
def instance():
    """In memory."""
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def local_instance(tmp_path):
    """On disk, with the settings that kgs comes with."""
    home = tmp_path / "dagster_home"
    home.mkdir()
    shutil.copy(ROOT / "dagster.yaml", home)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance


@pytest.fixture
def run_of(instance):
    """Makes a run of a consumer as the sensor and the op leave it; gives its id."""

    def make(consumer, status, process=None, *, attempt=1, of=None, where=instance):
        of = of or group()
        request = consumer_run_request(of, ConsumerId(consumer), attempt)
        tags = {**request.tags, **({PROCESS: process_tag(process)} if process else {})}
        return where.create_run_for_job(
            consumer_job(of),
            run_config=request.run_config,
            tags=tags,
            status=status,
            remote_job_origin=RemoteJobOrigin(RemoteRepositoryOrigin(_LOCATION, "kgs"), request.job_name),
        ).run_id

    return make


@pytest.fixture
def runs(instance):
    """A group of two consumers, at rest: by no run, which would be a second more for each test."""
    runs = Runs(instance)
    runs.sim.start(1, 2)
    reference = Reference(measurement_offset=runs.sim.publish(**FOUR))
    change = RebalanceRun(runs.group.settings.group, runs.sim.options, reference, runs.sim.ports)
    change.measure()
    change.assign()
    assert change.hand_over().outcome.result is Result.CONVERGED
    return runs


@pytest.fixture
def watched(instance):
    """A group under its sensor: two consumers read two partitions each."""
    watched = Watched(instance)
    watched.settle()
    assert watched.sim.owners() == {"a": 1, "b": 1, "c": 2, "d": 2}
    return watched


@pytest.fixture(autouse=True)
def traces_are_whole():
    """A run of a consumer that fails shortens them, in a process that is to end."""
    yield
    if hasattr(sys, "tracebacklimit"):
        del sys.tracebacklimit


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    with instance_in_cluster(tmp_path_factory.mktemp("home")) as (cluster, instance):
        yield SimpleNamespace(cluster=cluster, instance=instance)


@pytest.fixture
def where(there):
    """A cluster in which there is nothing."""
    there.cluster.clear()
    return there
