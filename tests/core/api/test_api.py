"""The face for programs: what it takes, what it gives, what it refuses, and that its page is true."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import kgs_core as kgs
from kgs_core.cli.main import cli
from kgs_core.errors import ConfigError, MeasurementError
from kgs_core.model import TopicPartition
from kgs_core.monitor.speeds.recorded import RecordedMeasurement, parse_assignment
from kgs_core.simulation.recorded import json_lines

PAGE = (Path(__file__).parents[3] / "docs/python.md").read_text()
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
A, B, C = ("a", 0), ("a", 1), ("b", 0)
SPEEDS = {A: 40.0, B: 90.0, C: 70.0}


@pytest.mark.usefixtures("algorithms_kept")
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_programs_of_the_page_run(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(PROGRAMS[number], f"docs/python.md, program {number}", "exec"), {})


def test_the_import_loads_nothing_heavy():
    """Real, since this process has loaded all of it long ago."""
    heavy = {"numpy", "pandas", "numba", "pyspark", "matplotlib", "pyarrow", "deltalake", "confluent_kafka", "dagster"}
    program = f"import kgs_core as kgs, sys; kgs.pack; print({heavy} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_every_name_of_the_face_is_there():
    assert all(getattr(kgs, name).__module__.startswith("kgs_core.api.") for name in kgs.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        kgs.nothing  # noqa: B018 - asked for


@pytest.mark.parametrize("algorithm", ["mwf", "bfd", "keep@0.9", "search", "search@fewest"])
def test_a_packing_holds_every_partition_within_the_capacity(algorithm):
    found = kgs.pack(SPEEDS, capacity=120, algorithm=algorithm)
    assert found.assignment.keys() == SPEEDS.keys()
    assert sum(found.loads.values()) == 200
    assert max(found.loads.values()) <= 120
    assert (len(found.loads), found.moves, found.rscore, found.overloaded) == (2, (), 0.0, ())


def test_what_moves_has_its_price():
    found = kgs.pack({A: 40, B: 90, C: 70}, capacity=120, current={A: 1, B: 1, C: 2}, algorithm="search@fewest")
    assert {each: found.assignment[each] for each in found.moves} != {}
    assert found.rscore == pytest.approx(sum(SPEEDS[each] for each in found.moves) / 120)
    assert found == kgs.pack({C: 70, B: 90, A: 40}, capacity=120, current={C: 2, A: 1, B: 1}, algorithm="search@fewest")


def test_who_is_overloaded_is_reported():
    assert kgs.pack(SPEEDS, capacity=80, algorithm="bfd").overloaded != ()
    found = kgs.pack(SPEEDS, capacity=120, algorithm="bfd", max_consumers=1)
    assert (found.overloaded, found.loads) == ((1,), {1: 200.0})


def test_a_series_is_taken_and_a_frame_is_given():
    index = pd.MultiIndex.from_tuples([A, B, C])
    found = kgs.pack(pd.Series([40.0, 90.0, 70.0], index), capacity=120, current=pd.Series([1, 1, 2], index))
    assert found == kgs.pack(SPEEDS, capacity=120, current={A: 1, B: 1, C: 2})
    frame = found.to_frame()
    assert frame["consumer"].to_dict() == found.assignment
    assert frame["bytes_per_s"].sum() == 200
    assert [each for each in frame.index if frame.loc[each, "moves"]] == list(found.moves)
    assert "Rscore" in found._repr_html_()


def test_what_is_given_as_json_is_what_the_command_reads():
    found = kgs.pack(SPEEDS, capacity=120)
    nested = json.loads(json.dumps(found.to_dict(), allow_nan=False))["assignment"]
    assert parse_assignment(json.dumps(nested), "file") == found.assignment


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"speeds": {"a:0": 1.0}}, ConfigError, "speeds: 'a:0': write a partition as (topic, number)"),
        ({"speeds": {A: -1.0}}, MeasurementError, "a:0: write speed -1.0"),
        ({"speeds": {A: float("nan")}}, MeasurementError, "a:0: write speed nan"),
        ({"speeds": SPEEDS, "capacity": 0}, MeasurementError, "capacity 0"),
        ({"speeds": SPEEDS, "capacity": "2MB"}, ConfigError, "capacity '2MB': give a number"),
        ({"speeds": SPEEDS, "algorithm": "best"}, ConfigError, "algorithm 'best': use one of nf, ff"),
        ({"speeds": SPEEDS, "current": {("a",): 1}}, ConfigError, "current: ('a',)"),
    ],
)
def test_what_cannot_be_packed_is_named(wrong, error, words):
    with pytest.raises(error, match=re.escape(words)):
        kgs.pack(**wrong)


def test_figures_are_those_of_the_command():
    found = kgs.simulate(
        kgs.stream(partitions=12, steps=15, delta=20),
        algorithms=["mwf", "search@1.3"],
        baselines=["kafka:8"],
        latency=True,
        cbs=True,
    )
    options = "--partitions 12 --steps 15 --delta 20 --algorithm mwf,search@1.3 --baseline kafka:8 --latency --json"
    result = CliRunner().invoke(cli, ["simulate", *options.split()])
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout) == found.to_dict()
    frame, told = found.to_frame(), found.to_dict()["results"]
    assert [each["algorithm"] for each in told] == list(frame.index)
    for each in told:
        row = frame.loc[each["algorithm"]]
        for figure in ("cbs", "average_rscore", "mean_consumers", "p99_latency_s"):
            assert round(row[figure], 9) == each[figure], figure


def test_seeds_are_streams_of_their_own_and_means_are_over_them():
    one, two = (kgs.simulate(kgs.stream(partitions=8, steps=9, seed=s), algorithms=["mwf"]).to_frame() for s in (3, 4))
    both = kgs.simulate(kgs.stream(partitions=8, steps=9, seed=3), algorithms=["mwf"], seeds=2).to_frame()
    assert len(both) == 1
    mean = (one["average_rscore"].item() + two["average_rscore"].item()) / 2
    assert both["average_rscore"].item() == pytest.approx(mean)


def test_a_recorded_load_a_list_and_a_file_are_the_same(tmp_path):
    file = tmp_path / "week.jsonl"
    measurements = [{TopicPartition(*each): speed + n for each, speed in SPEEDS.items()} for n in range(5)]
    file.write_text(json_lines(RecordedMeasurement(n, speeds) for n, speeds in enumerate(measurements)))
    read = kgs.read_speeds(file, capacity=120)
    frames = [
        kgs.simulate(load, algorithms=["mwf", "keep"], capacity=capacity).to_frame().drop(columns="load")
        for load, capacity in ((measurements, 120), (file, 120), (str(file), 120), (read, None))
    ]
    for frame in frames[1:]:
        pd.testing.assert_frame_equal(frame, frames[0])


def test_a_comparison_is_drawn_and_shown(tmp_path):
    found = kgs.simulate([SPEEDS, {**SPEEDS, A: 80.0}], algorithms=["mwf", "bfd"], capacity=120, latency=True)
    assert set(found.front()) <= {"mwf", "bfd"}
    found.plot().save(tmp_path / "front.svg")
    drawn = (tmp_path / "front.svg").read_text()
    assert drawn == found.plot()._repr_svg_()
    assert drawn.startswith("<svg")
    assert "the bill" in drawn
    assert "measurement" in drawn, "consumers over time"
    found.plot().save(tmp_path / "front.PNG")
    assert (tmp_path / "front.PNG").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match=r"front\.pdf: name a file that ends in \.svg or \.png"):
        found.plot().save(tmp_path / "front.pdf")
    assert "mwf" in found._repr_html_()
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"load": []}, "load: has no measurement"),
        ({"load": [{A: -1.0}]}, "load: measurement 0: a:0: -1: must be 0 or greater"),
        ({"load": [SPEEDS], "algorithms": ["best"]}, "'best': write an algorithm"),
        ({"load": [SPEEDS], "baselines": ["kafka:0"]}, "'kafka:0'"),
        ({"load": [SPEEDS], "seeds": 2}, "a recorded load has no seeds"),
        ({"load": "nowhere.jsonl"}, "nowhere.jsonl: no such file"),
        ({"load": kgs.stream(partitions=2, steps=1), "capacity": 5.0}, "capacity 5: the load has its own, 100"),
    ],
)
def test_what_cannot_be_replayed_is_named(wrong, words):
    with pytest.raises(ConfigError, match=re.escape(words)):
        kgs.simulate(**wrong)
