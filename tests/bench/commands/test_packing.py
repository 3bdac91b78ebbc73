"""`bench packing` on small loads."""

import json
import xml.etree.ElementTree as ET

import pytest
from click.testing import CliRunner

from bench.__main__ import bench_group
from bench.commands.packing import GeneratedLoad
from bench.commands.packing_plot import packing_charts
from bench.packing_run import ScaleResult, growth, measure, scale_load, with_scores
from kgs_core.model import ConsumerId
from kgs_core.packing import ALGORITHMS
from kgs_core.packing.basics.problem import DEFAULT_CONSUMER_WEIGHT
from kgs_core.simulation.comparison import PUBLISHED
from kgs_core.simulation.pool import LatencySummary


def run(*arguments):
    return CliRunner().invoke(bench_group, ["packing", *map(str, arguments)])


NEVER_LATE = LatencySummary(10, 0, 0.0, 0.0, 0.0, None)


def timed(partitions, seconds):
    return ScaleResult("mwf", partitions, [1], 1, 0.0, NEVER_LATE, [seconds], 0.0, 0.0)


def packed(name, *consumers):
    return ScaleResult(name, 100, consumers, min(consumers), 1.0, NEVER_LATE, [0.1] * len(consumers), 0.0, 0.0)


def test_a_row_for_each_algorithm_and_size(tmp_path):
    json_file, plot_file = tmp_path / "scale.json", tmp_path / "scale.svg"
    options = ["--sizes", "40,8", "--algorithm", "mwf,bfd", "--steps", 2]
    result = run(*options, "--json", json_file, "--plot", plot_file)
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [f"packing {size} partitions: 2 algorithms, 2 steps each" for size in (8, 40)]
    quality, cost = (table.splitlines() for table in result.stdout.split("\n\n"))
    for lines in (quality, cost):
        assert [line.split()[:2] for line in lines[1:]] == [["8", "mwf"], ["8", "bfd"], ["40", "mwf"], ["40", "bfd"]]
    tree = json.loads(json_file.read_text())
    assert [(one["partitions"], one["algorithm"]) for one in tree["results"]] == [
        (8, "mwf"), (8, "bfd"), (40, "mwf"), (40, "bfd")
    ]  # fmt: skip
    assert all(len(one["times_s"]) == 2 and 0 < one["min_s"] <= one["median_s"] for one in tree["results"])
    assert all(one["consumers"] >= one["least_consumers"] > 0 for one in tree["results"])
    assert all(one["cbs"] is None for one in tree["results"]), "two of the twelve only"
    assert all(one["latency"]["samples"] > 0 <= one["latency"]["p99_s"] for one in tree["results"])
    assert set(tree["growth"]) == {"mwf", "bfd"}
    drawn = {text.text for text in ET.fromstring(plot_file.read_text()).iter("{http://www.w3.org/2000/svg}text")}
    assert {"mwf", "bfd", "8 partitions", "40 partitions"} <= drawn


def test_with_all_twelve_the_best_has_a_score(tmp_path):
    file, drawn = tmp_path / "packing.json", tmp_path / "scale.png"
    names = ",".join(PUBLISHED)
    assert run("--sizes", 20, "--algorithm", names, "--steps", 3, "--json", file, "--plot", drawn).exit_code == 0
    assert drawn.read_bytes().startswith(b"\x89PNG")
    scores = [one["cbs"] for one in json.loads(file.read_text())["results"]]
    assert len(scores) == len(PUBLISHED)
    assert min(scores) >= 0
    assert max(scores) > min(scores)


def test_scores_are_over_the_published_alone():
    results = [packed(name, 10, 20) for name in PUBLISHED]
    results[3] = packed(PUBLISHED[3], 11, 19)
    scored = {one.algorithm: one.cbs for one in with_scores([*results, packed("search", 9, 19)])}
    assert scored[PUBLISHED[0]] == pytest.approx((0 / 10 + 1 / 19) / 2)
    assert scored[PUBLISHED[3]] == pytest.approx((1 / 10 + 0 / 19) / 2)
    assert scored["search"] == pytest.approx((-1 / 10 + 0 / 19) / 2)
    assert [one.cbs for one in with_scores(results[1:])] == [None] * 11


def test_who_never_moves_a_partition_is_never_late_and_who_moves_all_is_always():
    load = scale_load(6, delta=10, steps=4, seed=2)
    steps = []

    def stay(problem, _random):
        return {p: ConsumerId(1 + number) for number, p in enumerate(problem.speeds)}

    def turn(problem, _random):
        steps.append(problem)
        return {p: ConsumerId(1 + (number + len(steps)) % 6) for number, p in enumerate(problem.speeds)}

    still, turning = measure("stay", stay, None, load), measure("turn", turn, None, load)
    assert (still.rscore, still.latency.delayed, still.latency.p99_s) == (0.0, 0, 0.0)
    total = sum(sum(speeds.values()) for speeds in load.measurements[2:-1]) / load.capacity
    assert turning.rscore == pytest.approx(total / 4)
    assert turning.latency.p99_s > 4.5, "nearly the 5 s that a moved partition is unread"
    assert turning.latency.samples == still.latency.samples == round(30 * 100 * total)


def test_more_steps_where_they_are_short():
    load = GeneratedLoad(None, 10, 1)
    assert [load.steps_at(size) for size in (1, 200, 1000, 10_000, 100_000)] == [200, 200, 100, 10, 5]
    assert GeneratedLoad(7, 10, 1).steps_at(200) == 7


def test_times_come_first_and_then_a_front_for_each_size():
    results = [timed(100, 0.002), timed(1000, 0.03), packed("bfd", 2), packed("mwf", 3)]
    times, *fronts = packing_charts(results[:2] + results[2:3])
    assert times.lines == {"mwf": [(100, 2.0), (1000, 30.0)], "bfd": [(100, 100.0)]}
    assert [(front.title, set(front.dots)) for front in fronts] == [
        ("100 partitions", {"mwf", "bfd"}),
        ("1,000 partitions", {"mwf"}),
    ]


def test_all_but_the_times_repeats():
    load, told = scale_load(30, delta=10, steps=3, seed=5), []
    first, second = (
        measure("mwf", ALGORITHMS["mwf"], DEFAULT_CONSUMER_WEIGHT, load, lambda: told.append(1)) for _ in range(2)
    )
    assert len(told) == 2 * (2 + 3 + 1), "a bar can move"
    assert (first.consumers, first.least, first.rscore) == (second.consumers, second.least, second.rscore)
    assert first.latency == second.latency
    assert first.rscore > 0
    assert first.memory_bytes > 0


def test_growth_is_the_exponent():
    results = [timed(n, 3e-6 * n**1.5) for n in (100, 1000, 10_000)]
    assert growth(results) == pytest.approx(1.5)
    assert growth(results[:1]) is None
