"""Experiments as assets: a slice gives the figures of `kgs simulate`, the same bytes again, tells what is missing."""

import json
import re

import dagster as dg
import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_END_TAG, ASSET_PARTITION_RANGE_START_TAG

from kgs_core.cli.main import cli
from kgs_core.packing import ALGORITHMS
from kgs_core.simulation.workload import parse_key
from kgs_dagster.assets.experiments import WORKLOAD
from kgs_dagster.definitions import build_defs
from kgs_dagster.experiment_resource import EXPERIMENT_RESOURCE, POOL, ExperimentResource
from kgs_dagster.partitions import front_names, published_keys, register, run_keys, unregistered
from kgs_dagster.sensors.workloads import workloads_sensor
from tests.dagster.results import failure, figures, recorded

LOADS = [f"uniform-delta05-seed{seed}-p8-t2-n10" for seed in (1, 2)]
WEEK = '{"time": 0, "speeds": {"a": {"0": 60, "1": 30.5}}}\n{"time": 1, "speeds": {"a": {"0": 70, "1": 40}}}\n'


class Room:
    """Definitions whose results are in `folder`, and an instance."""

    def __init__(self, instance, folder):
        self.instance = instance
        self.folder = folder

    def job(self, name, experiments=None, **how):
        defs = build_defs({EXPERIMENT_RESOURCE: experiments or ExperimentResource()}, [], experiments=True)
        how = {"instance": self.instance, "raise_on_error": False, **how}
        return defs.resolve_job_def(name).execute_in_process(**how)

    def slice(self, first, last, **how):
        """The experiment runs from `first` to `last` in both dimensions, in one run, as a backfill asks for them."""
        tags = {ASSET_PARTITION_RANGE_START_TAG: first, ASSET_PARTITION_RANGE_END_TAG: last}
        return self.job("experiments_job", tags=tags, **how)

    def register(self, **config):
        return self.job("register_workload_job", run_config={"ops": {"register_workload": {"config": config}}})

    def reports(self):
        """Asset's name -> its figures; and the check whether all is there."""
        done = self.job("experiments_report_job")
        assert done.success
        return recorded(done), done.get_asset_check_evaluations()[0]

    def rows(self):
        return ds.dataset(self.folder / "packing_run").to_table()

    def bytes(self):
        return {path: path.read_bytes() for path in (self.folder / "packing_run").rglob("*.parquet")}


@pytest.fixture
def room(instance, tmp_path, monkeypatch):
    monkeypatch.setenv("KGS_EXPERIMENTS", str(tmp_path / "results"))
    monkeypatch.setenv("KGS_EXPERIMENTS_RECORDINGS", str(tmp_path))
    register(instance, LOADS)
    return Room(instance, tmp_path / "results")


def why(done):
    """What a run failed of."""
    return failure(done)[1]


def simulated(options):
    """What `kgs simulate` says of the same loads, by algorithm, and its front."""
    command = f"simulate {options} --delta 5 --partitions 8 --topics 2 --steps 10 --json"
    told = json.loads(CliRunner().invoke(cli, command.split()).stdout)
    return {each["algorithm"]: each for each in told["summary"]}, told["fronts"][0]["front"]


def assert_same(rows, expected, names):
    for row in rows:
        for name in names:
            mean = expected[row["algorithm"]][name]["mean"]
            assert row[name] == pytest.approx(mean, abs=1e-5), (row["algorithm"], name)


@pytest.fixture
def week(tmp_path):
    """A file of a recorded load."""
    file = tmp_path / "week.jsonl"
    file.write_text(WEEK)
    return file


def shown(plot):
    """The title of a plot inline."""
    return re.fullmatch(r"!\[(.*)\]\(data:image/svg\+xml;base64,[A-Za-z0-9+/=]+\)", plot)[1]


