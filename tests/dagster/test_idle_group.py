"""A group with nothing to read under the load sensor."""

import re

import pytest

from tests.dagster.rebalancing import FOUR, PACKING
from tests.dagster.test_partition_load_sensor import keys, record_of
from tests.dagster.ticking import Watched, config_of
from tests.sim_group import tp


@pytest.fixture
def asleep(instance):
    watched = Watched(instance, PACKING.replace("}", ", idle_after_s: 60}"))
    watched.settle()
    watched.load = dict.fromkeys(FOUR, 0)
    while not (requests := watched.tick().run_requests):
        continue
    assert config_of(*requests)["reason"] == "idle: everything is read"
    watched.sim.go_by(5)
    assert watched.sim.fleet.living() == []
    return watched


def test_a_group_with_nothing_to_read_is_put_to_sleep_by_a_run_and_woken_within_a_tick(asleep):
    result = asleep.tick()
    assert result.run_requests == []
    assert re.match(r"idle since .*Z, everything is read; ", result.skip_message)
    asleep.sim.topics.write(tp("b"))
    assert keys(result := asleep.tick()) == ["g/1/2", record_of(asleep)]
    assert config_of(result.run_requests[1])["reason"] == "records to read: b:0"
    asleep.settle()
    assert asleep.sim.topics.read == asleep.sim.topics.written


def test_a_group_that_sleeps_is_not_woken_for_want_of_a_measurement(asleep):
    """A run would have none to pack by, either."""
    asleep.load = None
    for _ in range(3):
        assert asleep.tick().run_requests == []
