"""`kgs plan`: what it prints, what it refuses, and that it always prints the same."""

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from kgs_core.api import plans
from kgs_core.packing import ALGORITHMS, FRONT, setting_name
from tests.configuration import YAML, text_of

ROOT = Path(__file__).parents[4]


@pytest.fixture
def recorded(here):
    """Two measurements of one topic, of which the second counts."""

    def write(*speeds, name="speeds.jsonl"):
        last = {str(n): speed for n, speed in enumerate(speeds)}
        lines = [{"time": 1, "speeds": {"t": {"0": 7}}}, {"time": 2, "speeds": {"t": last}}]
        (here / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        return name

    return write


@pytest.fixture
def current(here):
    def write(**consumers):
        (here / "current.json").write_text(json.dumps({"t": {name[1:]: c for name, c in consumers.items()}}))
        return "current.json"

    return write


def test_json_of_a_first_plan(kgs_plan, recorded):
    result = kgs_plan("--from", recorded(60, 50, 40), "--capacity", 100, "--algorithm", "mwf", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert found.pop("learnt")["source"] == "configured"
    assert found == {
        "algorithm": "mwf",
        "consumers": 2,
        "rscore": 0.0,
        "assignment": {"t": {"0": 1, "1": 2, "2": 2}},
        "moves": [],
        "load": {"1": 60.0, "2": 90.0},
        "overloaded": [],
        "alternatives": [],
        "choice": "",
        "held_back": "",
        "cross_zone_bytes_per_s": None,
    }


def test_what_was_weighed_is_shown(kgs_plan, recorded, here):
    current = here / "now.json"
    current.write_text(json.dumps({"t": {str(n): 1 + n // 2 for n in range(8)}}))
    speeds = recorded(60, 41, 55, 40, 50, 50, 20, 20)
    arguments = ("--from", speeds, "--current", current, "--capacity", 100, "--json")
    found = json.loads(kgs_plan(*arguments).stdout)
    assert found["choice"] == "one consumer is worth moving 130% of a consumer's capacity"
    assert found["alternatives"] == [], "nobody has asked"
    asked = json.loads(kgs_plan(*arguments, "--compare", "all").stdout)["alternatives"]
    others = [name for name in ALGORITHMS if name != "search"]
    assert [o["algorithm"] for o in asked] == [*others, *(setting_name("search", w) for w in FRONT if w != 1.3)]
    (here / "kgs.yaml").write_text(YAML + "packing: {consumer_weight: fewest}\n")
    assert json.loads(kgs_plan(*arguments).stdout)["choice"] == "fewest consumers"


def test_what_is_held_back_is_shown(kgs_plan, recorded, here):
    """One consumer less, for 0.3 of a consumer's capacity; nothing forces that."""
    (here / "now.json").write_text(json.dumps({"t": {"0": 1, "1": 1, "2": 2}}))
    arguments = ("--from", recorded(30, 30, 30), "--current", "now.json", "--capacity", 100, "--algorithm", "mwf")
    said = "held back: 0.3 of at most 0.25 Rscore an hour (0.0 moved, 0.3 to move)"
    for budget, expected in (("0.25", said), ("0.3", ""), ("null", "")):
        (here / "kgs.yaml").write_text(YAML + f"packing: {{max_rscore_per_hour: {budget}}}\n")
        assert json.loads(kgs_plan(*arguments, "--json").stdout)["held_back"] == expected
        assert (said in kgs_plan(*arguments).stdout.splitlines()) == bool(expected)
    (here / "kgs.yaml").write_text(YAML + "packing: {max_rscore_per_hour: 0}\n")
    forced = ("--from", recorded(100, 100, 10), *arguments[2:])
    found = json.loads(kgs_plan(*forced, "--json").stdout)
    assert (found["held_back"], found["rscore"]) == ("", 1.0), "overload is cured whatever it moves"


def test_tables(kgs_plan, recorded, current):
    result = kgs_plan(
        "--from", recorded(80, 40, 30, 250), "--capacity", 100, "--current", current(p0=1, p1=1, p2=2, p9=2),
        "--algorithm", "mwf",
    )  # fmt: skip
    assert result.exit_code == 0
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines[:3] == [
        "mwf: 3 consumers of 100.00 B/s for 4 partitions, Rscore 0.400, 1 to move",
        "create: 3, 4",
        "spare: 4",
    ]
    assert "as configured" in lines.pop(3)
    assert lines[3] == "left out: 1 partition of the current assignment without speed"
    assert [line.split()[:3] for line in lines[4:8]] == [
        ["consumer", "partitions", "B/s"], ["1", "1", "80.00"], ["2", "2", "70.00"], ["3", "1", "250.00"],
    ]  # fmt: skip
    assert lines[7].endswith("new, above capacity")
    assert lines[8:10] == ["partition  from  to    B/s", "t:1           1   2  40.00"]
    assert lines[10].startswith("! t:3 at 250.00 B/s is faster than a consumer: give its topic 10 partitions")


def test_the_comparison_has_a_row_for_each_algorithm(kgs_plan, recorded):
    arguments = ("--from", recorded(60, 50, 40), "--capacity", 100, "--compare", "all", "--algorithm", "mwf")
    rows = kgs_plan(*arguments).stdout.splitlines()[-len(ALGORITHMS) :]
    assert [row.split()[0] for row in rows] == list(ALGORITHMS)
    assert [row.split()[0] for row in rows if "this plan" in row] == ["mwf"]
    others = json.loads(kgs_plan(*arguments, "--json").stdout)["alternatives"]
    assert [other["algorithm"] for other in others] == [name for name in ALGORITHMS if name != "mwf"]


def test_long_tables_are_cut(kgs_plan, recorded):
    result = kgs_plan("--from", recorded(*[90] * 60), "--capacity", 100, "--algorithm", "mwf")
    assert "20 more (--json has all)" in result.stdout
    assert len(result.stdout.splitlines()) < 60


def test_capacity_algorithm_and_bounds_come_from_the_configuration(kgs_plan, recorded, here):
    packing = "packing: {packing_capacity_bytes_per_s: 50, algorithm: bfd, max_consumers: 2}\n"
    (here / "kgs.yaml").write_text(YAML + packing)
    found = json.loads(kgs_plan("--from", recorded(40, 40, 40), "--json").stdout)
    assert (found["algorithm"], found["consumers"]) == ("bfd", 2)
    assert found["overloaded"] == [
        {"consumer": 1, "bytes_per_s": 80.0, "cure": {"consumers": 3, "capacity_bytes_per_s": 80.0}}
    ]
    (here / "other.yaml").write_text(YAML + packing)
    (here / "kgs.yaml").unlink()
    arguments = ("--config", "other.yaml", "--capacity", 90, "--algorithm", "wfd", "--json")
    found = json.loads(kgs_plan("--from", recorded(40, 40, 40), *arguments).stdout)
    assert (found["algorithm"], found["consumers"], found["overloaded"]) == ("wfd", 2, [])


def test_without_a_capacity_it_goes_by_a_measurement_of_this_machine_and_says_so(kgs_plan, recorded, monkeypatch):
    """The default was so low that a load of 10 MB/s took twelve consumers."""
    monkeypatch.setattr(plans, "first_flat_out", lambda: 46e6)
    speeds = recorded(*[800_000] * 12)
    found = json.loads(kgs_plan("--from", speeds, "--json").stdout)
    assert (found["consumers"], found["learnt"]["source"]) == (1, "first")
    assert found["learnt"]["in_use"]["packing_capacity_bytes_per_s"] == 30e6
    assert "consumer_capacity 40 MB/s by a short measurement" in kgs_plan("--from", speeds).stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("--capacity", "100"),
            "plan: nothing to measure: give a configuration (--config; kgs.yaml does not exist) or speeds (--from)",
        ),
        (("--from", ".", "--capacity", "1"), ".: is a directory: name another file"),
        (("--from", "latin", "--capacity", "1"), "latin: byte 1 is not UTF-8: save it as UTF-8 text"),
        (("--from", "good", "--capacity", "1", "--current", "bad"), "bad: t: partition 'x'"),
    ],
)
def test_what_cannot_be_is_one_line_and_status_2(kgs_plan, recorded, here, arguments, problem):
    recorded(60, name="good")
    (here / "bad").write_text('{"t": {"x": 1}}')
    (here / "latin").write_bytes(b"{\xe4")
    result = kgs_plan(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {problem}")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


@pytest.mark.slow
def test_the_same_bytes_under_every_hash_seed(here):
    """Three processes, twelve algorithms, speeds that come in another order each time."""
    random = Random(1)
    speeds = [(f"{topic}-topic", n, random.randint(0, 80)) for topic in "abc" for n in range(40)]
    printed = set()
    for seed in "012":
        tree = {}
        for topic, partition, speed in random.sample(speeds, len(speeds)):
            tree.setdefault(topic, {})[str(partition)] = speed
        (here / "speeds.jsonl").write_text(json.dumps({"time": 1, "speeds": tree}))
        (here / "current.json").write_text(json.dumps({t: {n: 1 + int(n) % 9 for n in tree[t]} for t in tree}))
        command = "from kgs_core.cli.main import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", command, "plan", "--from", "speeds.jsonl", "--current", "current.json",
             "--capacity", "100", "--compare", "all", "--algorithm", "bf", "--json"],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            cwd=here, capture_output=True, check=True,
        )  # fmt: skip
        printed.add(done.stdout)
    assert len(printed) == 1


def test_a_bar_is_as_long_as_the_load_is_of_the_capacity(kgs_plan, recorded):
    """In a file, where no colour tells the full part from the empty one."""
    lines = kgs_plan("--from", recorded(100, 50, 0.001), "--capacity", 100, "--algorithm", "mwf").stdout.splitlines()
    bars = [line.count("█") for line in lines if "░" in line or "█" in line]
    assert sorted(bars) == [12, 24]
    alone = kgs_plan("--from", recorded(0.001), "--capacity", 100).stdout
    assert (alone.count("█"), alone.count("░")) == (0, 24)


@pytest.mark.parametrize("columns", [None, "80", "40", "nonsense"])
def test_words_and_figures_stay_whole_however_narrow_it_is(kgs_plan, recorded, monkeypatch, columns):
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    shown = kgs_plan("--from", recorded(60, 50, 40), "--capacity", 100, "--compare", "all").stdout
    words = set(shown.split())
    assert {"consumers", "Rscore", "moved", "partitions", "algorithm", "search@fewest", "100.00"} <= words
    widest = max(len(line.rstrip()) for line in shown.splitlines())
    assert widest <= (80 if columns == "80" else 120)


def test_two_rules_that_disagree_about_one_table_are_refused_before_anything_is_measured(kgs_plan, here):
    """As `kgs consume` refuses them; Kafka is not even asked."""
    topics = "[{topic: a, table: one}, {topic: b, table: one, format: string}]"
    (here / "kgs.yaml").write_text(text_of(topics=topics))
    result = kgs_plan()
    assert result.exit_code == 2
    assert "topics[0]" in result.stderr
    assert "topics[1]" in result.stderr


def test_what_waits_with_forced_only_is_said(kgs_plan, recorded, current, here):
    (here / "kgs.yaml").write_text(YAML + "packing: {apply: forced_only, packing_capacity_bytes_per_s: 100}\n")
    arguments = ("--config", "kgs.yaml", "--from", recorded(20, 20), "--current", current(p0=1, p1=2))
    assert "changes that are not forced wait for `kgs plan --apply`" in kgs_plan(*arguments).stdout