def test_a_slice_is_one_run_with_rows_and_figures_of_each_cell(room):
    done = room.slice(f"mwf|{LOADS[0]}", f"mbf|{LOADS[1]}")
    assert done.success
    events = {event.partition: figures(event.materialization) for event in done.get_asset_materialization_events()}
    assert set(events) == {f"{name}|{load}" for name in ("mwf", "mbf") for load in LOADS}
    rows = room.rows()
    assert rows.num_rows == 4 * 11
    assert set(rows["algorithm"].to_pylist()) == {"mwf", "mbf"}
    for key in run_keys(list(events)):
        mine = rows.filter((ds.field("algorithm") == key.name) & (ds.field("workload") == key.workload))
        found = events[key.partition]
        assert found["rscore_total"] == pytest.approx(sum(mine["rscore"].to_pylist()), abs=1e-5)
        assert found["moved_partitions"] == sum(mine["moved"].to_pylist())
        assert found["mean_consumers"] == pytest.approx(sum(mine["consumers"].to_pylist()) / 11, abs=1e-5)
        assert found["mean_latency_s"] > 0


def test_repeating_a_slice_gives_the_same_bytes(room):
    assert room.slice(f"nf|{LOADS[0]}", f"nf|{LOADS[1]}").success
    assert room.job("experiments_job", partition_key=f"kafka:15|{LOADS[0]}").success
    before = room.bytes()
    assert len(before) == 3
    assert room.job("experiments_job", partition_key=f"nf|{LOADS[1]}").success
    assert room.job("experiments_job", partition_key=f"kafka:15|{LOADS[0]}").success
    assert room.bytes() == before


def test_the_summary_has_the_figures_of_kgs_simulate(room):
    packers = [*ALGORITHMS]
    assert room.slice(f"{packers[0]}|{LOADS[0]}", f"{packers[-1]}|{LOADS[1]}").success
    assert room.slice(f"keda|{LOADS[0]}", f"keda|{LOADS[1]}").success
    reports, complete = room.reports()
    assert complete.passed
    expected, front = simulated("--algorithm all --seeds 2 --latency --baseline keda")
    found = reports["algorithm_summary"]["summary"]
    assert {row["algorithm"] for row in found} >= {*packers, "keda"}
    assert {row["seeds"] for row in found} == {2}
    assert_same(found, expected, found[0].keys() - {"load", "algorithm", "seeds"})
    assert {*reports["pareto_front"]["fronts"][0]["front"].split(", ")} == {*front}


def test_the_front_of_the_search_is_that_of_kgs_simulate(room):
    """CBS takes its minimum over the twelve published ones, though the search needs fewer consumers here and there."""
    assert room.slice(f"nf|{LOADS[0]}", f"search@0.3|{LOADS[0]}").success
    reports, complete = room.reports()
    assert complete.passed
    expected, front = simulated("--algorithm all --front")
    found = reports["algorithm_summary"]["summary"]
    assert [row["algorithm"] for row in found] == [*ALGORITHMS, *front_names()]
    assert_same(found, expected, ("cbs", "average_rscore", "mean_consumers"))
    assert {*reports["pareto_front"]["fronts"][0]["front"].split(", ")} == {*front}
    assert [name for name in front if "@" in name]
    drawn = (room.folder / "pareto_front.svg").read_text()
    assert [name for name in front_names() if f">{name}</text>" not in drawn] == []
    files = {path.stem for path in (room.folder / "packing_run" / LOADS[0]).glob("*.parquet")}
    assert files == {*ALGORITHMS, *front_names()}
    assert set(room.rows()["algorithm"].to_pylist()) == files


def test_plots_are_small_inline_and_whole_as_files(room):
    for name in ("mwf", "bfd", "kafka:20"):
        assert room.slice(f"{name}|{LOADS[0]}", f"{name}|{LOADS[1]}").success
    reports, _ = room.reports()
    plot, drawn = reports["pareto_front"]["plot"], (room.folder / "pareto_front.svg").read_text()
    assert len(plot) <= 20_000
    assert shown(plot).startswith("uniform-delta05-p8-t2-n10")
    assert ">mwf</text>" in drawn
    assert ">kafka:20</text>" not in drawn, "a baseline packs nothing"


def test_many_loads_make_several_plots_of_which_none_is_large(room):
    loads = [f"{start}-delta{delta:02d}-seed1-p8-t2-n2" for start in ("uniform", "full") for delta in range(14)]
    register(room.instance, loads)
    assert room.slice(f"nf|{loads[0]}", f"bf|{loads[-1]}").success
    front = room.reports()[0]["pareto_front"]
    plots = [value for key, value in front.items() if re.fullmatch(r"plot_\d", key)]
    assert [len(plot) <= 20_000 for plot in plots] == [True] * 4
    assert shown(plots[0]) == "uniform-delta00-p8-t2-n2"
    assert re.fullmatch(r"\d+ of 28 panels are in the file only", front["plots_left_out"])
    assert (room.folder / "pareto_front.svg").read_text().count("mean Rscore") == 28


