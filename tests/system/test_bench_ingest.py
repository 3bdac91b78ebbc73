"""`python -m bench ingest`, as small as it goes: it measures something of everything."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.system.pipeline import BENCH

pytestmark = [pytest.mark.spark, pytest.mark.slow(50), pytest.mark.timeout(600)]
FIGURES = ("mb_per_s", "records_per_s", "batch_ms", "cpu_s_per_gb", "driver_mb", "jvm_mb", "worker_mb")
TINY = ["--sizes", "1", "--runs", "1", "--topics", "2", "--records-mb", "5", "--latency-records", "3"]


def test_a_tiny_run_prints_and_writes_all_figures(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    command = [*BENCH, "ingest", *TINY, "--warm-up", "0", "--no-peer", "--records", "json-100", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "MB/s" in done.stdout
    assert "produced -> committed" in done.stdout
    found = json.loads(file.read_text())
    assert [each["variant"] for each in found["ingest"]] == ["arrow", "dataframe"]
    for each in found["ingest"]:
        assert [name for name in FIGURES if not each[name]["median"] > 0] == []
    assert all(each["records"] == 3 and 0 < each["p50_ms"] <= each["p99_ms"] for each in found["latency"])
    assert all(0 < each["session_s"] < each["first_commit_s"] for each in found["start_up"])
    assert [ratio["to"] for ratio in found["ratios"]] == ["dataframe"]
    assert found["plan"]["records"] == "json-100"
    assert found["machine"]["spark"]
    assert found["machine"]["kafka"]


@pytest.mark.soak
def test_a_tiny_profile_accounts_for_all_processor_time(tmp_path: Path) -> None:
    file = tmp_path / "profile.json"
    command = [*BENCH, "ingest", "--profile", *TINY[:8], "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "CPU s/GB by stage" in done.stdout
    found = json.loads(file.read_text())["profile"]
    assert {each["kind"] for each in found} == {"json-1000", "raw-1000", "json-100"}
    for each in found:
        assert each["records"] > 0
        assert each["stages"]["parse"] > 0
        assert each["stages"]["Parquet"] > 0
        assert sum(each["stages"].values()) == pytest.approx(each["total"])


@pytest.mark.soak
def test_a_tiny_run_of_formats_prints_a_line_for_each(tmp_path: Path) -> None:
    command = [*BENCH, "ingest", "--format", "raw,avro", *TINY[:8]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    assert {line.split()[0] for line in done.stdout.splitlines() if " MB " in line} >= {"raw", "avro"}
