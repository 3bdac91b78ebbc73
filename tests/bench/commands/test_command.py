"""What `bench ingest` takes and prints."""

import signal
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.__main__ import bench_group
from bench.commands.report import bench_report, formats_report, profile_report
from bench.figures import BenchResult, Latency, Pass, StartTimes
from bench.ingest_profile import STAGES, ProfileResult, StageTimes
from tests.rendered import lines_of


def shown(result, report=bench_report):
    return "\n".join(lines_of(report(result), 140))


def test_report_has_a_line_for_each_size_and_variant():
    rss = {"driver": 1e8, "jvm": 4e8, "worker": 5e8}
    passes = [
        Pass(variant, size, run, 1.0, 1000 * run, int(speed * 1e6), [0.1], 0.5, rss, {"commit": 0.02})
        for size in (5.0, 16.0)
        for variant, speed in (("arrow", 90.0), ("dataframe", 30.0))
        for run in (1, 2)
    ]
    result = BenchResult({"cores": 2}, {}, passes, [Latency("arrow", [0.0284])], [StartTimes("arrow", 7.0, 9.5)])
    text = shown(result)
    assert [line.split()[:5] for line in text.splitlines() if line.startswith("16 MB")][:2] == [
        ["16", "MB", "arrow", "90.0", "(90.0-90.0)"],
        ["16", "MB", "dataframe", "30.0", "(30.0-30.0)"],
    ]
    assert "3.00 (3.00-3.00)" in text
    assert "28.4" in text
    assert "commit 20" in text


def test_profiles_and_formats_have_a_line_for_each_kind_and_size():
    runs = [
        StageTimes("json-1000", size, run, 1000, 90.0, 6.0 + run, dict.fromkeys(STAGES, 1.0), 978_000)
        for size in (16.0, 5.0)
        for run in (1, 2)
    ]
    lines = [line.split() for line in shown(ProfileResult({"cores": 2}, {}, runs), profile_report).splitlines()]
    assert ["json-1000", "5", "MB", "7.50", "(7.00-8.00)"] in [line[:5] for line in lines]
    assert ["json-1000", "16", "MB", "7.50", "(7.00-8.00)"] in [line[:5] for line in lines]
    formats = [
        StageTimes(name, 5.0, 1, 1000, speed, 2.0, {"parse": 0.5}, size * 1000)
        for name, speed, size in (("json", 100.0, 1000), ("avro", 50.0, 500))
    ]
    lines = [line.split() for line in shown(ProfileResult({}, {}, formats), formats_report).splitlines()]
    assert ["avro", "5", "MB", "500", "50.0", "100,000", "2.00", "0.50", "1.00"] in lines
    assert ["json", "5", "MB", "1000", "100", "100,000", "2.00", "0.50", "2.00"] in lines


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_benchmark_and_its_folder(monkeypatch, number):
    """SIGINT also where a shell has it ignored, as for all that `&` starts."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGTERM, signal.SIGINT)}
    made = []

    def run():
        with tempfile.TemporaryDirectory() as folder:
            made.append(Path(folder))
            signal.raise_signal(number)
        raise AssertionError("it went on")

    monkeypatch.setattr(bench_group.commands["readings"], "callback", run)
    monkeypatch.setattr(bench_group.commands["readings"], "params", [])
    try:
        result = CliRunner().invoke(bench_group, ["readings"])
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert (result.exit_code, result.output.strip()) == (1, "Aborted!")
    assert [folder.exists() for folder in made] == [False]
