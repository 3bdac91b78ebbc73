"""One capacity out of reports: unit, class, median, bounds, deadband, drift; and how it follows a changing truth."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.config.packing import CONSUMER_SHARE, PackingSettings
from kgs_core.group.membership.flat_out import FlatOutMeter, FullRound
from kgs_core.group.protocol import FlatOut, Incarnation, LearntCapacity, Member, Phase, Process, Report
from kgs_core.model import ConsumerId
from kgs_core.planning.learnt_capacity import DEADBAND, FRESH_S, Learnt, capacity_of, learn

SIZES = {"t": 0.5}
PACKING = PackingSettings(packing_capacity_bytes_per_s=1_500_000, consumer_capacity_bytes_per_s=2_000_000)
LEARNT = PackingSettings()


def flat_out(rate, busy_s=120.0, age_s=0.0, **more):
    """Of one that reads `rate` consumed bytes/s in offsets of one byte."""
    plain = {"since_ms": 1000, "consumed_bytes": 1000, "offsets": {"t": 1000}, "hardware": "x"}
    return FlatOut(rate, busy_s, age_s, **{**plain, **more})


def report(consumer, found=None, version="1", config_hash="a"):
    member = Member(ConsumerId(consumer), Incarnation(f"i{consumer}"))
    process = Process({"pid": consumer})
    return Report(
        member, 1, Phase.READING, 0.0, 0.0, process, 0, frozenset(),
        version=version, config_hash=config_hash, flat_out=found,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("more", "sizes", "stored"),
    [
        ({}, SIZES, 50.0),
        ({"offsets": {"t": 500, "u": 500}, "consumed_bytes": 2000}, {"t": 0.5, "u": 1.5}, 50.0),
        ({"offsets": {"t": 950, "gone": 50}}, SIZES, 50.0),
        ({"offsets": {"t": 800, "gone": 200}}, SIZES, None),
        ({}, {}, None),
        ({}, {"t": 0.0}, None),
        ({"consumed_bytes": 0}, SIZES, None),
        ({"offsets": {}}, SIZES, None),
        ({"busy_s": 60.0}, SIZES, None),
    ],
)
def test_stored_bytes_by_the_size_of_an_offset_as_far_as_it_is_known(more, sizes, stored):
    found = learn([report(1, flat_out(100.0, **more))], sizes).bytes_per_s
    assert found == (None if stored is None else pytest.approx(stored))


def test_nothing_from_nobody_and_no_harm_from_what_no_number_can_be():
    assert learn([], SIZES) == Learnt()
    assert learn([report(1), report(2)], SIZES).bytes_per_s is None
    both = [report(n, flat_out(100.0, busy_s=60.0)) for n in (1, 2)]
    assert learn(both, SIZES).bytes_per_s == 50.0
    odd = learn([report(1, flat_out(1e308, consumed_bytes=1)), report(2, flat_out(100.0))], SIZES)
    assert (odd.bytes_per_s, dict(odd.each)) == (50.0, {2: 50.0})


@given(st.lists(st.floats(1.0, 1e9), min_size=1, max_size=9), st.randoms())
def test_a_median_whatever_the_order(rates, random):
    reports = [report(n, flat_out(rate)) for n, rate in enumerate(rates, 1)]
    found = learn(reports, SIZES).bytes_per_s
    random.shuffle(reports)
    assert learn(reports, SIZES).bytes_per_s == found
    assert found == pytest.approx(sorted(rates)[(len(rates) - 1) // 2] / 2)


def test_a_few_slow_ones_are_not_the_class_and_are_named():
    found = learn([report(n, flat_out(20.0 if n < 3 else 100.0)) for n in range(1, 8)], SIZES)
    assert found.bytes_per_s == 50.0
    assert found.each[1] == 10.0


def test_only_those_of_late_count():
    old = [report(n, flat_out(100.0, age_s=FRESH_S + 1)) for n in (1, 2, 3)]
    assert learn([*old, report(4, flat_out(40.0))], SIZES).bytes_per_s == 20.0
    assert learn(old, SIZES).bytes_per_s == 50.0  # a quiet night erases nothing


def test_only_the_version_and_configuration_of_most():
    old = [report(n, flat_out(100.0)) for n in (1, 2, 3)]
    new = [report(n, flat_out(40.0), version="2") for n in (4, 5)]
    assert learn([*old, *new], SIZES).bytes_per_s == 50.0
    found = learn([*old[:1], *new], SIZES)
    assert (found.bytes_per_s, found.version) == (20.0, "2")
    silent = [report(n, version="2") for n in (4, 5)]
    assert learn([*old[:1], *silent], SIZES).bytes_per_s is None


def test_the_slowest_hardware_counts():
    fast = [report(n, flat_out(100.0)) for n in (1, 2, 3)]
    slow = [report(4, flat_out(60.0, hardware="y"))]
    found = learn([*fast, *slow], SIZES)
    assert (found.bytes_per_s, found.hardware, found.consumers) == (30.0, "y", 1)


def test_since_is_that_of_the_class():
    found = learn([report(n, flat_out(100.0, since_ms=n * 1000)) for n in (1, 2, 3)], SIZES)
    assert found.since_ms == 2000
    assert replace(found, bytes_per_s=None).memory is None


def known(flat, version="1", config_hash="a"):
    return Learnt(bytes_per_s=flat, version=version, config_hash=config_hash)


def test_measured_packs_as_configured_and_shows_the_drift():
    found = capacity_of(PACKING, known(0.7 * 2.3e6), None)
    assert (found.packing, found.memory, found.falls_short) == (PACKING, None, True)
    assert found.drift == pytest.approx(-0.3)


def test_without_a_number_plans_go_by_what_is_learnt_whatever_it_is():
    found = capacity_of(LEARNT, known(2.3e8), None, 1e6)
    assert found.packing.consumer_capacity == pytest.approx(2e8)
    assert found.packing.packing_capacity == pytest.approx(1.5e8)
    assert found.memory == LearntCapacity(2.3e8, "1", "a")
    assert (found.source, found.configured, found.drift) == ("learnt", None, None)


def test_before_anything_is_learnt_the_first_figure_counts_and_stands_in_the_target():
    found = capacity_of(LEARNT, known(None), None, 2.3e7)
    assert (found.source, found.packing.consumer_capacity) == ("first", pytest.approx(2e7))
    assert capacity_of(LEARNT, known(None), found.memory, 9e9).memory == found.memory, "another machine's is none"
    assert capacity_of(LEARNT, known(2.3e7 * 1.01), found.memory, 1.0).source == "learnt", "near it or not"
    assert capacity_of(LEARNT, Learnt(), None).source == "unknown"
    assert capacity_of(PACKING, Learnt(), found.memory, 2.3e7).source == "configured"


def test_noise_changes_nothing_and_what_was_learnt_outlives_the_consumers():
    standing = LearntCapacity(2e6, "1", "a")
    assert capacity_of(LEARNT, known(2e6 * (1 + DEADBAND / 2)), standing).memory == standing
    assert capacity_of(LEARNT, known(1.8e6), standing).memory == LearntCapacity(1.8e6, "1", "a")
    assert capacity_of(LEARNT, known(2e6, version="2"), standing).memory == LearntCapacity(2e6, "2", "a")
    for nothing in (known(None), Learnt(), known(None, version="2")):
        assert capacity_of(LEARNT, nothing, standing, 1e9).memory == standing
    assert capacity_of(PACKING, known(1.8e6), standing).memory is None


@pytest.mark.parametrize(
    ("share", "alarms"), [(1.0, False), (CONSUMER_SHARE, False), (0.79, True), (1.2, False), (1.3, True)]
)
def test_when_a_drift_is_an_alarm(share, alarms):
    assert capacity_of(PACKING, known(share * 2.3e6), None).has_drifted is alarms


def steps(at):
    return 1.0 if at < 2000 else 0.6 if at < 4000 else 1.0


def ramp(at):
    return 1.0 - 0.5 * min(at, 5000) / 5000


class Simulated:
    """Consumers that read as fast as the truth lets them, with noise, and a Target that remembers."""

    def __init__(self, truth, count, slow, seed):
        self.truth, self.random = truth, Random(seed)
        self.meters = [FlatOutMeter("x") for _ in range(count)]
        self.factors = [0.5 if n < slow else 1.0 for n in range(count)]
        self.reports = [report(n + 1) for n in range(count)]
        self.standing = None
        self.changes = 0

    def second(self, at):
        for n, meter in enumerate(self.meters):
            if self.random.random() < 1 / 3000:  # it is started anew, and has nothing to say for a minute
                self.meters[n], self.reports[n] = FlatOutMeter("x"), report(n + 1)
                continue
            seconds = 5.0 if self.random.random() < 0.01 else 1.0
            rate = 4.6e6 * self.truth(at) * self.factors[n] * self.random.lognormvariate(0.0, 0.2)
            self.meters[n] = meter.after(FullRound(seconds, 0.0, round(rate), {"t": round(rate)}), at, at * 1000)
            if (at + 7 * n) % 60 == 0:
                self.reports[n] = report(n + 1, self.meters[n].reading(at))
        found = capacity_of(LEARNT, learn(self.reports, SIZES), self.standing)
        if found.memory != self.standing:
            self.standing, self.changes = found.memory, self.changes + 1


@pytest.mark.parametrize(
    ("truth", "rel", "count", "slow"), [(steps, 0.1, 10, 2), (steps, 0.1, 5, 1), (steps, 0.1, 1, 0), (ramp, 0.15, 6, 1)]
)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_a_changing_truth_is_followed_and_never_runs_ahead(truth, rel, count, slow, seed):
    """A step down and up again within 300 s and 1,000 s, by ten per cent; a ramp all the time."""
    group = Simulated(truth, count, slow, seed)
    wavers = before = 0
    for at in range(1, 6000):
        group.second(at)
        is_settled = at > 300 and (truth is ramp or at < 2000 or 2300 < at < 4000 or at > 5000)
        wavers += is_settled and group.changes != before
        before = group.changes
        if is_settled and group.standing is not None:
            assert group.standing.bytes_per_s == pytest.approx(2.3e6 * 0.96 * truth(at), rel=rel), at
    assert group.standing.bytes_per_s == pytest.approx(2.3e6 * 0.96 * truth(6000), rel=0.1)
    assert group.changes < 30
    if truth is steps:
        assert wavers <= 3  # within 4,700 s in which nothing changes but what noise does
        assert group.changes <= 20
