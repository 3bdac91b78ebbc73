"""Generated loads: their shape, their bounds, and that they are the same wherever they are drawn."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from kgs_core.errors import ConfigError
from kgs_core.model import TopicPartition
from kgs_core.simulation.streams import generate, stream_partitions
from kgs_core.simulation.workload import STARTS, StreamSpec, parse_key

SMALL = StreamSpec(delta=7, seed=3, steps=40, partitions=9, topics=2)


def drawn(spec):
    return generate(spec, Random(spec.key)).measurements


def test_a_stream_has_one_measurement_more_than_steps_and_is_its_seeds_own():
    measurements = drawn(SMALL)
    assert [len(speeds) for speeds in measurements] == [9] * 41
    assert drawn(SMALL) == measurements != drawn(replace(SMALL, seed=4))


@pytest.mark.parametrize(
    ("start", "first"),
    [("zero", {0.0}), ("half", {50.0}), ("full", {100.0}), ("uniform", {float(n) for n in range(101)})],
)
def test_start_conditions_and_that_without_delta_nothing_ever_changes(start, first):
    measurements = drawn(StreamSpec(0, start, partitions=5000, steps=2))
    assert set(measurements[0].values()) == first
    assert measurements[0] == measurements[1] == measurements[2]


@pytest.mark.parametrize("start", STARTS)
def test_steps_are_whole_and_at_most_delta_and_stay_within_0_and_100(start):
    measurements = drawn(StreamSpec(7, start, steps=400, partitions=20))
    changes = set()
    for before, after in pairwise(measurements):
        assert all(0 <= speed <= 100 for speed in after.values())
        changes |= {after[p] - before[p] for p in after}
    assert changes == {float(n) for n in range(-7, 8)}


def test_partitions_are_shared_out_over_topics_whose_names_sort_by_number():
    assert stream_partitions(5, 2) == [
        TopicPartition("topic-0", 0), TopicPartition("topic-0", 1), TopicPartition("topic-0", 2),
        TopicPartition("topic-1", 0), TopicPartition("topic-1", 1),
    ]  # fmt: skip
    many = stream_partitions(24, 12)
    assert many == sorted(many)
    assert many[-1] == TopicPartition("topic-11", 1)


@pytest.mark.parametrize(
    "spec", [StreamSpec(5), StreamSpec(25, "half", 12), SMALL, StreamSpec(100, "zero", 0, 1, 1, 1)]
)
def test_a_key_names_its_stream(spec):
    assert parse_key(spec.key) == spec
    assert StreamSpec(5).key == "uniform-delta05-seed1"
    assert SMALL.key == "uniform-delta07-seed3-p9-t2-n40"


@pytest.mark.parametrize(
    "key", ["", "uniform", "uniform-delta5-seed1", "even-delta05-seed1", "uniform-delta05-seed1-p9"]
)
def test_what_names_no_stream_is_refused(key):
    with pytest.raises(ConfigError, match="as in uniform-delta05-seed1"):
        parse_key(key)
