"""Commands of `python -m bench` as a user runs them, as small as they go: they measure something of everything."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.system.pipeline import BENCH

pytestmark = [pytest.mark.slow(30), pytest.mark.timeout(600)]
FIGURES = ("mb_per_s", "records_per_s", "batch_ms", "cpu_s_per_gb", "driver_mb", "jvm_mb", "worker_mb")
TINY = ["--sizes", "1", "--runs", "1", "--topics", "2", "--records-mb", "5", "--latency-records", "3"]
TOPICS, HUNG = 40, 2


def bench(folder: Path, *words: str) -> tuple[Any, str]:
    """What a command writes and prints."""
    file = folder / "bench.json"
    command = [*BENCH, *words, "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(file.read_text()) if file.exists() else None, done.stdout


@pytest.mark.soak
@pytest.mark.spark
def test_ingest_prints_and_writes_all_figures(tmp_path: Path) -> None:
    found, said = bench(tmp_path, "ingest", *TINY, "--warm-up", "0", "--no-peer", "--records", "json-100")
    assert "MB/s" in said
    assert "produced -> committed" in said
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
@pytest.mark.spark
def test_a_profile_accounts_for_all_processor_time(tmp_path: Path) -> None:
    written, said = bench(tmp_path, "ingest", "--profile", *TINY[:8])
    assert "CPU s/GB by stage" in said
    found = written["profile"]
    assert {each["kind"] for each in found} == {"json-1000", "raw-1000", "json-100"}
    for each in found:
        assert each["records"] > 0
        assert each["stages"]["parse"] > 0
        assert each["stages"]["Parquet"] > 0
        assert sum(each["stages"].values()) == pytest.approx(each["total"])


@pytest.mark.soak
@pytest.mark.spark
def test_ingest_of_formats_prints_a_line_for_each(tmp_path: Path) -> None:
    _, said = bench(tmp_path, "ingest", "--format", "raw,avro", *TINY[:8])
    assert {line.split()[0] for line in said.splitlines() if " MB " in line} >= {"raw", "avro"}


def test_a_group_is_packed_and_follows_the_step(tmp_path: Path) -> None:
    written, _ = bench(tmp_path, "scale", "--partitions", "40", "--consumers", "4", "--steady", "3")
    (found,) = written["sizes"]
    assert found["readers"] in (3, 4)
    figures = ("first_s", "step_cpu_s", "member_bytes_per_s", "stored_bytes_per_s", "monitor_bytes_per_s")
    assert [name for name in figures if not found[name] > 0] == []


def test_a_reading_knows_all_partitions(tmp_path: Path) -> None:
    found, _ = bench(tmp_path, "readings", "--partitions", "20", "--readings", "2")
    assert [(each["partitions"], each["unknown"]) for each in found] == [(20, 0), (20, 0)]
    assert all(each["seconds"] > 0 and each["cpu_s"] > 0 for each in found)


def test_topics_on_a_slow_lake_are_all_read_and_no_step_is_as_long_as_an_opening_of_all(tmp_path: Path) -> None:
    """Slow tables, and two that hang, end no consumer.

    One after the other they take longer than `--batch-timeout`: 40 x 8 calls x 0.1 s, and the two for ever.
    """
    options = ["--topics", TOPICS, "--hung", HUNG, "--lake-delay-ms", 100, "--rounds", 3, "--seconds", 240]
    found, said = bench(tmp_path, "topics", *map(str, options))
    assert found["first_rows_s"] <= found["all_read_s"], "none waits for the last one"
    assert len(found["rounds_s"]) == 3
    assert f"all {TOPICS - HUNG} topics open" in said
