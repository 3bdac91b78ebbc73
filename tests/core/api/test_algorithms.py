"""`kgs.register_algorithm`: from then on the name is taken wherever an algorithm is named."""

import json
import re

import pytest
from click.testing import CliRunner

import kgs_core as kgs
from kgs_core.cli.main import cli
from kgs_core.errors import ConfigError
from kgs_dagster.partitions import run_partitions

SPEEDS = {("t", 0): 40.0, ("t", 1): 30.0, ("t", 2): 20.0}

pytestmark = pytest.mark.usefixtures("algorithms_kept")


def one_each(speeds, capacity, current, seed):
    """As many consumers as partitions; who reads one goes on."""
    free = iter(n for n in range(1, 100) if n not in current.values())
    return {each: current[each] if each in current else next(free) for each in speeds}


def test_one_that_is_registered_is_taken_by_its_name():
    kgs.register_algorithm("mine", one_each)
    found = kgs.pack(SPEEDS, capacity=100, current={("t", 1): 5}, algorithm="mine")
    assert found.assignment == {("t", 0): 1, ("t", 1): 5, ("t", 2): 2}
    assert (found.algorithm, found.moves, found.rscore) == ("mine", (), 0.0)
    compared = kgs.simulate([SPEEDS, SPEEDS], algorithms=["mine", "bfd"], capacity=100).to_frame()
    assert compared["mean_consumers"].to_dict() == {"mine": 3.0, "bfd": 1.0}
    planned = kgs.plan(speeds=SPEEDS, capacity=100)
    assert {row.algorithm: row.consumers for row in planned.alternatives}["mine"] == 3
    shown = CliRunner().invoke(cli, ["simulate", "--partitions", "7", "--steps", "2", "--algorithm", "mine", "--json"])
    assert [row["mean_consumers"] for row in json.loads(shown.stdout)["results"]] == [7.0]
    assert "mine" in run_partitions().partitions_defs[0].partitions_def.get_partition_keys()


def test_what_it_answers_is_checked_wherever_it_packs():
    kgs.register_algorithm("mine", lambda speeds, *_: dict.fromkeys(list(speeds)[1:], 1))
    words = re.escape("algorithm 'mine': gave t:0 no consumer: give every partition one")
    with pytest.raises(ConfigError, match=words):
        kgs.pack(SPEEDS, algorithm="mine")
    with pytest.raises(ConfigError, match=words):
        kgs.simulate([SPEEDS], algorithms=["mine"])
    asked = CliRunner().invoke(cli, ["simulate", "--partitions", "3", "--steps", "2", "--algorithm", "mine"])
    assert (asked.exit_code, asked.stderr.count("\n")) == (2, 1)
    assert asked.stderr.startswith("error: algorithm 'mine': gave ")


def test_what_cannot_be_registered_is_named():
    with pytest.raises(ConfigError, match="algorithm 'mine': 5: give a function"):
        kgs.register_algorithm("mine", 5)
    with pytest.raises(ConfigError, match="algorithm 'bfd': kgs has one of this name"):
        kgs.register_algorithm("bfd", one_each)
    with pytest.raises(ConfigError, match="algorithm 'mine': use one of nf"):
        kgs.pack(SPEEDS, algorithm="mine")