def test_what_is_missing_is_reported_and_counts_as_nothing_nowhere(room):
    assert room.slice(f"mwf|{LOADS[0]}", f"mwf|{LOADS[1]}").success
    assert room.job("experiments_job", partition_key=f"bfd|{LOADS[0]}").success
    reports, complete = room.reports()
    assert not complete.passed
    assert complete.metadata["missing"].value == f"1 missing: bfd on {LOADS[1]}"
    summary = reports["algorithm_summary"]
    assert summary["missing"] == [{"algorithm": "bfd", "workload": LOADS[1]}]
    assert summary["without_cbs"] == ", ".join(LOADS), "nobody can say what the best of twelve needs"
    assert {row["cbs"] for row in summary["summary"]} == {None}
    (front,) = reports["pareto_front"]["fronts"]
    assert front["seeds"] == 1, "seeds differ much: compared is what both have replayed"
    assert reports["pareto_front"]["left_out"] == f"- mwf on {LOADS[1]}"


def test_without_runs_there_is_no_report_and_without_latency_none_is_known(room):
    assert "run packing_run first" in why(room.job("experiments_report_job"))
    experiments = ExperimentResource(latency=False)
    assert room.job("experiments_job", experiments, partition_key=f"mwf|{LOADS[0]}").success
    reports, _ = room.reports()
    assert reports["algorithm_summary"]["summary"][0]["p99_latency_s"] is None
    assert shown(reports["pareto_front"]["plot"])


def test_a_recorded_load_is_registered_once_kept_and_packed(room, week):
    for _ in range(2):
        assert room.register(file=str(week), capacity=100).success, "the same again is no mistake"
    (told,) = room.instance.fetch_materializations(WORKLOAD, 9).records
    assert (told.partition_key, told.asset_materialization.metadata["is_recorded"].value) == ("week", True)
    week.write_text(WEEK.replace("70", "71"))
    assert "another load has that name" in why(room.register(file=str(week), capacity=100))
    week.unlink()
    assert room.job("experiments_job", partition_key="mwf|week").success
    assert room.rows()["load"].to_pylist() == pytest.approx([0.905, 1.1])
    assert room.rows()["consumers"].to_pylist() == [1, 2]
    defs = build_defs(groups=[], experiments=True)
    done = dg.materialize([defs.resolve_assets_def(WORKLOAD)], partition_key="week", instance=room.instance)
    assert done.success, why(done)
    found = recorded(done)["workload"]
    assert (found["max_load"], found["is_recorded"]) == (pytest.approx(1.1), True)


def test_a_wrong_speed_is_named_by_line_and_partition(room, week):
    week.write_text(WEEK.replace("30.5", "NaN"))
    assert "week.jsonl: line 1: a:1: nan" in why(room.register(file=str(week)))
    assert unregistered(room.instance, ["week"]) == ["week"]
    assert not (room.folder / "workload").exists()


def test_a_partition_without_a_load_is_reported_before_anything_runs(room):
    register(room.instance, ["typo", "zero-delta5-seed1"])
    problem = why(room.slice(f"mwf|{LOADS[1]}", "mwf|zero-delta5-seed1"))
    assert "workload 'typo': no load is registered as that" in problem
    assert "workload 'zero-delta5-seed1'" in problem
    assert room.bytes() == {}


def test_the_published_loads_are_registered_without_any_preparation(instance):
    context = dg.build_sensor_context(instance=instance)
    (request,) = workloads_sensor()(context).dynamic_partitions_requests
    assert request.partition_keys == published_keys()
    assert len(request.partition_keys) == 4 * 6 * 3
    assert all(parse_key(key).key == key for key in request.partition_keys)
    register(instance, request.partition_keys)
    assert workloads_sensor()(context).skip_message == "all published loads are there"


def test_the_pool_has_its_limit_before_the_first_run(local_instance):
    """Dagster would launch all runs that are queued when a pool is first used."""
    workloads_sensor()(dg.build_sensor_context(instance=local_instance))
    (pool,) = local_instance.event_log_storage.get_pool_limits()
    assert (pool.name, pool.limit) == (POOL, 2)
