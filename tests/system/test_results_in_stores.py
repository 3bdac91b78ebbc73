"""Experiments whose results and recorded loads lie in a store of objects: the same bytes as in a folder."""

import dagster as dg
import pytest
from click.testing import CliRunner
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_END_TAG, ASSET_PARTITION_RANGE_START_TAG

from kgs_core.cli.main import cli
from kgs_core.lake.files.object_store import object_file_system
from kgs_core.lake.files.stored_path import named_path
from kgs_dagster.definitions import build_defs
from kgs_dagster.partitions import register
from tests.dagster.results import failure, recorded

LOAD = "uniform-delta05-seed1-p8-t2-n10"
WEEK = '{"time": 0, "speeds": {"a": {"0": 60, "1": 30.5}}}\n{"time": 1, "speeds": {"a": {"0": 70, "1": 40}}}\n'
_PREFIXES = {"s3": "AWS", "azure": "AZURE", "gcs": "GOOGLE"}


@pytest.fixture
def address(object_server, monkeypatch):
    """Of a folder, with its credentials in the environment."""
    storage = object_server.storage("lab")
    for name, value in storage.options.items():
        monkeypatch.setenv(f"{_PREFIXES[object_server.kind]}_{name}" if name == "ALLOW_HTTP" else name, value)
    object_file_system.cache_clear()
    return storage.root


def carry_out(monkeypatch, root):
    """Register a recorded load, replay a slice of loads and algorithms as a backfill does, report; the summary."""
    monkeypatch.setenv("KGS_EXPERIMENTS", f"{root}/results")
    monkeypatch.setenv("KGS_EXPERIMENTS_RECORDINGS", f"{root}/recordings")
    defs = build_defs(groups=[], experiments=True)
    with dg.DagsterInstance.ephemeral() as instance:

        def run(job, **how):
            done = defs.resolve_job_def(job).execute_in_process(instance=instance, raise_on_error=False, **how)
            assert done.success, failure(done)
            return done

        register(instance, [LOAD])
        run("register_workload_job", run_config={"ops": {"register_workload": {"config": {"file": "week.jsonl"}}}})
        tags = {ASSET_PARTITION_RANGE_START_TAG: f"bfd|{LOAD}", ASSET_PARTITION_RANGE_END_TAG: "bfd|week"}
        run("experiments_job", tags=tags)
        return recorded(run("experiments_report_job"))["algorithm_summary"]


def files(root):
    found = [*root.glob("workload/*.parquet"), *root.glob("packing_run/*/[!.]*.parquet")]
    return {str(path).removeprefix(str(root)): path.read_bytes() for path in found}


def test_a_backfill_writes_to_a_store_what_it_writes_to_a_folder(address, tmp_path, monkeypatch):
    found = []
    for root in (named_path(address), tmp_path):
        if root is tmp_path:
            (tmp_path / "recordings").mkdir()
        (root / "recordings" / "week.jsonl").write_bytes(WEEK.encode())
        summary = carry_out(monkeypatch, root)
        assert summary.pop("path") == f"{root}/results/algorithm_summary.parquet"
        found.append((summary, files(root / "results")))
    assert found[0] == found[1]
    runs = {f"/packing_run/{load}/bfd.parquet" for load in (LOAD, "week")}
    assert found[0][1].keys() == {"/workload/week.parquet", *runs}


def test_kgs_simulate_reads_from_a_store_and_writes_to_it(address, tmp_path):
    (named_path(address) / "week.jsonl").write_bytes(WEEK.encode())
    (tmp_path / "week.jsonl").write_text(WEEK)
    for root in (address, tmp_path):
        command = f"simulate --speeds {root}/week.jsonl --capacity 100 --algorithm mwf --results {root}/rows.parquet"
        done = CliRunner().invoke(cli, command.split())
        assert done.exit_code == 0, done.output
    assert (named_path(address) / "rows.parquet").read_bytes() == (tmp_path / "rows.parquet").read_bytes()
    nowhere = CliRunner().invoke(cli, ["simulate", "--speeds", f"{address}/none.jsonl"])
    assert nowhere.exit_code == 2
    assert nowhere.output == f"error: {address}/none.jsonl: no such file: name another file\n"
