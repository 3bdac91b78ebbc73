"""Experiments in a whole Dagster: a backfill over a slice, launched as the UI does it.

That a slice gives the same bytes each time: `test_results_in_stores.py`.
"""

import pyarrow.dataset as ds
import pytest

from tests.system.dagster_room import dagster_room
from tests.waiting import wait_until

pytestmark = [pytest.mark.neighbours, pytest.mark.slow(80)]
DONE_S = 120
# no broker there: experiments need none
GROUP = "group: g\nkafka: {bootstrap_servers: '127.0.0.1:9'}\nlake: {root: lake}\ntopics: [{topic: t}]\n"
PUBLISHED = 72
NAMES = ("bfd", "wfd")
LOADS = tuple(f"zero-delta{delta}-seed1-p8-t2-n10" for delta in (10, 20))
RUNS = [f"{name}|{load}" for name in NAMES for load in LOADS]
STATUS = '{partitionBackfillOrError(backfillId: "ID") {... on PartitionBackfill {status error {message}}}}'
ADD = (
    'mutation {addDynamicPartition(partitionsDefName: "kgs_workloads", partitionKey: "KEY", repositorySelector: '
    '{repositoryName: "__repository__", repositoryLocationName: "kgs"}) {__typename}}'
)
"""What the button *Add a partition* does."""


@pytest.fixture
def room(tmp_path, monkeypatch):
    monkeypatch.setenv("KGS_EXPERIMENTS", str(tmp_path / "results"))
    config = tmp_path / "kgs.yaml"
    config.write_text(GROUP)
    with dagster_room(tmp_path, config) as room:
        yield room


def loads(room):
    asset = '{assetNodeOrError(assetKey: {path: ["experiments", "workload"]}) {... on AssetNode {partitionKeys}}}'
    return room.ask(asset)["assetNodeOrError"]["partitionKeys"]


def materialized(room):
    """ExperimentRun -> its latest run."""
    found = room.ask(
        '{assetNodeOrError(assetKey: {path: ["experiments", "packing_run"]}) {... on AssetNode '
        "{assetMaterializations {partition runOrError {... on Run {runId}}}}}}"
    )["assetNodeOrError"]["assetMaterializations"]
    return {event["partition"]: event["runOrError"]["runId"] for event in found}


def launch_backfill(room, experiment_runs):
    names = ", ".join(f'"{experiment_run}"' for experiment_run in experiment_runs)
    asset = '{path: ["experiments", "packing_run"]}'
    return room.ask(
        f"mutation {{launchPartitionBackfill(backfillParams: {{assetSelection: [{asset}], partitionNames: [{names}]}}) "
        "{... on LaunchBackfillSuccess {backfillId} ... on PythonError {message}}}"
    )["launchPartitionBackfill"]["backfillId"]


def is_done(room, backfill):
    found = room.ask(STATUS.replace("ID", backfill))["partitionBackfillOrError"]
    assert found["status"] not in ("FAILED", "COMPLETED_FAILED", "CANCELED"), found
    return found["status"] == "COMPLETED_SUCCESS"


def test_a_backfill_of_a_slice_runs_to_its_end(room, tmp_path):
    wait_until(lambda: len(loads(room)) == PUBLISHED, 60, "the published loads are there")
    for load in LOADS:
        room.ask(ADD.replace("KEY", load))
    assert loads(room)[PUBLISHED:] == list(LOADS)
    backfill = launch_backfill(room, RUNS)
    wait_until(lambda: len(materialized(room)) == len(RUNS), DONE_S, "all experiment runs are materialized")
    runs = materialized(room)
    assert set(runs) == set(RUNS)
    assert len(set(runs.values())) == len(NAMES), "a run for each row of the slice"
    results = tmp_path / "results"
    written = {str(path.relative_to(results)) for path in (results / "packing_run").rglob("*") if path.is_file()}
    assert written == {f"packing_run/{load}/{name}.parquet" for name in NAMES for load in LOADS}
    assert ds.dataset(results / "packing_run").count_rows() == len(RUNS) * 11
    wait_until(lambda: is_done(room, backfill), DONE_S, "the backfill is over")
