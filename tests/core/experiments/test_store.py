"""The folder of experiments: what is in it is whole, and comes back as it was."""

import threading

import pytest

from bench.results import load_results
from kgs_core.errors import ConfigError
from kgs_core.experiments import store
from kgs_core.experiments.grid import ExperimentRun, Grid, generated, run_here
from kgs_core.experiments.store import ExperimentFolder, is_generated, stream_of
from kgs_core.lake.files import object_store
from kgs_core.lake.files.stored_path import named_path
from kgs_core.model import TopicPartition
from kgs_core.simulation.comparison import PUBLISHED, summarize
from kgs_core.simulation.latency import LatencySettings
from kgs_core.simulation.replay import Conditions
from kgs_core.simulation.workload import StreamSpec, Workload

SPEC = StreamSpec(10, "half", 1, 6, 12)
CONDITIONS = Conditions(record_latency=True)
RECORDED = Workload("week", 100.0, [{}, {TopicPartition("b", 1): 0.1, TopicPartition("a", 0): 30.0}])


@pytest.fixture
def folder(tmp_path):
    return ExperimentFolder(tmp_path / "lab")


def replays(*names):
    grid = Grid(tuple(ExperimentRun(name, SPEC) for name in names), CONDITIONS)
    return run_here(grid, lambda _done, _total: None)


def test_summaries_are_those_of_all_runs_together(folder):
    found = replays(*PUBLISHED, "kafka:3")
    for one in found:
        folder.save_run(one, CONDITIONS)
    expected = summarize(found, CONDITIONS)
    assert folder.summaries() == expected
    folder.save_summaries(expected)
    assert folder.load_summaries() == expected


def test_without_all_published_algorithms_there_is_no_cbs(folder):
    for one in replays("mwf", "bfd"):
        folder.save_run(one, CONDITIONS)
    assert [one.cbs for one in folder.summaries()] == [None, None]


def test_a_run_holds_the_rows_that_kgs_simulate_writes(folder):
    (one,) = found = replays("kafka:3")
    folder.save_run(one, CONDITIONS)
    assert load_results(folder.run_file(SPEC.key, "kafka:3")) == (found, CONDITIONS)


def test_what_a_killed_run_has_left_half_written_is_not_read(folder):
    (one,) = replays("mwf")
    folder.save_run(one, CONDITIONS)
    (folder.root / "packing_run" / SPEC.key / ".bfd.parquet.0123").write_bytes(b"PAR1")
    assert [summary.name for summary in folder.summaries()] == ["mwf"]


def test_no_result_is_no_summary(folder):
    assert folder.summaries() == []
    with pytest.raises(ConfigError, match="make the summary first"):
        folder.load_summaries()


def test_a_file_of_something_else_is_named(folder):
    path = folder.run_file(SPEC.key, "mwf")
    path.parent.mkdir(parents=True)
    path.write_text("no parquet")
    with pytest.raises(ConfigError, match=r"mwf\.parquet: no rows of an experiment run in it"):
        folder.summaries()


def test_loads_come_back_as_they_were(folder):
    conditions = Conditions(2e6, LatencySettings(150.0, 10.0))
    folder.register(RECORDED, conditions)
    found, same = folder.recorded("week")
    assert (found, same) == (RECORDED, conditions)
    assert list(found.measurements[1]) == list(RECORDED.measurements[1]), "their order decides who reads them in Kafka"
    folder.save_workload(generated(SPEC), conditions)
    assert folder.recorded(SPEC.key)[0].measurements == generated(SPEC).measurements


@pytest.mark.parametrize("key", ["", "../week", "a b", "a|b", ".week", "x" * 101, SPEC.key])
def test_a_name_that_would_lead_elsewhere_is_refused(folder, key):
    with pytest.raises(ConfigError, match="workload"):
        folder.register(Workload(key, 100.0, RECORDED.measurements), CONDITIONS)
    assert not folder.root.exists()


def test_a_load_that_nobody_has_registered_is_reported(folder):
    for key in ("week", "../../etc/passwd"):
        with pytest.raises(ConfigError, match="no load is registered as that"):
            folder.recorded(key)


def test_names_of_generated_loads_are_exact():
    assert stream_of(SPEC.key) == SPEC
    assert is_generated("zero-delta05-seed3")
    assert not is_generated("week")
    for wrong in (
        "zero-delta05-seed03",
        "zero-delta101-seed1",
        "zero-delta05-seed1-p2-t3-n5",
        "zero-delta05-seed1-p0-t0-n5",
    ):
        with pytest.raises(ConfigError, match=wrong):
            stream_of(wrong)


def test_a_store_that_does_not_answer_is_told_in_one_line(monkeypatch):
    def refused(root, options):
        raise OSError("Generic S3 error: 403\n\nDebug source: ...")

    monkeypatch.setattr(object_store, "object_file_system", refused)
    folder = ExperimentFolder(named_path("s3://bucket/lab"))
    asked = (
        folder.summaries,
        folder.load_summaries,
        lambda: folder.recorded("week"),
        lambda: folder.register(RECORDED, CONDITIONS),
        lambda: folder.save_plot("cbs", "<svg/>"),
        lambda: folder.save_summaries([]),
    )
    for ask in asked:
        with pytest.raises(ConfigError, match=r"^s3://bucket/lab.*: generic s3 error: 403") as caught:
            ask()
        assert "\n" not in str(caught.value)


def test_runs_are_read_side_by_side(folder, monkeypatch):
    for one in replays("mwf", "bfd"):
        folder.save_run(one, CONDITIONS)
    both, read = threading.Barrier(2), store.pq.ParquetFile
    monkeypatch.setattr(store.pq, "ParquetFile", lambda file: (both.wait(10), read(file))[1])
    assert [summary.name for summary in folder.summaries()] == ["bfd", "mwf"]
