"""Capacity in words and values."""

from kgs_core.config.packing import PackingSettings
from kgs_core.planning.learnt_capacity import Learnt, capacity_of
from kgs_core.reporting.capacity import capacity_line, capacity_sentences, capacity_values, since_text

AT_MS = 1_700_057_400_000  # 14:10 on 15 November 2023
PACKING = PackingSettings(packing_capacity_bytes_per_s=1_500_000, consumer_capacity_bytes_per_s=2_000_000)


def seen(share, packing=PACKING):
    learnt = Learnt(2.3e6 * share, "1", "a", "x", 3, 400.0, 5.0, AT_MS, {1: 2.3e6 * share})
    return capacity_of(packing, learnt, None)


def test_a_drift_in_a_sentence():
    (text,) = capacity_sentences(seen(0.7), AT_MS + 60_000)
    assert text.startswith("consumers have read 30% less than the configured capacity since 14:10Z")
    assert list(capacity_sentences(seen(0.7, PackingSettings()), AT_MS)) == []
    assert list(capacity_sentences(seen(0.95))) == []
    (text,) = capacity_sentences(seen(1.5))
    assert "50% more" in text


def test_times_of_another_day_have_a_date():
    assert since_text(AT_MS, AT_MS + 86_400_000) == "since 2023-11-15 14:10Z"
    assert since_text(2**62, AT_MS) == "since a time that is none"  # one consumer's clock must not hide the group
    assert since_text(AT_MS, None) == "since 2023-11-15 14:10Z"


def test_the_figure_in_use_and_where_it_comes_from():
    assert capacity_line(capacity_of(PACKING, Learnt(), None)) == (
        "consumer_capacity 2 MB/s as configured; packed to 1.5"
    )
    assert capacity_line(seen(0.7)) == (
        "consumer_capacity 2 MB/s as configured (1.4 learnt, 3 consumers flat out at 1.61 MB/s stored); packed to 1.5"
    )
    assert capacity_line(seen(0.7, PackingSettings())) == (
        "consumer_capacity 1.4 MB/s learnt (3 consumers flat out at 1.61 MB/s stored); packed to 1.05"
    )
    first = capacity_line(capacity_of(PackingSettings(), Learnt(), None, 2.3e7))
    assert first.startswith("consumer_capacity 20 MB/s by a short measurement of a machine")
    assert "until the controller has measured" in capacity_line(capacity_of(PackingSettings(), Learnt(), None))


def test_values_for_json():
    found = capacity_values(seen(0.7))
    assert (found["drift"], found["alarm"], found["source"]) == (-0.3, True, "configured")
    assert found["configured_bytes_per_s"] == 2_000_000
    found = capacity_values(seen(0.7, PackingSettings()))
    assert (found["drift"], found["alarm"], found["source"], found["configured_bytes_per_s"]) == (
        None, False, "learnt", None,
    )  # fmt: skip
    assert found["in_use"] == {
        "packing_capacity_bytes_per_s": 1_050_000.0,
        "consumer_capacity_bytes_per_s": 1_400_000.0,
    }
    nothing = capacity_values(capacity_of(PACKING, Learnt(), None))
    assert (nothing["learnt_bytes_per_s"], nothing["drift"], nothing["since_ms"]) == (None, None, None)
