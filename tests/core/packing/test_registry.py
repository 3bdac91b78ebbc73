"""Names of algorithms, and one of somebody else's, registered and then used by its name."""

import pytest

import kgs_core as kgs
from kgs_core.config import PackingSettings
from kgs_core.errors import ConfigError
from kgs_core.model import ConsumerId
from kgs_core.packing import ALGORITHMS, FRONT, parse_name, setting_name
from kgs_core.packing.registry import register

SPEEDS = {("t", 0): 1.0, ("t", 1): 1.0, ("t", 2): 1.0}


def one_each(problem, random):
    return {p: ConsumerId(n) for n, p in enumerate(sorted(problem.speeds), 1)}


@pytest.mark.usefixtures("algorithms_kept")
def test_a_registered_algorithm_packs_replays_and_is_a_setting():
    with pytest.raises(ConfigError, match="'mine'"):
        kgs.pack(SPEEDS, capacity=10, algorithm="mine")
    register("mine", one_each)
    assert kgs.pack(SPEEDS, capacity=10, algorithm="mine").assignment == {("t", 0): 1, ("t", 1): 2, ("t", 2): 3}
    found = kgs.simulate([SPEEDS, SPEEDS], algorithms=["mine", "bfd"], capacity=10).to_frame()
    assert found["mean_consumers"].to_dict() == {"mine": 3, "bfd": 1}
    assert PackingSettings(algorithm="mine").algorithm == "mine"
    assert parse_name("mine@0.5") is None
    register("mine", one_each, weighs=True)
    assert parse_name("mine@0.5") == ("mine", 0.5)
    register("mine", ALGORITHMS["bfd"])
    assert parse_name("mine@0.5") is None
    assert ALGORITHMS["mine"] is ALGORITHMS["bfd"]


@pytest.mark.parametrize("name", ["", "a@1", "a,b", "a|b", "1a", "kafka:2", "all", "search"])
def test_a_name_that_cannot_be_is_refused_and_changes_nothing(name):
    before = dict(ALGORITHMS)
    with pytest.raises(ConfigError, match="name"):
        register(name, one_each)
    assert before == ALGORITHMS


@pytest.mark.parametrize("name", ["mwf@1", "search@", "search@0", "search@-1", "search@nan", "search@2000", "searh"])
def test_names_that_mean_nothing(name):
    assert parse_name(name) is None


def test_names_with_a_setting():
    assert parse_name("search@fewest") == ("search", None)
    assert parse_name(setting_name("keep", 0.45)) == ("keep", 0.45)
    assert len(FRONT) >= 10
