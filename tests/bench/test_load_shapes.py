"""The load has the speed it says."""

import random
from itertools import pairwise

import pytest

from bench.load_shapes import RECORD_BYTES, KnownLoad, noise, ramp, steady, step


@pytest.mark.parametrize(
    ("shape", "expected_bytes"),
    [
        (steady(50_000.0), 500_000),
        (step(50_000.0, 100_000.0, 4.0), 800_000),
        (ramp(0.0, 100_000.0, 0.0, 10.0), 500_000),
        (noise(50_000.0, 0.0, random.Random(1), 10), 500_000),
    ],
)
def test_bytes_sent_are_the_integral_of_the_shape(shape, expected_bytes):
    load = KnownLoad("localhost:1", "t", shape)
    times = [0.0, 0.3, 0.31, 5.0, 5.0, 10.0]
    records = [record for a, b in pairwise(times) for record in load.due(a, b)]
    assert len(records) * RECORD_BYTES == pytest.approx(expected_bytes, rel=0.01)
    assert {(topic, len(value)) for topic, _, value in records} == {("t", RECORD_BYTES)}


def test_noise_is_never_negative_and_the_same_for_the_same_seed():
    shapes = [noise(100.0, 3.0, random.Random(7), 50) for _ in range(2)]
    assert [shapes[0](t) for t in range(60)] == [shapes[1](t) for t in range(60)]
    assert min(shapes[0](t) for t in range(60)) == 0.0
