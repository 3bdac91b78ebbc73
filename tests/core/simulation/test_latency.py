"""The latency model: on examples that can be checked by hand, and against the plain one, sample by sample."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgs_core.model import TopicPartition
from kgs_core.simulation.latency import LatencyModel, LatencySettings, Stretch
from kgs_core.simulation.pool import LatencyPool
from tests.core.simulation import plain_latency

A, B, C = (TopicPartition(name, 0) for name in "abc")


def pool_of(measurements, assignments, capacity=100):
    model = LatencyModel(LatencySettings(), capacity)
    pairs = zip(measurements, assignments, strict=True)
    return LatencyPool([stretch for speeds, target in pairs for stretch in model.take(speeds, target)])


def fast_figures(pool):
    found = pool.summary()
    return {
        "mean": found.mean_s,
        "p95": found.p95_s,
        "p99": found.p99_s,
        "p90_delayed": found.p90_delayed_s,
        "delayed_share": found.delayed_share,
    }


def agree(fast, plain):
    assert {key: value is None for key, value in fast.items()} == {key: value is None for key, value in plain.items()}
    for key, value in plain.items():
        if value is not None:
            assert fast[key] == pytest.approx(value, rel=1e-9, abs=1e-12), key


@pytest.mark.parametrize("unit", [1.0, 15_000.0])
@pytest.mark.parametrize(
    ("speeds", "target", "expected"),
    [
        ((50.0, 60.0), {A: 1, B: 2}, [Stretch(0.0, 0.0, 3300)]),
        ((60.0, 40.0), {A: 1, B: 1}, [Stretch(5.0, 1 / 73 - 1 / 40, 1200), Stretch(0.0, 0.0, 1800)]),
        ((150.0, 50.0), {A: 1, B: 1}, [
            Stretch(0.0, pytest.approx(1 / (133 * 0.75) - 1 / 150), 4500),
            Stretch(5.0, pytest.approx(1 / (133 * 0.25) - 1 / 50), 1500),
        ]),
    ],
    ids=[
        "kept within the capacity: never late",
        "b comes to consumer 1, which keeps a: r_K = 60, r_M = 73: late by the pause, and catches up",
        "the formula divides by r_M = 0 here: 133 is shared 150 : 50",
    ],
)  # fmt: skip
def test_at_the_first_measurement_nothing_is_recorded_at_the_second_in_any_unit(speeds, target, expected, unit):
    """The model knows nothing but shares of C."""
    model, written = (
        LatencyModel(LatencySettings(), 100 * unit),
        dict(zip((A, B), (s * unit for s in speeds), strict=True)),
    )
    assert model.take(written, {A: 1, B: 2}) == []
    assert model.take(written, target) == expected


def test_latency_goes_on_from_the_last_sample_of_the_same_consumer():
    """140 written, 133 read: late by more and more; 100 after that, and the latency goes down from where it was."""
    model = LatencyModel(LatencySettings(), 100)
    first, second, third = (model.take({A: speed}, {A: 1}) for speed in (140.0, 140.0, 100.0))
    slope = 1 / 133 - 1 / 140
    assert (first, second) == ([], [Stretch(0.0, slope, 4200)])
    assert third == [Stretch(4199 * slope, 1 / 133 - 1 / 100, 3000)]


speeds = st.dictionaries(st.sampled_from([A, B, C]), st.floats(0, 90) | st.integers(0, 60).map(float), min_size=1)


@settings(max_examples=60)
@given(st.lists(st.tuples(speeds, st.lists(st.integers(1, 2), min_size=3, max_size=3)), min_size=1, max_size=4))
def test_the_fast_model_agrees_on_anything(steps):
    """Partitions come and go, and move as they like; what a consumer keeps stays below what it reads."""
    measurements = [measured for measured, _ in steps]
    assignments = [
        {p: consumer for p, consumer in zip((A, B, C), consumers, strict=True) if p in measured}
        for measured, consumers in steps
    ]
    for measured, target in zip(measurements, assignments, strict=True):
        for p in measured:
            measured[p] = min(measured[p], 130 / max(1, len(target)))
    plain = plain_latency.latencies(measurements, assignments)
    agree(fast_figures(pool_of(measurements, assignments)), plain_latency.figures(plain))


lines = st.tuples(
    st.just(0.0) | st.floats(0, 20),
    st.just(0.0) | st.floats(-0.05, 0.05) | st.floats(-1e-14, 1e-14),
    st.integers(1, 300),
)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(lines, max_size=8), st.sampled_from([0, 13, 50, 95, 99, 100]))
def test_percentiles_are_those_of_the_samples(found, per_cent):
    stretches = [Stretch(*line) for line in found]
    samples = [max(0.0, s.first + i * s.slope) for s in stretches for i in range(s.size)]
    late = [sample for sample in samples if sample > 0]
    pool = LatencyPool(stretches)
    assert (pool.summary().samples, pool.summary().delayed) == (len(samples), len(late))
    for values, delayed_only in ((samples, False), (late, True)):
        value = pool.percentile(per_cent, delayed_only=delayed_only)
        if not values:
            assert value is None
        else:
            assert value == plain_latency.percentile(values, per_cent)
            assert value == pytest.approx(np.percentile(values, per_cent), rel=1e-12, abs=1e-300)
    if samples:
        assert pool.summary().mean_s == pytest.approx(math.fsum(samples) / len(samples), rel=1e-9, abs=1e-12)


def test_a_hundred_million_samples_need_no_memory_to_speak_of():
    pool = LatencyPool([Stretch(5.0, -0.001, 10_000)] * 10_000)
    found = pool.summary()
    assert found.samples == 100_000_000
    assert found.delayed == 50_000_000
    assert found.p99_s == pytest.approx(4.9, abs=0.01)
    assert found.p90_delayed_s == pytest.approx(4.5, abs=0.01)
