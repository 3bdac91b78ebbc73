"""Somebody else's function as a packing algorithm: what it is given, what it must answer, what is seen to for it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from kgs_core.errors import ConfigError
from kgs_core.packing import PackingProblem
from kgs_core.packing.custom import CustomAlgorithm

ROOT = Path(__file__).parents[3]
A, B, C = ("a", 0), ("b", 0), ("c", 0)


@pytest.fixture
def pack(in_order):
    """What comes of this answer; what the function was asked goes into `asked`."""

    def run(problem, answer, asked=None):
        def function(*arguments):
            if asked is not None:
                asked.append(arguments)
            return answer

        return CustomAlgorithm("mine", function)(problem, in_order)

    return run


def test_it_is_asked_in_plain_values(pack, speeds_of, assigned):
    asked = []
    current = {**assigned({7: "a", 3: "b"}), ("gone", 0): 3}
    problem = PackingProblem(speeds_of(b=2, a=1, c=3), 9.0, current, quarantined=frozenset({3}))
    pack(problem, {A: 7, B: 7, C: 7}, asked)
    ((speeds, capacity, now, seed),) = asked
    assert [*speeds.items()] == [(A, 1), (B, 2), (C, 3)]
    assert {type(key) for key in (*speeds, *now)} == {tuple}
    assert (capacity, now) == (9.0, {A: 7}), "nobody reads what one that is quarantined had"
    assert isinstance(seed, int)
    pack(problem, {A: 7, B: 7, C: 7}, asked)
    assert asked[1][3] != seed, "another number for another step"


def test_the_answer_is_the_packing(pack, speeds_of, assigned):
    problem = PackingProblem(speeds_of(a=1, b=2, c=3), 9.0, assigned({2: "a"}))
    assert pack(problem, {A: 2, B: 2, C: 9}) == assigned({2: "ab", 1: "c"}), "a new one has the least free number"
    assert pack(problem, pd.Series({A: 2, B: 2, C: 9})) == assigned({2: "ab", 1: "c"})


def test_what_the_function_does_not_know_of_is_seen_to(pack, speeds_of, assigned, tp):
    speeds, current = speeds_of(a=4, b=3, c=2), assigned({2: "a", 3: "b"})
    problem = PackingProblem(speeds, 9.0, current, spares=frozenset({8}), quarantined=frozenset({1, 3}))
    assert pack(problem, {A: 2, B: 3, C: 1}) == assigned({2: "a", 8: "c", 4: "b"}), "spares first, nobody quarantined"
    pinned = PackingProblem(speeds, 9.0, current, pinned=frozenset({tp("b")}))
    assert pack(pinned, {A: 2, B: 2, C: 2}) == assigned({2: "ac", 3: "b"})
    few = PackingProblem(speeds, 5.0, current, max_consumers=2)
    assert pack(few, {A: 2, B: 3, C: 4}) == assigned({2: "a", 3: "bc"})
    kept = PackingProblem(speeds, 5.0, current, pinned=frozenset({tp("b")}), max_consumers=1)
    assert pack(kept, {A: 2, B: 3, C: 4}) == assigned({3: "abc"})
    many = PackingProblem(speeds, 9.0, current, min_consumers=2)
    assert len(set(pack(many, {A: 2, B: 2, C: 2}).values())) == 2


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({A: 1}, "gave b:0 no consumer: give every partition one"),
        ({A: 1, B: 1, C: 1, ("d", 0): 1}, "gave ('d', 0) a consumer, which is not a partition of the load"),
        ({A: 1, B: 0, C: 1}, "gave b:0 consumer 0: give a whole number, 1 or more"),
        ({A: 1, B: -1, C: 1}, "gave b:0 consumer -1: give a whole number"),
        ({A: 1, B: 1.5, C: 1}, "gave b:0 consumer 1.5: give a whole number"),
        ({A: 1, B: True, C: 1}, "gave b:0 consumer True: give a whole number"),
        ({A: 1, B: "1", C: 1}, "gave b:0 consumer '1': give a whole number"),
        (pd.Series([1, 2, 1, 1], pd.MultiIndex.from_tuples([A, A, B, C])), "gave a:0 two consumers"),
        ([1, 2, 1], "gave a list: give a mapping {(topic, number): consumer}"),
        (None, "gave a NoneType: give a mapping"),
    ],
)
def test_an_answer_that_is_no_packing_is_one_error_that_names_the_algorithm(pack, speeds_of, answer, words):
    problem = PackingProblem(speeds_of(a=1, b=2, c=3), 9.0, {})
    with pytest.raises(ConfigError, match=re.escape(f"algorithm 'mine': {words}")):
        pack(problem, answer)


@pytest.fixture
def installed(tmp_path):
    """Runs a program where a package with these entry points is installed."""

    def run(entry_points, program):
        info = tmp_path / "somebodys-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[kgs.algorithms]\n{entry_points}\n")
        (tmp_path / "somebodys.py").write_text(
            "print('imported')\nodd = 5\n"
            "def one_each(speeds, capacity, current, seed):\n"
            "    return {each: n for n, each in enumerate(speeds, 1)}\n"
        )
        environ = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
        command = [sys.executable, "-W", "always", "-c", program]
        return subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


SIMULATE = "from kgs_core.cli.main import cli; cli('simulate --partitions 9 --steps 2 --no-cbs --algorithm {}'.split())"


def test_one_that_a_package_brings_is_offered_and_imported_when_it_packs(installed):
    program = (
        "from kgs_dagster.partitions import run_partitions\n"
        "assert 'mine' in run_partitions().partitions_defs[0].partitions_def.get_partition_keys()\n"
        "print('offered')\n" + SIMULATE.format("bfd,mine")
    )
    done = installed("mine = somebodys:one_each", program)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["offered", "imported"]
    (row,) = (line for line in lines if line.startswith("mine"))
    assert "9.00" in row.split(), "nine partitions, nine consumers"


def test_one_that_is_broken_is_named_by_who_asks_for_it_and_by_nobody_else(installed):
    entry_points = "mine = somebodys:missing\nodd = somebodys:odd\nsearch = somebodys:one_each"
    program = (
        "import kgs_core as kgs\n"
        "print(len(kgs.pack({('a', 0): 1.0}, algorithm='bfd').loads))\n"
        "for name in ('mine', 'odd'):\n"
        "    try:\n        kgs.pack({('a', 0): 1.0}, algorithm=name)\n"
        "    except Exception as e:\n        print(type(e).__name__, e)\n"
    )
    done = installed(entry_points, program)
    one, _, mine, odd = done.stdout.splitlines()
    assert one == "1"
    assert mine.startswith("ConfigError algorithm 'mine': entry point somebodys:missing: ")
    assert odd == "ConfigError algorithm 'odd': entry point somebodys:odd: is not a function: name one that packs"
    warning = "entry point of kgs.algorithms: algorithm 'search': kgs has one of this name: give another name"
    assert done.stderr.count(warning) == 1
