"""Which runs are compared, and which baselines are worth drawing."""

from dataclasses import replace

import pytest

from kgs_core.experiments.grid import ExperimentRun, Grid, carry_out
from kgs_core.simulation.comparison import summarize
from kgs_core.simulation.groups import comparable, front_of, groups_of, with_enough_consumers
from kgs_core.simulation.replay import Conditions
from kgs_core.simulation.workload import StreamSpec


def runs(**seeds):
    """Algorithm -> the seeds that it has replayed, in a word: `mwf="12"`."""
    grid = Grid((), Conditions())
    replays = [
        carry_out(grid, ExperimentRun(name.replace("_", ":"), StreamSpec(5, "half", int(seed), 3, 8)))
        for name, word in seeds.items()
        for seed in word
    ]
    return groups_of(summarize(replays, grid.conditions))


def compared(groups):
    return {group.name: "".join(str(run.spec.seed) for run in group.runs) for group in comparable(groups)}


@pytest.mark.parametrize(
    ("seeds", "expected"),
    [
        ({"mwf": "123", "bfd": "123"}, {"mwf": "123", "bfd": "123"}),
        ({"mwf": "123", "bfd": "12"}, {"mwf": "12", "bfd": "12"}),
        ({"mwf": "1234", "bfd": "123", "ffd": "123"}, {"mwf": "123", "bfd": "123", "ffd": "123"}),
        ({"mwf": "12", "bfd": "12", "ffd": "3"}, {"mwf": "12", "bfd": "12"}),
        ({"mwf": "1", "bfd": "2"}, {"mwf": "1"}),
        ({}, {}),
    ],
)
def test_compared_are_the_seeds_that_most_have_replayed(seeds, expected):
    assert compared(runs(**seeds)) == expected


def test_baselines_of_too_few_consumers_are_not_worth_drawing():
    groups = runs(mwf="1", kafka_1="1", kafka_4="1", keda="1")
    assert [group.name for group in with_enough_consumers(groups)] == ["mwf", "kafka:4", "keda"]


def test_a_baseline_is_never_on_the_front():
    assert front_of(runs(mwf="1", kafka_1="1")) == ["mwf"]


def test_a_figure_that_one_run_lacks_has_no_mean():
    (group,) = runs(mwf="12")
    known = replace(group, runs=[replace(group.runs[0], cbs=0.5), group.runs[1]])
    assert known.spread(lambda run: run.cbs) is None
    assert known.spread(lambda run: run.measurements).mean == 4
