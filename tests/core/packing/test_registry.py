"""Names of algorithms, and one of somebody else's, registered and then used by its name."""

import pytest

from kgs_core.config import PackingSettings
from kgs_core.errors import ConfigError
from kgs_core.model import ConsumerId
from kgs_core.packing import ALGORITHMS, FRONT, parse_name, setting_name
from kgs_core.packing.registry import register


def one_each(problem, random):
    return {p: ConsumerId(n) for n, p in enumerate(sorted(problem.speeds), 1)}


@pytest.mark.usefixtures("algorithms_kept")
def test_a_registered_algorithm_is_a_setting_and_has_a_weight_where_it_weighs():
    """How it packs: tests/core/api/test_algorithms.py."""
    register("mine", one_each)
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
