"""`kgs simulate`: what it prints and writes, what it refuses, and that it always prints the same."""

import json
import xml.etree.ElementTree as ET
from random import Random

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from bench.results import load_results
from kgs_core.cli.main import cli
from kgs_core.packing import ALGORITHMS
from kgs_core.simulation.baselines import baseline_help
from kgs_core.system import files

SMALL = ("--partitions", 20, "--steps", 8)
KEYS = {
    "algorithm", "delta", "start", "seed", "cbs", "average_rscore", "mean_consumers", "moved_partitions",
    "mean_latency_s", "p95_latency_s", "p99_latency_s", "p90_delayed_latency_s", "delayed_share",
}  # fmt: skip


@pytest.fixture
def simulate(here):
    def run(*arguments):
        return CliRunner().invoke(cli, ["simulate", *map(str, arguments)])

    return run


@pytest.fixture
def found(simulate):
    def run(*arguments):
        result = simulate(*arguments, "--json")
        assert (result.exit_code, result.stderr) == (0, "")
        return json.loads(result.stdout)

    return run


@pytest.fixture
def recorded(here):
    """Three measurements of twelve partitions, in per cent of a consumer."""
    random = Random(1)
    lines = [
        {"time": 30 * n, "speeds": {"t": {str(p): random.randint(0, 60) for p in range(12)}}} for n in range(3)
    ]  # fmt: skip
    (here / "week.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return "week.jsonl", lines


def test_json_has_every_key_for_every_algorithm(found):
    tree = found(*SMALL, "--algorithm", "all", "--delta", 5)
    assert [row["algorithm"] for row in tree["results"]] == list(ALGORITHMS)
    assert all(row.keys() >= KEYS for row in tree["results"])
    assert {(row["delta"], row["start"], row["seed"]) for row in tree["results"]} == {(5, "uniform", 1)}
    assert {row["measurements"] for row in tree["results"]} == {9}
    assert min(row["cbs"] for row in tree["results"]) >= 0
    assert {row["mean_latency_s"] for row in tree["results"]} == {None}


def test_the_same_options_print_the_same_bytes(simulate):
    arguments = (*SMALL, "--latency", "--baseline", "kafka:3,keda", "--seeds", 2, "--json")
    assert simulate(*arguments).stdout == simulate(*arguments).stdout


def test_algorithms_are_named_with_commas_blanks_or_by_repetition(found):
    names = [
        row["algorithm"] for row in found(*SMALL, "--algorithm", "mwf,bfd", "nfd", "--algorithm", "mwf")["results"]
    ]
    assert names == ["mwf", "bfd", "nfd"]


def test_one_alone_gets_the_same_scores_as_among_all(found):
    """CBS needs the others: they are replayed and not shown."""
    (alone,) = found(*SMALL, "--algorithm", "mwf")["results"]
    among = found(*SMALL, "--algorithm", "all")["results"]
    assert alone == next(row for row in among if row["algorithm"] == "mwf")
    (without,) = found(*SMALL, "--algorithm", "mwf", "--no-cbs")["results"]
    assert without == {**alone, "cbs": None}


def test_a_grid_of_deltas_starts_and_seeds(found):
    tree = found(
        *SMALL, "--algorithm", "bfd", "--delta", "0,25", "--start", "all", "--seed", 3, "--seeds", 2, "--no-cbs"
    )
    experiment_runs = [(row["start"], row["delta"], row["seed"]) for row in tree["results"]]
    starts = ("uniform", "zero", "half", "full")
    assert experiment_runs == [(start, delta, seed) for start in starts for delta in (0, 25) for seed in (3, 4)]
    summary = tree["summary"][1]
    runs = [row["average_rscore"] for row in tree["results"][2:4]]
    assert (summary["load"], summary["seeds"]) == ("uniform-delta25-p20-t2-n8", 2)
    assert summary["average_rscore"] == pytest.approx(
        {"mean": sum(runs) / 2, "low": min(runs), "high": max(runs)}, abs=1e-8
    )


def test_baselines_and_latency(found):
    tree = found(*SMALL, "--algorithm", "mwf", "--latency", "--baseline", "kafka:9,kafka:20", "--baseline", "keda")
    rows = {row["algorithm"]: row for row in tree["results"]}
    assert list(rows) == ["mwf", "kafka:9", "kafka:20", "keda"]
    assert (rows["kafka:9"]["mean_consumers"], rows["kafka:9"]["average_rscore"]) == (9, 0)
    assert rows["kafka:20"]["delayed_share"] == 0
    assert rows["kafka:20"]["p90_delayed_latency_s"] is None
    assert 0 < rows["mwf"]["delayed_share"] < 1
    assert 0 < rows["mwf"]["mean_latency_s"] <= rows["mwf"]["p99_latency_s"]
    assert rows["mwf"]["bytes_delayed"] > 0
    assert {row["least_consumer_hours"] for row in rows.values()} == {rows["mwf"]["least_consumer_hours"]}


def test_shuffled_orders_are_a_range(found):
    tree = found(*SMALL, "--algorithm", "mwf", "--latency", "--baseline", "kafka:9", "--orders", 4)
    assert [row["algorithm"] for row in tree["results"]] == ["mwf", "kafka:9"]
    orders = tree["summary"][1]["shuffled_orders"]
    assert orders["orders"] == 4
    assert orders["p99_latency_s"]["low"] < orders["p99_latency_s"]["high"]


def test_a_recorded_load(found, recorded):
    file, lines = recorded
    tree = found("--speeds", file, "--capacity", 100, "--latency", "--baseline", "kafka:4")
    rows = {row["algorithm"]: row for row in tree["results"]}
    assert list(rows) == [*ALGORITHMS, "kafka:4"]
    assert (rows["mwf"]["delta"], rows["mwf"]["start"], rows["mwf"]["seed"]) == (None, None, None)
    assert (rows["mwf"]["measurements"], rows["mwf"]["partitions"], rows["mwf"]["workload"]) == (3, 12, "week")
    totals = [sum(line["speeds"]["t"].values()) for line in lines]
    assert rows["mwf"]["least_consumers"] == pytest.approx(sum(-(-total // 100) for total in totals) / 3)


def test_tables(simulate):
    result = simulate(*SMALL, "--delta", 5, "--seeds", 2, "--latency", "--baseline", "kafka:9", "--orders", 2)
    lines = result.stdout.splitlines()
    assert lines[0].startswith("uniform-delta05-p20-t2-n8: 9 measurements of 20 partitions, mean (least-greatest) of 2")
    names = [*ALGORITHMS, "kafka:9"]
    second, end = 2 + len(names), 3 + 2 * len(names)
    assert [line.split()[0] for line in (lines[1], lines[second])] == ["CBS", "mean"]
    for rows in (lines[2:second], lines[second + 1 : end]):
        assert [line.split()[0].rstrip("*") for line in rows] == names
        assert sum(line.split()[0].endswith("*") for line in rows) >= 1
    assert lines[end].startswith("kafka:9 over 2 shuffled orders: mean latency s ")


def test_plots(simulate, here):
    arguments = (*SMALL, "--delta", "5,10", "--latency", "--baseline", "kafka:9", "--plot")
    assert simulate(*arguments, "front.svg").exit_code == 0
    root = ET.fromstring((here / "front.svg").read_text())
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"mwf", "bfd", "kafka:9", "mean Rscore E[R], in C", "consumer hours"} <= set(texts)
    assert simulate(*arguments, "front.PNG").exit_code == 0
    assert (here / "front.PNG").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_results_are_a_row_per_measurement_and_summarize_to_what_was_printed(found, here):
    tree = found(*SMALL, "--latency", "--baseline", "kafka:9", "--orders", 1, "--results", "grid.parquet")
    table = pq.read_table(here / "grid.parquet")
    assert table.num_rows == 9 * (len(ALGORITHMS) + 2)
    assert set(table["algorithm"].to_pylist()) == {*ALGORITHMS, "kafka:9"}
    mwf = table.filter((table["algorithm"].to_pandas() == "mwf").to_numpy()).to_pandas()
    shown = next(row for row in tree["results"] if row["algorithm"] == "mwf")
    assert mwf["rscore"].mean() == pytest.approx(shown["average_rscore"])
    from kgs_core.simulation.comparison import summarize

    replays, conditions = load_results(here / "grid.parquet")
    again = {one.name: one for one in summarize(replays, conditions) if not one.order}
    for row in tree["results"]:
        assert again[row["algorithm"]].cbs == pytest.approx(row["cbs"], abs=1e-8)
        assert again[row["algorithm"]].latency.p99_s == pytest.approx(row["p99_latency_s"], abs=1e-8)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--algorithm", "best"), "--algorithm: 'best': write nf, ff"),
        (("--algorithm", "kafka:3"), "--algorithm: 'kafka:3': write nf, ff"),
        (("--baseline", "kafka:0"), "--baseline: 'kafka:0': write kafka:CONSUMERS or keda"),
        (("--baseline", "mwf"), "--baseline: 'mwf': write kafka:CONSUMERS or keda"),
        (("--delta", "5,x"), "--delta: 'x': write whole per cents from 0 to 100, or all"),
        (("--delta", ""), "--delta: '': write whole per cents from 0 to 100, or all"),
        (("--delta", "101"), "--delta: '101': write whole per cents"),
        (("--start", "even"), "--start: 'even': write uniform, zero, half, full or all"),
        (("--topics", "3", "--partitions", "2"), "--topics: 3: at most one for each partition (2)"),
        (("--capacity", "nan"), "--capacity: nan: give a number above 0"),
        (("--interval", "0"), "--interval: 0: give a number above 0"),
        (("--plot", "front.pdf"), "--plot: front.pdf: name a file that ends in .svg or .png"),
        (("--plot", "none/front.svg"), "--plot: none/front.svg: its folder does not exist: create it first"),
        (("--results", "."), "--results: .: is a folder: name a file in it"),
        (("--speeds", "week.jsonl", "--delta", "5"), "--delta: shapes a generated load: leave it out"),
        (("--speeds", "week.jsonl", "--since", "2026-01-01"), "--since: names a load, and so does --speeds"),
        (("--until", "2026-01-01"), "--until: needs --since: give both, or neither"),
        (("--since", "yesterday"), "--since: 'yesterday': write a time as 2026-11-15T08:00"),
        (("--since", "2026-01-01"), "kgs.yaml: no such file: `kgs init` makes one, or name another file"),
        (("--speeds", "none.jsonl"), "none.jsonl: no such file or directory: name another file"),
        (("--speeds", "bad.jsonl"), "bad.jsonl: line 1: t:0: 'x': give bytes/s from 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line_status_2_and_no_file(simulate, recorded, here, arguments, problem):
    (here / "bad.jsonl").write_text('{"time": 1, "speeds": {"t": {"0": "x"}}}\n')
    files = sorted(path.name for path in here.iterdir())
    outputs = () if {"--plot", "--results"} & set(arguments) else ("--plot", "new.svg", "--results", "new.parquet")
    result = simulate(*arguments, *outputs)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {problem}")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert sorted(path.name for path in here.iterdir()) == files


def test_all_problems_are_named_at_once(simulate):
    result = simulate("--delta", "x", "--start", "y", "--algorithm", "z", "--plot", "p")
    assert result.stderr.count("error: ") == 4


def test_a_file_that_cannot_be_finished_leaves_nothing(simulate, here, monkeypatch):
    (here / "grid.parquet").write_text("what was there")

    def fails(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "flush", fails)
    result = simulate(*SMALL, "--algorithm", "mwf", "--no-cbs", "--results", "grid.parquet")
    assert (result.exit_code, result.stderr) == (2, "error: grid.parquet: no space left on device: name another file\n")
    assert [path.name for path in here.iterdir()] == ["grid.parquet"]
    assert (here / "grid.parquet").read_text() == "what was there"


def test_help_explains(simulate):
    text = " ".join(simulate("--help").stdout.split())
    for word in ("cardinal bin score", baseline_help(), "--spark", "unread for 5 s"):
        assert word in text


@pytest.mark.parametrize("given", [("--algorithm", ""), ("--algorithm", ","), ("",)])
def test_an_algorithm_without_a_name_is_not_all_of_them(simulate, given):
    result = simulate(*SMALL, *given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: --algorithm: empty: write ")


def test_one_setting_has_one_row(found):
    """`search` is `search@1.3`; by other random numbers it would look like another one."""
    for names in ("search,search@1.3,search@2", "search@1.3,search@2,search"):
        rows = found(*SMALL, "--algorithm", names)["results"]
        assert sorted(row["algorithm"] for row in rows) == ["search", "search@2"]
    assert [row["algorithm"] for row in found(*SMALL, "--algorithm", "search@1.3")["results"]] == ["search@1.3"]
