"""`kgs capacity` and `python -m bench monitor` as a user runs them."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from confluent_kafka.admin import AdminClient

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.kafka.admin import KafkaAdmin
from tests.system.pipeline import BENCH, KGS, json_values, produce


def run(*arguments: str, program: Sequence[str] = (KGS,)) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*program, *arguments], check=False, capture_output=True, text=True, timeout=200, env=dict(os.environ)
    )


@pytest.fixture
def config(kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path) -> Path:
    tree = {
        "group": topic_prefix.rstrip("."),
        "kafka": {"bootstrap_servers": kafka.bootstrap_servers},
        "lake": {"root": "lake"},
        "topics": [{"pattern": topic_prefix.replace(".", r"\.") + ".*", "start": "latest"}],
        "consumer": {"batch_bytes": 100_000, "wait_time_s": 1.0},
        "monitor": {"window_s": 3.0},
    }
    (tmp_path / "kgs.yaml").write_text(yaml.safe_dump(tree))
    return tmp_path / "kgs.yaml"


@pytest.mark.spark
@pytest.mark.slow(25)
def test_capacity_in_stored_bytes_and_nothing_left_behind(
    kafka: EmbeddedKafka, admin: KafkaAdmin, topic_prefix: str, config: Path
) -> None:
    for name in "ab":
        admin.create_topic(f"{topic_prefix}{name}", 2)
        produce(
            kafka.bootstrap_servers, f"{topic_prefix}{name}", json_values(0, 20_000), **{"compression.type": "gzip"}
        )
    ended = run("capacity", "--config", str(config), "--seconds", "10", "--json")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["saturated"]
    assert (found["partitions"], found["tables"]) == (4, 2)
    counted = [c for c in found["cycles"] if c["counted"]]
    assert len(counted) > 5
    stored, consumed = sum(c["stored_bytes"] for c in counted), sum(c["consumed_bytes"] for c in counted)
    assert stored < 0.6 * consumed  # the log holds them compressed
    assert found["percentiles_bytes_per_s"]["5"] <= found["mode_bytes_per_s"] <= found["percentiles_bytes_per_s"]["95"]
    assert 0 < found["packing"]["consumer_capacity_bytes_per_s"] < found["mode_bytes_per_s"]
    assert [path.name for path in (config.parent / "lake").iterdir()] == []
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})  # held: one that is gone answers nothing
    groups = client.list_consumer_groups().result(30)
    assert [g.group_id for g in groups.valid if g.group_id.startswith(topic_prefix.rstrip("."))] == []


def test_capacity_without_records_says_so(admin: KafkaAdmin, topic_prefix: str, config: Path) -> None:
    admin.create_topic(f"{topic_prefix}a", 1)
    ended = run("capacity", "--config", str(config), "--seconds", "5")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("error: capacity: no backlog")
    assert not (config.parent / "lake").exists()


@pytest.mark.soak
def test_the_accuracy_of_the_monitor(tmp_path: Path) -> None:
    """Within 5 % of what was really written while that is steady; a step up is known before the window is full of it.

    On average: a busy machine reads the log's size and the files' at different moments, which shows in single samples.
    """
    files = {"--json": tmp_path / "accuracy.json", "--svg": tmp_path / "accuracy.svg"}
    code = "from bench.commands.monitor import bench_monitor; bench_monitor()"
    options = [str(part) for pair in files.items() for part in pair]
    subprocess.run([sys.executable, "-c", code, "--window", "5", *options], check=True, env=dict(os.environ))
    cases = {case["name"]: case for case in json.loads(files["--json"].read_text())["cases"]}
    assert len(cases) == 9
    for name, case in cases.items():
        assert case["steady_mean"] < 0.05, name
    for codec in ("none", "lz4", "gzip"):
        assert cases[f"step-up-{codec}"]["settled_s"] < 4.0, codec  # the window has 5 s
    assert ElementTree.parse(files["--svg"]).getroot().tag.endswith("svg")


@pytest.mark.soak
def test_capacity_is_measured_in_each_of_the_papers_conditions(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    found = run("capacity", "--seconds", "2", "--scale", "0.01", "--json", str(figures), program=BENCH)
    assert found.returncode == 0, found.stderr
    conditions = json.loads(figures.read_text())
    assert [(each["name"], each["partitions"], each["tables"]) for each in conditions] == [
        ("test 1", 32, 1),
        ("test 2", 116, 5),
        ("test 3", 144, 5),
    ]
    assert all(each["mode_bytes_per_s"] > 0 for each in conditions)
