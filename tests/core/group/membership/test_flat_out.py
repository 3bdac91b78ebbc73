"""What a consumer reads flat out: robust, fast down, slow up, and never from one that waits."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.group.membership.flat_out import LEAST, LONG, RECENT, SPELL_S, FlatOutMeter, FullRound

SPELLS = st.lists(st.floats(1e3, 1e9), min_size=1, max_size=150)


def run(meter, rates, now=0.0, waited=0.0):
    """A spell of each rate, bytes/s."""
    for rate in rates:
        now += SPELL_S
        one = FullRound(SPELL_S, waited * SPELL_S, round(rate * SPELL_S), {"t": round(rate)})
        meter = meter.after(one, now, round(now * 1000))
    return meter


RANDOM = Random(1)
OUTLIERS = [RANDOM.choice([1.0, 1e6]) if n % 5 == 0 else 100.0 for n in range(LONG)]
DIP = [100.0] * LONG + [30.0] * RECENT


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([], None),
        ([100.0] * (LEAST - 1), None),
        ([100.0] * LEAST, 100.0),
        ([0.0] * LONG, None),
        ([100.0] * LONG + [60.0] * (RECENT // 2 - 1), 100.0),
        ([100.0] * LONG + [60.0] * (RECENT // 2 + 1), 60.0),
        ([60.0] * LONG + [100.0] * (LONG // 2 - 1), 60.0),
        ([60.0] * LONG + [100.0] * (LONG // 2 + 1), 100.0),
        (DIP, 30.0),
        (DIP + [100.0] * (RECENT // 2 + 1), 100.0),
        (OUTLIERS, 100.0),
    ],
    ids=[
        *("never flat out", "not for long", "for long enough", "without bytes"),
        *("a drop must last", "and then counts: fast down", "so must a rise", "for longer: slow up"),
        *("a dip", "that is over is over", "single outliers change nothing"),
    ],
)
def test_the_rate_after_so_many_spells(rates, expected):
    found = run(FlatOutMeter(), rates).reading(1e6)
    assert (found and found.bytes_per_s) == expected


@given(SPELLS)
def test_a_reading_is_a_rate_that_was_really_read(rates):
    found = run(FlatOutMeter(), rates).bytes_per_s
    assert (found is None) == (len(rates) < LEAST)
    assert found is None or min(rates) * 0.999 <= found <= max(rates) * 1.001


@given(SPELLS, st.floats(0.51, 1.0))
def test_who_waits_teaches_nothing(rates, waited):
    meter = run(FlatOutMeter(), rates)
    again = run(meter, [1.0] * LONG, now=1e5, waited=waited)
    assert again.spells == meter.spells
    assert again.bytes_per_s == meter.bytes_per_s


def test_rounds_add_up_to_spells_also_over_pauses():
    meter, now = FlatOutMeter("2 x fast"), 0.0
    for n in range(60):
        now += 1000.0 if n % 7 == 0 else 1.0  # other rounds lie between
        meter = meter.after(FullRound(1.0, 0.0, 50, {"a": 2, "b": 3}), now, round(now * 1000))
    found = meter.reading(now + 30.0)
    assert (found.bytes_per_s, found.busy_s, found.age_s, found.hardware) == (50.0, 60.0, 30.0, "2 x fast")
    assert (found.consumed_bytes, dict(found.offsets)) == (3000, {"a": 120, "b": 180})


def test_since_when():
    meter = run(FlatOutMeter(), [100.0] * 20)
    assert meter.reading(0.0).since_ms == 0  # its first spell
    meter = run(meter, [103.0, 98.0, 101.0] * 10, now=200.0)
    assert meter.reading(0.0).since_ms == 0
    meter = run(meter, [50.0] * 30, now=500.0)
    assert meter.reading(0.0).since_ms == 500_000
    meter = run(meter, [52.0] * 30, now=800.0)
    assert meter.reading(0.0).since_ms == 500_000


def test_a_clock_that_goes_back_breaks_nothing():
    meter = run(FlatOutMeter(), [100.0] * LEAST)
    meter = meter.after(FullRound(SPELL_S, 0.0, 1000, {"t": 1}), 1.0, -5_000_000)
    assert meter.reading(0.0).age_s == 0.0
    assert meter.reading(0.0).since_ms >= 0


@pytest.mark.parametrize("seconds", [SPELL_S * 40, SPELL_S])
def test_a_long_round_is_one_spell(seconds):
    meter = FlatOutMeter()
    for n in range(LEAST):
        meter = meter.after(FullRound(seconds, 0.0, round(7 * seconds), {"t": 1}), n * seconds, 1)
    assert meter.bytes_per_s == 7.0
